"""Groups of stages: find the members of a group, and move them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.schedule.state import AttachedAt, Attachment, Group, StageState, State


def between(state: State, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[StageState, ...]:
    """Return `outputs` and all stages that they depend on; the search stops at `inputs`.

    Parameters
    ----------
    state
        The state.
    outputs
        Names of the stages to begin from.
    inputs
        Names of the stages at which the search stops.
    """
    reached, waiting = set(outputs), list(outputs)
    while waiting:
        stage = state.stage(waiting.pop())
        read = () if stage.name in inputs else stage.op.input_tensors
        fresh = {state.producer_of(tensor).name for tensor in read} - reached
        reached |= fresh
        waiting += fresh
    return tuple(stage for stage in state.stages if stage.name in reached)


def is_member(stage: StageState, group: Group) -> bool:
    """Tell whether a stage is in a group."""
    return stage.group is not None and stage.group.name == group.name


def at_place(state: State, group: Group) -> list[StageState]:
    """Return the stages of a group that are neither inlined nor attached inside the group."""
    return [
        stage
        for stage in state.stages
        if is_member(stage, group)
        and not stage.is_inlined
        and not _is_attached_inside(state, stage.attachment, group)
    ]


def _is_attached_inside(state: State, at: Attachment, group: Group) -> bool:
    return isinstance(at, AttachedAt) and is_member(state.stage(at.stage), group)


def moved(state: State, group: Group, place: Attachment, id: str) -> State:
    """Return the state in which a group, with the stages of `at_place`, is attached at `place`."""
    here, new = at_place(state, group), Group(group.name, place)

    def changed(stage: StageState) -> StageState:
        if not is_member(stage, group):
            return stage
        attachment = place if stage in here else stage.attachment
        return replace(stage, group=new, attachment=attachment)

    return State(id, tuple(changed(stage) for stage in state.stages))


def joined(stage: StageState, like: StageState) -> StageState:
    """Return `stage` added to the group of `like`, at the group's place; unchanged if none."""
    if like.group is None:
        return stage
    return replace(stage, group=like.group, attachment=like.group.place)
