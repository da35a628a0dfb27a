"""Compute a stage inside a loop of its consumer: only the part that one iteration reads.

*Before*, then *after* ``s[P].compute_at(s[C], i)``::

    for i in range(8):                  for i in range(8):
        for j in range(4):                  allocate P: float32[1, 4]
            P[i, j] = …                     for P.j in range(4):
    for i in range(8):                          P[0, P.j] = …
        for j in range(4):                  for j in range(4):
            C[i, j] = P[i, j] + 1.0             C[i, j] = P[0, j] + 1.0

Legal when all readers of the stage run inside that loop, or can still be moved there. In that case
the step is pending until they are. If the loop is split later, the stage is computed in the inner
half; if it is fused into the loop around it, in the fused one. If it is fused with a loop inside
it, the stage must be attached again before lowering. At a vectorized loop the stage is computed
around it, once for all lanes.
In TVM and Halide ``compute_at``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.groups import is_member
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.inference.placement import placement
from dlcompiler.schedule.legality.obligations import leads_to
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_expression,
    require_leaf,
)
from dlcompiler.schedule.state import AttachedAt, Group, StageState, State
from dlcompiler.schedule.verdict import Illegal, Pending, Refused, Verdict, answering


@answering
def check(state: State, stage: StageState, *, parent: str, axis: Any) -> Verdict:
    """Refuse outputs, and a loop if some reader of the stage is outside it."""
    if stage.group is not None:
        _require_inside(state, stage, stage.group, parent, axis)
    return check_place(state, stage, parent, axis)


def _require_inside(
    state: State, stage: StageState, group: Group, parent: str, axis: object
) -> None:
    """Refuse to attach a stage outside its group, except at the loop of the group."""
    place = placement(state, group.place) if isinstance(group.place, AttachedAt) else group.place
    is_there = isinstance(place, AttachedAt) and place.stage == parent and place.axis is axis
    if is_there or is_member(state.stage(parent), group):
        return
    names = ", ".join(item.name for item in state.stages if is_member(item, group))
    raise Refused(
        Illegal(
            "structural",
            f"{stage.name} would leave its group",
            got=f"{parent} is not in {group.name}: {names}",
            hint="attach the group there, or the stage at a loop of the group",
            conflicts=(stage.name,),
        )
    )


def check_place(state: State, stage: StageState, parent: str, axis: Any) -> Verdict:
    """Refuse outputs, and a loop if some reader is outside it; groups are not checked."""
    host = state.stage(parent)
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: it is not computed")
    if host.name == stage.name:
        return Illegal("structural", "a stage cannot be computed inside itself")
    require_expression(stage)
    if host.is_extern:
        return Illegal(
            "structural",
            f"{host.name} is computed by code from outside: it has no loops here",
            because="it needs all of its inputs before it begins",
            hint=f"compute {stage.name} in a loop nest of its own",
            conflicts=(host.name, stage.name),
        )
    if host.is_placeholder or host.is_inlined:
        return Illegal("structural", f"{host.name} has no loops")
    if stage.is_output:
        return Illegal(
            "limit",
            f"{stage.name} is an output of the schedule",
            because="all of it must be stored, exactly once",
            hint=f"compute the consumer inside {stage.name}'s loops instead",
            conflicts=(stage.name,),
        )
    require_leaf(state, host, axis)
    readers = consumers(state, stage)
    if not readers:
        return Illegal("structural", f"no stage reads {stage.name}")
    if host not in readers and not leads_to(state, stage, host):
        names = ", ".join(reader.name for reader in readers)
        return Illegal(
            "structural",
            f"{host.name} does not read {stage.name}",
            got=f"the readers of {stage.name} are: {names}",
            hint=f"attach it at a loop of {names}",
        )
    return Pending(f"{host.label(axis)} must stay a loop")


def apply(
    state: State, stage: StageState, context: StepContext, *, parent: str, axis: Axis
) -> tuple[State, None]:
    """Return the next state."""
    attachment = AttachedAt(parent, axis, context.step)
    return state.with_stage(replace(stage, attachment=attachment), context.state_id), None


COMPUTE_AT = Primitive("compute_at", {"parent": "stage", "axis": "parent_axis"}, check, apply)
