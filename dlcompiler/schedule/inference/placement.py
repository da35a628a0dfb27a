"""Placement: the loop at which an attached stage is computed after that loop was changed.

Lowering, bounds and legality use `placed`, in which each attachment names an existing loop.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.ir import Axis
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.inference.recurrences import hosts
from dlcompiler.schedule.state import (
    ROOT,
    AtRoot,
    AttachedAt,
    Attachment,
    Fuse,
    Split,
    StageState,
    State,
)


def placed(state: State) -> State:
    """Return the state in which stages are attached where they will be computed.

    If the axis of an attachment was split, the stage is attached at the inner loop. If the axis was
    the inner one of a fusion, the stage is attached at the fused loop. A stage attached at or
    inside a vectorized loop moves to the loop around it, since all lanes share its values. Other
    attachments whose loop is gone stay as they are: see `obligations.obligations`.
    """
    cached = state.cache.get("placed")
    if cached is None:
        cached = _place_all(state)
        state.cache["placed"] = cached
    result: State = cached
    return result


def _place_all(state: State) -> State:
    stages = tuple(_placed_stage(state, stage) for stage in state.stages)
    if all(new is old for new, old in zip(stages, state.stages, strict=True)):
        return state
    result = State(state.id, stages)
    result.cache.update(placed=result, bodies=bodies(state))
    return result


def _placed_stage(state: State, stage: StageState) -> StageState:
    place = stage.attachment
    if isinstance(place, AttachedAt):
        place = placement(state, place)
    if isinstance(place, AtRoot) and (scan := hosts(state).get(stage.name)):
        place = AttachedAt(scan.name, scan.leaves[-1], "")
    return stage if place is stage.attachment else replace(stage, attachment=place)


def placement(state: State, at: AttachedAt) -> Attachment:
    """Return the loop at which a stage attached at `at` is computed; `at` if it is unknown."""
    parent = state.stage(at.stage)
    if parent.is_inlined:
        return at
    leaf = standing_for(parent, at.axis)
    if leaf is None:
        return at
    outside = parent.leaves[: parent.position(leaf) + 1]
    lanes = next((n for n, own in enumerate(outside) if parent.kind(own) == "vectorized"), None)
    if lanes is None:
        return at if leaf is at.axis else AttachedAt(at.stage, leaf, at.step)
    if lanes > 0:
        return AttachedAt(at.stage, outside[lanes - 1], at.step)
    if isinstance(parent.attachment, AttachedAt):
        return placement(state, parent.attachment)
    return ROOT


def standing_for(stage: StageState, axis: Axis) -> Axis | None:
    """Return the loop that replaces an axis after splits and fusions; None if there is none."""
    for relation in stage.relations:
        match relation:
            case Split(parent, _, inner, _, _) if parent is axis:
                axis = inner
            case Fuse(_, inner, fused) if inner is axis:
                axis = fused
    return axis if stage.has_leaf(axis) else None
