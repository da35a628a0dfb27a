"""Candidates for a suggestion: the refused step after another step, or at an earlier state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dlcompiler.ir import Axis
from dlcompiler.schedule.moves.candidates import (
    LANES,
    Call,
    Candidate,
    Later,
    Refusal,
    source_by_primitive,
)
from dlcompiler.schedule.moves.other_arguments import cache_scopes
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt

MAX_STEPS_BACK = 8
"""Most steps to go back: all steps after that state are replayed."""
ANNOTATED_PART = {"vectorize": "inner", "unroll": "inner", "parallel": "outer"}
"""For an annotation of a loop: the part of the split loop that gets it."""
STRUCTURE = ("split", "tile", "fuse")
PLACES = ("compute_at", "compute_inline", "compute_root")
STORAGE = ("set_scope", "storage_align", "double_buffer", "rolling_buffer")


def earlier_structure(refused: Refusal) -> Iterator[Candidate]:
    """Yield `split`, `tile` and `fuse` at earlier states.

    Most refusals of these come from an annotation, which can also be applied after the step.
    """
    if refused.call.name in STRUCTURE:
        yield from _earlier(refused)


def earlier(refused: Refusal) -> Iterator[Candidate]:
    """Yield all other primitives at earlier states."""
    if refused.call.name not in STRUCTURE:
        yield from _earlier(refused)


def _earlier(refused: Refusal) -> Iterator[Candidate]:
    """Yield the refused step at earlier states, the latest first, with the later steps replayed.

    An annotation of a loop that the step splits goes to a part of that loop (`ANNOTATED_PART`).
    """
    path = refused.node.path()
    for place in range(len(path) - 2, max(len(path) - 2 - MAX_STEPS_BACK, -1), -1):
        later = [node.step for node in path[place + 1 :] if node.step is not None]
        if _undoes(later[0], refused.call):
            return
        yield Candidate((refused.call, *map(_replayed, later)), start=path[place])


def _undoes(later: Step, call: Call) -> bool:
    """Tell whether a later step would undo the effect of a call."""
    if later.stage != call.stage or later.primitive not in PLACES:
        return False
    return call.name in PLACES or (call.name in STORAGE and later.primitive == "compute_inline")


def _replayed(step: Step) -> Later:
    """Return a function that repeats a step in the state after the call before it."""

    def call(made: Attempt) -> Call:
        assert made.state is not None
        args = decode(made.state, step)
        part = ANNOTATED_PART.get(step.primitive)
        if part is not None and not made.state.stage(step.stage).has_leaf(args["axis"]):
            on_part = Step(step.primitive, step.stage, {"axis": f"{step.args['axis']}.{part}"})
            args = decode(made.state, on_part)
        return Call(step.primitive, step.stage, args)

    return call


def _of_fuse(refused: Refusal) -> Iterator[Candidate]:
    """Yield a reordering that brings the loops side by side, then the fusion."""
    loops = loops_to_fuse(refused)
    if len(loops) > 1:
        yield gathered(refused, loops)


def loops_to_fuse(refused: Refusal) -> tuple[Axis, ...]:
    """Return the axes of the call that are loops of the stage, in the order of the nest."""
    given = refused.call.args.get("axes")
    axes = [a for a in given if isinstance(a, Axis)] if isinstance(given, tuple) else []
    return tuple(leaf for leaf in refused.leaves if any(leaf is axis for axis in axes))


def gathered(refused: Refusal, axes: tuple[Axis, ...]) -> Candidate:
    """Return the candidate that moves loops next to the outermost of them, then fuses them."""
    first, leaves = refused.stage.position(axes[0]), refused.leaves
    last = refused.stage.position(axes[-1])
    rest = (leaf for leaf in leaves[first : last + 1] if not any(leaf is axis for axis in axes))
    reorder = Call("reorder", refused.call.stage, {"axes": (*axes, *rest)})
    return Candidate((reorder, Call("fuse", refused.call.stage, {"axes": axes})))


def unrolled_parts(refused: Refusal) -> Iterator[Candidate]:
    """Yield splits of the loop, each with its inner part unrolled."""
    stage = refused.call.stage
    for number in refused.factors(refused.axis, LANES):
        split = Call("split", stage, {"axis": refused.axis, "factor": number})
        yield Candidate((split, lambda made: Call("unroll", stage, {"axis": made.result[1]})))


def _of_cache_write(refused: Refusal) -> Iterator[Candidate]:
    """Yield `compute_root` of an inlined stage, followed by the refused `cache_write`."""
    if refused.stage.is_inlined:
        for scope in cache_scopes(refused):
            first = Call("compute_root", refused.call.stage, {})
            yield Candidate((first, refused.call.but(scope=scope)))


prepared = source_by_primitive(
    {"fuse": _of_fuse, "unroll": unrolled_parts, "cache_write": _of_cache_write}
)
"""Another step first, which makes the refused one legal."""
