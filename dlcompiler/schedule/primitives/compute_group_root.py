"""Compute the stages of a group in loop nests of their own: undo `compute_group_at`.

``g.compute_root()`` applies ``compute_root`` to all stages of the group ``g`` that are not attached
inside the group. Always legal.
In TVM ``compute_root`` of the stage that ``create_group`` returns.
"""

from __future__ import annotations

from dlcompiler.schedule.groups import moved
from dlcompiler.schedule.primitives.base import Primitive, StepContext, require_group
from dlcompiler.schedule.state import ROOT, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse stages without a group."""
    require_group(stage)
    return LEGAL


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    return moved(state, require_group(stage), ROOT, context.state_id), None


COMPUTE_GROUP_ROOT = Primitive("compute_group_root", {}, check, apply)
