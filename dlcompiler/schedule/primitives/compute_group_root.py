"""Compute the stages of a group in loop nests of their own: undo `compute_group_at`.

``g.compute_root()`` of a group ``g`` is ``compute_root`` of all its stages that are not attached to
others of it. Always legal.
In TVM ``compute_root`` of the stage that ``create_group`` returns.
"""

from __future__ import annotations

from dlcompiler.schedule.groups import moved
from dlcompiler.schedule.primitives.base import Primitive, StepContext, require_group
from dlcompiler.schedule.state import ROOT, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse stages that are in no group."""
    require_group(stage)
    return LEGAL


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    return moved(state, require_group(stage), ROOT, context.state_id), None


COMPUTE_GROUP_ROOT = Primitive("compute_group_root", {}, check, apply)
