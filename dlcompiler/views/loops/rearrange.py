"""Turn the drag of one row of the loop tree onto another one into a step."""

from __future__ import annotations

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule, StageState, Step
from dlcompiler.views.loops.line_keys import loop_key


def moved_onto(schedule: Schedule, key: str, target: str) -> Step:
    """Return the step that moves the row `key` to the place of the row `target`.

    A loop moved onto a loop of its own stage gives a reorder. A stage moved onto a loop of another
    stage gives a compute_at.

    Parameters
    ----------
    schedule
        The schedule.
    key, target
        Keys of the loop tree.

    Raises
    ------
    ScheduleError
        If there is no such step.
    """
    stage, axis = _found(schedule, key)
    host, place = _found(schedule, target)
    if axis is None and place is None:
        raise ScheduleError(
            f"move {key}",
            "a stage can only be moved to a loop",
            hint="put it onto a loop of its reader",
        )
    if axis is None:
        assert place is not None
        return Step("compute_at", stage.name, {"parent": host.name, "axis": host.paths[place]})
    if place is None or host is not stage:
        raise ScheduleError(
            f"move {key}",
            f"{stage.paths[axis]} can only be moved among the loops of {stage.name}",
            hint=f"put stage {stage.name} itself onto a loop to compute it there",
        )
    return _reordered(stage, axis, stage.position(place))


def moved_by(schedule: Schedule, key: str, places: int) -> Step:
    """Return the step that moves a loop inward by a number of places, outward by a negative one.

    Raises
    ------
    ScheduleError
        If the loop is at the end already, or there is no such loop.
    """
    stage, axis = _found(schedule, key)
    if axis is None:
        raise ScheduleError(f"move {key}", "only a loop moves inward and outward")
    to = stage.position(axis) + places
    if not 0 <= to < len(stage.leaves):
        end = "outermost" if places < 0 else "innermost"
        raise ScheduleError(f"move {key}", f"it is the {end} loop of {stage.name} already")
    return _reordered(stage, axis, to)


def _reordered(stage: StageState, axis: Axis, to: int) -> Step:
    """Return the reorder that moves a loop to position `to`; the loops between shift by one."""
    rest = [leaf for leaf in stage.leaves if leaf is not axis]
    order = [*rest[:to], axis, *rest[to:]]
    moved = [new for new, old in zip(order, stage.leaves, strict=True) if new is not old]
    return Step("reorder", stage.name, {"axes": [stage.paths[leaf] for leaf in moved]})


def _found(schedule: Schedule, key: str) -> tuple[StageState, Axis | None]:
    for stage in schedule.state.stages:
        if stage.is_placeholder or stage.is_inlined:
            continue
        if loop_key(stage.name) == key:
            return stage, None
        for leaf in stage.leaves:
            if stage.key(leaf) == key:
                return stage, leaf
    raise ScheduleError("move a loop", "there is no such loop now", got=key)
