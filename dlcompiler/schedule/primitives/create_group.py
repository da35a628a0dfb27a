"""Group the stages between some tensors, to attach them together.

*Before*, then *after* ``g = s.create_group([Q], [A])`` and ``g.compute_at(s[C], i)``::

    for i in range(8):                  for i in range(8):
        P[i] = A[i] * 2.0                   P[0] = A[i] * 2.0
    for i in range(8):                      Q[0] = P[0] + 1.0
        Q[i] = P[i] + 1.0                   C[i] = Q[0] * Q[0]
    for i in range(8):
        C[i] = Q[i] * Q[i]

Making a group does not change the program. Its stages may be attached to each other. All other
stages of the group, and caches that are made of them later, are computed where the group is
attached. Legal if no stage is in a group already, or attached at a stage outside the group.
In TVM ``create_group``; Halide moves stages one by one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.schedule.groups import between
from dlcompiler.schedule.primitives.base import Primitive, StepContext
from dlcompiler.schedule.state import ROOT, AttachedAt, Group, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering


@answering
def check(
    state: State,
    stage: StageState,
    *,
    outputs: tuple[str, ...],
    inputs: tuple[str, ...],
    include_inputs: Any = 0,
) -> Verdict:
    """Refuse inputs that the outputs do not depend on, and stages that cannot be grouped."""
    if not isinstance(include_inputs, int) or include_inputs not in (0, 1):
        return Illegal("structural", "include_inputs must be 0 or 1", got=repr(include_inputs))
    reached = {item.name for item in between(state, outputs, ())}
    for name in inputs:
        if name not in reached:
            reason = f"{name} is not read on the way to {', '.join(outputs)}"
            return Illegal("structural", reason, conflicts=(name,))
    members = _members(state, outputs, inputs, include_inputs)
    if not members:
        return Illegal("structural", "no stage is computed between the inputs and the outputs")
    for member in members:
        if member.group is not None:
            return Illegal(
                "limit",
                f"{member.name} is in the group {member.group.name} already",
                hint="groups cannot overlap: the inputs say where one ends",
                conflicts=(member.name,),
            )
        at = member.attachment
        if isinstance(at, AttachedAt) and state.stage(at.stage) not in members:
            return Illegal(
                "structural",
                f"{member.name} is computed outside the group",
                got=f"it is attached at {state.stage(at.stage).label(at.axis)}",
                hint=f"call s[{member.name}].compute_root() first, and attach the group there",
                conflicts=(member.name,),
            )
    return LEGAL


def _members(
    state: State, outputs: tuple[str, ...], inputs: tuple[str, ...], include_inputs: int
) -> list[StageState]:
    left_out = () if include_inputs else inputs
    found = between(state, outputs, inputs)
    return [stage for stage in found if stage.name not in left_out and not stage.is_placeholder]


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    outputs: tuple[str, ...],
    inputs: tuple[str, ...],
    include_inputs: int = 0,
) -> tuple[State, str]:
    """Return the next state and the name of the group."""
    group = Group(f"{outputs[0]}.group", ROOT)
    members = _members(state, outputs, inputs, include_inputs)
    stages = (replace(item, group=group) if item in members else item for item in state.stages)
    return State(context.state_id, tuple(stages)), group.name


CREATE_GROUP = Primitive(
    "create_group",
    {"outputs": "stages", "inputs": "stages", "include_inputs": "int"},
    check,
    apply,
)
