"""Blocks that run all steps of a scan: whether each needs only what it has computed itself.

Blocks of one launch never meet, so that what one step wrote in another block may not be read in the
next. Here: the loop of an update that is bound to the blocks comes from axes along which the
recurrence is a *batch*. A step computes element ``(…, b, …)`` from elements of the same ``b``,
directly and through the other stages of the cell::

    S[t, b, i] = f(S[t-1, b, j], X[t, b, k])        b is a batch axis, i is not

Which block has which ``b`` follows from the loops, and has to be the same for all states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlcompiler.arith import Analyzer
from dlcompiler.ir import Axis, Expr, TensorLoad, Var, is_in_block, is_thread, structural_equal
from dlcompiler.schedule.inlining import bodies, loads_of
from dlcompiler.schedule.recurrences import hosts, is_update
from dlcompiler.schedule.relations import inward, related
from dlcompiler.schedule.state import StageState, State, is_scan
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import ScanOp, Tensor


def blocks_of(scan: StageState) -> tuple[Axis, ...]:
    """Return the loops of a scan's blocks, which run all its steps."""
    kinds = ((leaf, scan.kind(leaf)) for leaf in scan.leaves)
    return tuple(leaf for leaf, kind in kinds if is_thread(kind) and not is_in_block(kind))


def updates_of(state: State, scan: StageState) -> list[StageState]:
    """Return the stages that compute the rows of a scan."""
    own = (stage for stage in state.stages if hosts(state).get(stage.name) is scan)
    return [stage for stage in own if is_update(state, stage)]


def block_problems(state: State) -> Iterator[Illegal]:
    """Yield the blocks of scans that would need what other blocks compute."""
    for scan in filter(is_scan, state.stages):
        for block in blocks_of(scan):
            yield from _problems_of(state, scan, block)


def _problems_of(state: State, scan: StageState, block: Axis) -> Iterator[Illegal]:
    tag, updates = scan.kind(block), updates_of(state, scan)
    bound = {
        update.name: leaf
        for update in updates
        for leaf in update.leaves
        if update.kind(leaf) == tag
    }
    if len(bound) < len(updates):
        return  # owed: see `obligations`
    batches = {update.name: _axes_behind(update, bound[update.name]) for update in updates}
    first = updates[0]
    for other in updates[1:]:
        if not _is_same_part(first, other, bound, batches):
            yield Illegal(
                "semantic",
                f"the blocks of {first.label(bound[first.name])} and "
                f"{other.label(bound[other.name])} have other elements of one batch",
                because="blocks never meet: each needs what it has computed itself",
                hint="split both by the same numbers",
                conflicts=(first.key(bound[first.name]), other.key(bound[other.name])),
            )
    yield from _readers_of_others(state, scan, updates, bound, batches)


def _axes_behind(stage: StageState, leaf: Axis) -> tuple[Axis, ...]:
    """Return the axes of an operation that a loop comes from."""
    family = related(stage.relations, [leaf])
    return tuple(axis for axis in stage.op.axis if axis in family)


def _is_same_part(
    first: StageState,
    other: StageState,
    bound: Mapping[str, Axis],
    batches: Mapping[str, tuple[Axis, ...]],
) -> bool:
    """Tell whether two stages have the same elements of the batch in each block."""
    parts: list[Expr] = []
    names = [Var(axis.name) for axis in batches[first.name]]
    for stage in (first, other):
        axes = batches[stage.name]
        if [a.extent for a in axes] != [a.extent for a in batches[first.name]]:
            return False
        values = inward(stage.relations, dict(zip(axes, names, strict=True)))
        parts.append(Analyzer({}).simplify(values[bound[stage.name]]))
    return structural_equal(*parts)


def _readers_of_others(
    state: State,
    scan: StageState,
    updates: Sequence[StageState],
    bound: Mapping[str, Axis],
    batches: Mapping[str, tuple[Axis, ...]],
) -> Iterator[Illegal]:
    """Yield what reads elements of another place in the batch than it computes."""
    op = scan.op
    assert isinstance(op, ScanOp)
    places: dict[Tensor, tuple[int, ...]] = {}
    for update in updates:
        dims = tuple(update.op.axis.index(axis) for axis in batches[update.name])
        for tensor in update.tensors:
            if tensor in op.updates:
                places[op.states[op.updates.index(tensor)]] = dims
            places[tensor] = dims
    label = f"{updates[0].label(bound[updates[0].name])}"
    for stage in reversed(state.stages):  # readers first
        if hosts(state).get(stage.name) is not scan or stage.is_inlined:
            continue
        own = places.get(stage.tensor)
        if own is None:
            continue  # nothing of the batch reads it
        variables = [stage.op.axis[n].var for n in own]
        for load in loads_of(bodies(state)[stage.name]):
            read = load.tensor
            assert isinstance(read, Tensor)
            if not _is_of_cell(state, scan, read):
                continue
            found = _dims_of(load, variables)
            if found is None or places.setdefault(read, found) != found:
                yield Illegal(
                    "semantic",
                    f"a block would need what other blocks compute: {stage.name} reads {load}",
                    got=f"{label}, bound to blocks that run all steps of {scan.name}",
                    because="blocks never meet in a launch, and each computes a part of the steps",
                    hint="let the threads of one block share the steps: env_threads of threadIdx "
                    "alone, or bind a batch axis to the blocks",
                    conflicts=(stage.body_key, updates[0].key(bound[updates[0].name])),
                )
                return


def _is_of_cell(state: State, scan: StageState, tensor: Tensor) -> bool:
    if tensor in scan.states:
        return True
    producer = state.producer_of(tensor)
    return hosts(state).get(producer.name) is scan


def _dims_of(load: TensorLoad, variables: Sequence[Var]) -> tuple[int, ...] | None:
    """Return the dimensions that are indexed by variables alone, one for each."""
    found = [
        next((n for n, index in enumerate(load.indices) if index is var), None) for var in variables
    ]
    return None if None in found else tuple(n for n in found if n is not None)
