"""Compute the stages of a group inside a loop of their reader.

``g.compute_at(s[C], i)`` applies ``compute_at`` to all stages of the group ``g`` that are not
attached inside the group: `create_group` shows the loop nests. It is legal if each of these stages
may be attached there, and C is not in the group.
In TVM ``compute_at`` of the stage that ``create_group`` returns.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.groups import at_place, is_member, moved
from dlcompiler.schedule.primitives.base import Primitive, StepContext, require_group
from dlcompiler.schedule.primitives.compute_at import check_place
from dlcompiler.schedule.state import AttachedAt, StageState, State
from dlcompiler.schedule.verdict import Illegal, Pending, Verdict, answering


@answering
def check(state: State, stage: StageState, *, parent: str, axis: Any) -> Verdict:
    """Refuse a loop of the group itself, and a loop that is illegal for one of its stages."""
    group = require_group(stage)
    host = state.stage(parent)
    if is_member(host, group):
        return Illegal("structural", f"{host.name} is in the group {group.name} itself")
    for member in at_place(state, group):
        verdict = check_place(state, member, parent, axis)
        if not verdict:
            return verdict
    return Pending(f"{host.label(axis)} must stay a loop")


def apply(
    state: State, stage: StageState, context: StepContext, *, parent: str, axis: Axis
) -> tuple[State, None]:
    """Return the next state."""
    place = AttachedAt(parent, axis, context.step)
    return moved(state, require_group(stage), place, context.state_id), None


COMPUTE_GROUP_AT = Primitive(
    "compute_group_at", {"parent": "stage", "axis": "parent_axis"}, check, apply
)
