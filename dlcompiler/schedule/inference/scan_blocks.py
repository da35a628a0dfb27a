"""Scans in one launch: check that each block reads only elements that it computed itself.

Blocks of one launch cannot synchronise, so a block may not read what another block wrote in an
earlier step. Therefore the loop of an update that is bound to blocks must come from *batch* axes of
the recurrence. A step computes element ``(…, b, …)`` only from elements of the same ``b``, directly
or through the other stages of the cell::

    S[t, b, i] = f(S[t-1, b, j], X[t, b, k])        b is a batch axis, i is not

The loops decide which block computes which ``b``. This must be the same for all states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Axis,
    Expr,
    TensorLoad,
    Var,
    binary,
    compare,
    is_in_block,
    is_thread,
    structural_equal,
)
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.inlining import bodies, loads_of
from dlcompiler.schedule.inference.recurrences import hosts, is_update
from dlcompiler.schedule.inference.relations import inward, ranged, related
from dlcompiler.schedule.state import StageState, State, is_scan
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import ScanOp


def blocks_of(scan: StageState) -> tuple[Axis, ...]:
    """Return the loops of a scan that are bound to blocks; each block runs all steps."""
    kinds = ((leaf, scan.kind(leaf)) for leaf in scan.leaves)
    return tuple(leaf for leaf, kind in kinds if is_thread(kind) and not is_in_block(kind))


def updates_of(state: State, scan: StageState) -> list[StageState]:
    """Return the stages that compute the rows of a scan."""
    return [stage for stage in _cell(state, scan) if is_update(state, stage)]


def _cell(state: State, scan: StageState) -> list[StageState]:
    """Return the stages that run at each step, producers before consumers."""
    return [stage for stage in state.stages if hosts(state).get(stage.name) is scan]


@dataclass(frozen=True, slots=True)
class _Share:
    """A loop of an update bound to blocks: it decides which part of a row a block computes."""

    update: StageState
    leaf: Axis
    batch: tuple[Axis, ...]
    """The axes of the update that the loop comes from."""

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of the update that these axes index."""
        return tuple(self.update.op.axis.index(axis) for axis in self.batch)

    @property
    def label(self) -> str:
        """The label of the loop: ``stage.loop``."""
        return self.update.label(self.leaf)

    @property
    def key(self) -> str:
        """The key of the loop in views: ``stage/loop``."""
        return self.update.key(self.leaf)

    def block_of(self, place: Sequence[Expr], analyzer: Analyzer) -> Expr:
        """Return the number of the block that computes an element of the batch."""
        values = inward(self.update.relations, dict(zip(self.batch, place, strict=True)))
        return analyzer.simplify(values[self.leaf])


def block_problems(state: State) -> Iterator[Illegal]:
    """Yield the blocks of scans that would read elements computed by other blocks."""
    for scan in filter(is_scan, state.stages):
        for block in blocks_of(scan):
            shares = list(_shares(state, scan, scan.kind(block)))
            if len(shares) == len(
                updates_of(state, scan)
            ):  # unbound updates are pending obligations: see `obligations`
                yield from _different_parts(shares)
                yield from _foreign_reads(state, scan, block, shares)


def _shares(state: State, scan: StageState, tag: str) -> Iterator[_Share]:
    """Yield, for each update, its loop that is bound to the block axis `tag`."""
    for update in updates_of(state, scan):
        for leaf in update.leaves:
            if update.kind(leaf) == tag:
                family = related(update.relations, [leaf])
                yield _Share(update, leaf, tuple(a for a in update.op.axis if a in family))


def _different_parts(shares: Sequence[_Share]) -> Iterator[Illegal]:
    """Yield pairs of updates for which a block computes different elements of the batch."""
    first = shares[0]
    names = [Var(axis.name) for axis in first.batch]
    sizes = [axis.extent for axis in first.batch]
    for other in shares[1:]:
        is_same = [axis.extent for axis in other.batch] == sizes and structural_equal(
            *(share.block_of(names, Analyzer({})) for share in (first, other))
        )
        if not is_same:
            yield Illegal(
                "semantic",
                f"the blocks of {first.label} and {other.label} have other elements of one batch",
                because="blocks cannot synchronise: each may read only what it computed itself",
                hint="split both by the same numbers",
                conflicts=(first.key, other.key),
            )


def _foreign_reads(
    state: State, scan: StageState, block: Axis, shares: Sequence[_Share]
) -> Iterator[Illegal]:
    """Yield reads of batch elements that another block may have computed."""
    op = scan.op
    assert isinstance(op, ScanOp)
    places: dict[object, tuple[int, ...]] = {}
    """The batch dimensions of the tensors of the cell."""
    for share in shares:
        places.update(dict.fromkeys(share.update.tensors, share.dims))
    states = zip(op.states, op.updates, strict=True)
    places.update((state, places[update]) for state, update in states)
    rows = {share.update.name for share in shares}
    for stage, load in _reads_of_cell(state, scan):
        own = places.get(stage.tensor)
        if own is None:
            continue  # no row needs it
        found = _dims_of(load, [stage.op.axis[n].var for n in own])
        if found is None or places.setdefault(load.tensor, found) != found:
            yield _foreign(scan, shares[0], stage, f"{stage.name} reads {load}")
            return
        if stage.name in rows or load.tensor not in op.states:
            continue
        if not _stays(state, stage, own, scan, block, shares[0]):
            part = f"{stage.name} is computed for more than a block's part of {load.tensor.name}"
            yield _foreign(scan, shares[0], stage, part)
            return


def _reads_of_cell(state: State, scan: StageState) -> Iterator[tuple[StageState, TensorLoad]]:
    """Yield each read of a tensor of the cell or of a state, with its reader; consumers first."""
    cell = _cell(state, scan)
    made = {tensor for stage in cell for tensor in stage.tensors}.union(scan.states)
    for stage in reversed(cell):
        for load in () if stage.is_inlined else loads_of(bodies(state)[stage.name]):
            if load.tensor in made:
                yield stage, load


def _foreign(scan: StageState, share: _Share, stage: StageState, what: str) -> Illegal:
    return Illegal(
        "semantic",
        f"a block would need what other blocks compute: {what}",
        got=f"{share.label}, bound to blocks that run all steps of {scan.name}",
        because="blocks of one launch cannot synchronise, and each computes a part of each step",
        hint="let the threads of one block share the steps: env_threads of threadIdx alone, or "
        "bind a batch axis to the blocks",
        conflicts=(stage.body_key, share.key),
    )


def _dims_of(load: TensorLoad, variables: Sequence[Var]) -> tuple[int, ...] | None:
    """Return the dimension that each variable indexes alone; None if some variable has none."""
    found = [
        next((n for n, index in enumerate(load.indices) if index is var), None) for var in variables
    ]
    return None if None in found else tuple(n for n in found if n is not None)


def _stays(
    state: State,
    stage: StageState,
    dims: Sequence[int],
    scan: StageState,
    block: Axis,
    share: _Share,
) -> bool:
    """Tell whether a block computes a stage for its own part of the batch only."""
    bounds = infer_bounds(state)
    number = bounds.stages[scan.name].loop_vars[block]
    spans = [bounds.stages[stage.name].region[n] for n in dims]
    steps = {Var(f"step{n}"): span.extent for n, span in enumerate(spans)}
    analyzer = ranged(steps, bounds.ranges)
    place = [
        binary("add", span.first.to_expr(), step) for span, step in zip(spans, steps, strict=True)
    ]
    return analyzer.can_prove(compare("eq", share.block_of(place, analyzer), number))
