"""Tell whether a step would change something: the program, or an annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Allocate, PrimFunc, structural_equal, walk
from dlcompiler.lowering import build_nests
from dlcompiler.passes import simplify
from dlcompiler.pipeline.checks import default_args
from dlcompiler.pipeline.lower import check_obligations
from dlcompiler.schedule import Domain, Schedule, State
from dlcompiler.schedule.legality.obligations import extents_of, obligations
from dlcompiler.schedule.moves.unchanged import why_unchanged
from dlcompiler.schedule.state import StageState
from dlcompiler.views.per_state import per_state

NOTED = frozenset(
    {"align_extent", "create_group", "double_buffer", "pragma", "prefetch", "rolling_buffer",
     "set_scope", "storage_align"}
)  # fmt: skip
"""Primitives that annotate: a step that repeats no annotation changes something."""
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
    has a loop that runs at most once, which lowering leaves out, programs are compared.
    """
    state = schedule.state
    reason = why_unchanged(state, state.stage(stage), name, args, domains)
    if reason or domains or name in NOTED or not _has_idle_loops(state):
        return reason
    attempt = schedule.attempt(name, stage, args)
    if attempt.state is None or _pending(attempt.state) != _pending(state):
        return ""
    before, after = _program(schedule), _program(schedule.after(attempt))
    if before is None or after is None:
        return ""
    is_same = structural_equal(before.body, after.body) and _buffers(before) == _buffers(after)
    return SAME if is_same else ""


@per_state
def _has_idle_loops(state: Schedule | State) -> bool:
    """Tell whether a stage has a loop that runs at most once."""
    assert isinstance(state, State)
    return any(_is_idle(state, stage) for stage in state.stages)


def _is_idle(state: State, stage: StageState) -> bool:
    if stage.is_placeholder or stage.is_inlined:
        return False
    extents = extents_of(state, stage)
    counts = (extents.get(leaf, leaf.extent) for leaf in stage.leaves)
    return any(isinstance(count, int) and count < 2 for count in counts)


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
