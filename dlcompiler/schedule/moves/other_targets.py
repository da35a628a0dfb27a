"""Candidates for a suggestion: the same primitive on another loop, reader or thread axis."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.ir import THREADS, Axis
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.moves.candidates import Candidate, Refusal, source_by_primitive
from dlcompiler.schedule.moves.other_arguments import fitting_intrinsics
from dlcompiler.schedule.moves.other_orders import gathered, loops_to_fuse
from dlcompiler.schedule.state import AttachedAt, StageState


def _of_split(refused: Refusal) -> Iterator[Candidate]:
    call = refused.call
    name = "nparts" if call.args.get("nparts") is not None else "factor"
    for other in refused.others(refused.axis):
        for number in refused.factors(other, call.args.get(name))[:1]:
            yield refused.one("split", call.stage, axis=other, **{name: number})


def _of_fuse(refused: Refusal) -> Iterator[Candidate]:
    """Yield fusions of pairs of loops of one kind: first as they are, then made adjacent."""
    for leaf in loops_to_fuse(refused):
        for other in refused.others(leaf):
            pair = tuple(x for x in refused.leaves if x is leaf or x is other)
            if len({axis.kind for axis in pair}) == 1:
                yield refused.but(axes=pair)
                yield gathered(refused, pair)


def _of_lanes(refused: Refusal) -> Iterator[Candidate]:
    """Yield the call on other data loops: outermost first for `parallel`, else innermost first."""
    loops = refused.data_loops
    for leaf in loops if refused.call.name == "parallel" else reversed(loops):
        if leaf is not refused.axis:
            yield refused.but(axis=leaf)


def _of_bind(refused: Refusal) -> Iterator[Candidate]:
    """Yield `bind` of other data loops, the outermost first, then with other thread axes."""
    for leaf in refused.data_loops:
        if leaf is not refused.axis:
            yield refused.but(axis=leaf)
    for thread in THREADS:
        yield refused.but(thread=thread)


def _of_unroll(refused: Refusal) -> Iterator[Candidate]:
    for other in refused.others(refused.axis):
        if refused.stage.kind(other) == "serial":
            yield refused.but(axis=other)


def _of_tensorize(refused: Refusal) -> Iterator[Candidate]:
    for leaf, name in fitting_intrinsics(refused):
        if leaf is not refused.axis:
            yield refused.but(axis=leaf, intrin=name)


def _of_rfactor(refused: Refusal) -> Iterator[Candidate]:
    for leaf in refused.leaves:
        if leaf.kind == "reduce" and leaf is not refused.axis:
            yield refused.but(axis=leaf)
            yield refused.one("rfactor", refused.call.stage, axis=leaf)


def _of_compute_at(refused: Refusal) -> Iterator[Candidate]:
    """Yield `compute_at` at loops further out, then further in, then at loops of other readers."""
    stage, axis, parent = refused.stage, refused.axis, refused.call.args.get("parent")
    hosts = sorted(consumers(refused.state, stage), key=lambda host: host.name != parent)
    for host in hosts:
        is_loop = isinstance(axis, Axis) and host.has_leaf(axis)
        place = host.position(axis) if is_loop else len(host.leaves)
        for leaf in (*reversed(host.leaves[:place]), *host.leaves[place + 1 :]):
            yield from attached(refused, host, leaf)


def attached(refused: Refusal, host: StageState, leaf: Axis) -> Iterator[Candidate]:
    """Yield `compute_at` at a loop of a reader, unless the stage is attached there already."""
    at = refused.stage.attachment
    is_there = isinstance(at, AttachedAt) and at.stage == host.name and at.axis is leaf
    if not is_there:
        yield refused.one("compute_at", refused.stage.name, parent=host.name, axis=leaf)


def _of_compute_group_at(refused: Refusal) -> Iterator[Candidate]:
    """Yield `compute_group_at` at the other loops of the same reader, the innermost first."""
    parent = refused.call.args.get("parent")
    if not isinstance(parent, str) or not refused.state.has_stage(parent):
        return
    for leaf in reversed(refused.state.stage(parent).leaves):
        if leaf is not refused.axis:
            yield refused.but(axis=leaf)


def _of_prefetch(refused: Refusal) -> Iterator[Candidate]:
    for leaf in refused.others(refused.axis):
        yield refused.but(axis=leaf)
        yield refused.but(axis=leaf, offset=1)


def _of_pragma(refused: Refusal) -> Iterator[Candidate]:
    for leaf in refused.others(refused.axis):
        yield refused.but(axis=leaf, pragma_type="auto_unroll_max_step", pragma_value=16)


other_targets = source_by_primitive(
    {
        "split": _of_split,
        "fuse": _of_fuse,
        "vectorize": _of_lanes,
        "parallel": _of_lanes,
        "bind": _of_bind,
        "unroll": _of_unroll,
        "tensorize": _of_tensorize,
        "rfactor": _of_rfactor,
        "compute_at": _of_compute_at,
        "compute_group_at": _of_compute_group_at,
        "prefetch": _of_prefetch,
        "pragma": _of_pragma,
    }
)
