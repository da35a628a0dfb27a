"""Tell whether a step would change something: the program, or an annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Allocate, Axis, PrimFunc, structural_equal, walk
from dlcompiler.lowering import build_nests
from dlcompiler.passes import simplify
from dlcompiler.pipeline.checks import default_args
from dlcompiler.pipeline.lower import check_obligations
from dlcompiler.schedule import Domain, Schedule, State
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.legality.obligations import extents_of, obligations
from dlcompiler.schedule.moves.unchanged import why_unchanged
from dlcompiler.schedule.state import AttachedAt, StageState
from dlcompiler.views.per_state import per_state

COMPARED = frozenset(
    {"compute_at", "compute_inline", "compute_root", "reorder", "split", "transform_layout",
     "vectorize"}
)  # fmt: skip
"""Primitives whose effect may depend on several loops that run at most once. Of the others, the
rule of `unchanged` knows all that change nothing."""
SAME = "the program stays as it is: the loops that make a difference run at most once"


def why_without_effect(
    schedule: Schedule,
    name: str,
    stage: str,
    args: Mapping[str, Any],
    domains: Sequence[Domain] = (),
) -> str:
    """Return why a legal step would change neither the program nor an annotation; or ''.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    name, stage, args
        The primitive, the name of the stage, and the arguments.
    domains
        Parameters that are still to be chosen: then no suggested value changes anything.

    Notes
    -----
    The meaning of the primitive decides (`dlcompiler.schedule.moves.unchanged`). Only if a stage
    has a loop that runs at most once, which lowering leaves out, and stays in the same loops of
    those that run more often, programs are compared.
    """
    state = schedule.state
    reason = why_unchanged(state, state.stage(stage), name, args, domains)
    if reason or name not in COMPARED or any(domain.suggested for domain in domains):
        return reason
    args = {**args, **{domain.parameter: 2 for domain in domains}}
    if not _concerns_idle_loops(state, stage, args):
        return reason
    attempt = schedule.attempt(name, stage, args)
    if attempt.state is None or _goes_elsewhere(state, attempt.state, stage):
        return ""
    if _pending(attempt.state) != _pending(state):
        return ""
    before, after = _program(schedule), _program(schedule.after(attempt))
    if before is None or after is None:
        return ""
    is_same = structural_equal(before.body, after.body) and _buffers(before) == _buffers(after)
    return SAME if is_same else ""


def _concerns_idle_loops(state: State, name: str, args: Mapping[str, Any]) -> bool:
    """Tell whether a loop runs at most once among those of a step, or of its stages."""
    stages = [state.stage(name)]
    if "parent" in args:
        stages.append(state.stage(args["parent"]))
    at = stages[0].attachment
    if isinstance(at, AttachedAt):
        stages.append(state.stage(at.stage))
    if (number := args.get("factor") or args.get("nparts")) is not None:
        extent = extents_of(state, stages[0]).get(args["axis"])
        return isinstance(extent, int) and extent in (1, number)  # one part stays whole
    own = args.get("axes") or ([args["axis"]] if "axis" in args else [])
    if own and "parent" not in args:
        return any(_runs_once(state, stages[0], axis) for axis in own)
    return any(_runs_once(state, stage, leaf) for stage in stages for leaf in stage.leaves)


def _goes_elsewhere(before: State, after: State, name: str) -> bool:
    """Tell whether a stage is computed inside other loops, of those that run more than once."""
    old, new = _around(placed(before), name, before), _around(placed(after), name, before)
    return old is not None and new is not None and old != new


def _around(state: State, name: str, before: State) -> list[Axis] | None:
    """Return the loops around a stage, inside to outside; None if one has no iteration.

    Their extents are those of the state before the step: where a stage is computed does not change
    the loops of its readers.
    """
    found: list[Axis] = []
    at = state.stage(name).attachment
    while isinstance(at, AttachedAt):
        parent = state.stage(at.stage)
        if parent.is_inlined or not parent.has_leaf(at.axis):
            return None  # the loop is gone
        extents = extents_of(before, before.stage(at.stage))
        for leaf in reversed(parent.leaves[: parent.position(at.axis) + 1]):
            extent = extents.get(leaf, leaf.extent)
            number = extent if isinstance(extent, int) else None  # a symbol may be any
            if number == 0:
                return None
            if number != 1:
                found.append(leaf)
        at = parent.attachment
    return found


def _runs_once(state: State, stage: StageState, axis: Axis) -> bool:
    """Tell whether a loop runs at most once."""
    if stage.is_placeholder or stage.is_inlined:
        return False
    extent = extents_of(state, stage).get(axis, axis.extent)
    return isinstance(extent, int) and extent < 2


def _pending(state: State) -> list[str]:
    return [str(item) for item in obligations(state) if not item.is_settled]


@per_state
def _program(schedule: Schedule | State) -> PrimFunc | None:
    """Return the loop nests of a state; None if it cannot be lowered."""
    assert isinstance(schedule, Schedule)
    try:
        check_obligations(schedule.state, "main")
        return simplify(build_nests(schedule.state, default_args(schedule), "main"))
    except DLCompilerError:
        return None


def _buffers(func: PrimFunc) -> list[tuple[Any, ...]]:
    """Return the memory of a program, which `structural_equal` does not compare."""
    made = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    return [(b.shape, b.scope, b.strides, b.dtype) for b in (*func.buffers, *made)]
