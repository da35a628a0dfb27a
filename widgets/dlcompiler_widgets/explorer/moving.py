"""Requests about moves: preview one, apply several, drag rows, and filter what is offered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.schedule import Schedule, Step
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import decode
from dlcompiler.views.loops.rearrange import moved_by, moved_onto
from dlcompiler.views.memory.metrics import Metric
from dlcompiler.views.moves.conflict import Conflict, conflict
from dlcompiler.views.moves.figures import figures
from dlcompiler.views.moves.preview import Preview, preview
from dlcompiler_widgets.explorer.levels import LEVELS, PRESETS
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

_NUMBER = re.compile(r"-?[0-9]{1,100}")
REMEMBERED = 64
"""Answers that are kept for one state: the pointer comes back to the same moves."""


def look(session: Session, args: Mapping[str, Any]) -> None:
    """Preview a ``step``, or the drag of the row ``key`` ``onto`` another; nothing is changed."""
    asked = json.dumps([session.schedule.node.id, session.learner.is_on, args], sort_keys=True)
    if asked not in session.previews:
        if len(session.previews) >= REMEMBERED:
            session.previews.clear()
        session.previews[asked] = _look(session, args)
    session.preview = session.previews[asked]


def _look(session: Session, args: Mapping[str, Any]) -> dict[str, Any]:
    def all_figures(schedule: Schedule) -> list[Metric]:
        return figures(schedule, session.args, session.target)

    try:
        step = wanted_step(session, args)
        # Where the learner is asked what a step will do, the preview does not say it before.
        shown = None if session.learner.is_on else all_figures
        view = preview(session.schedule, step, shown, session.target)
        return {**view, "conflict": _conflict(session, view)}
    except ScheduleError as error:  # no step: a row where it cannot go
        return {"status": "illegal", "reason": error.problem, "hint": error.hint or ""}


def _conflict(session: Session, view: Preview) -> Conflict | None:
    """Return the dependence that forbids a refused step, if that is the reason."""
    if view["kind"] != "semantic":
        return None
    func = session.lowered(session.schedule.node, "loops")
    return None if isinstance(func, DLCompilerError) else conflict(func, session.tree, view)


def move(session: Session, args: Mapping[str, Any]) -> None:
    """Move the loop or stage of a ``key`` ``onto`` another, or move a loop ``by`` some places."""
    step = wanted_step(session, args)
    session.schedule.apply(step.primitive, step.stage, decode(session.schedule.state, step))
    session.arrive(f"{session.schedule.node.title()}: done.")


def wanted_step(session: Session, args: Mapping[str, Any]) -> Step:
    """Return the step of a request: a ``step``, or the drag or the move of a row."""
    match args:
        case {"step": step}:
            return step_of(step, "preview a step")
        case {"key": str(key), "onto": str(target)}:
            return moved_onto(session.schedule, key, target)
        case {"key": str(key), "by": 1 | -1 as places}:
            return moved_by(session.schedule, key, places)
    raise ScheduleError("preview a step", "the step is malformed", got=repr(dict(args)))


def step_of(data: object, operation: str) -> Step:
    """Read a step that a page sent; `decode` checks its contents later.

    A page writes whole numbers beyond 2^53 as text, since a number of JavaScript would be rounded.
    """
    match data:
        case {"primitive": str(name), "stage": str(stage), "args": dict(values)}:
            kinds = REGISTRY[name].parameters if name in REGISTRY else {}
            numbers = {
                key: int(value)
                for key, value in values.items()
                if kinds.get(key) == "int" and _NUMBER.fullmatch(str(value))
            }
            return Step(name, stage, {**values, **numbers})
    raise ScheduleError(operation, "the step is malformed", got=repr(data))


def take(session: Session, args: Mapping[str, Any]) -> None:
    """Apply ``steps`` in order, from the state ``start`` if it is given.

    If a step is refused, the schedule is not changed.
    """
    schedule, steps, start = session.schedule, args.get("steps"), args.get("start")
    items = steps if isinstance(steps, list) else []
    wanted = [wanted_step(session, {"step": step}) for step in items]
    if not wanted:
        raise ScheduleError("take steps", "there is no step", got=repr(steps))
    way = schedule.fork("taken")
    if start:
        way.jump(str(start))
    for step in wanted:
        way.apply(step.primitive, step.stage, decode(way.state, step))
    schedule.jump(way.node.id)
    session.arrive(f"{', then '.join(map(str, wanted))}: done.")


def reset(session: Session, args: Mapping[str, Any]) -> None:
    """Go to the first state; redo and the history lead back."""
    left = session.schedule.node
    session.schedule.jump(session.schedule.history.history.root.id)
    session.follow(
        f"Back at the first state; Redo and the history lead to {left.title()} again."
        if left.parent
        else "This is the first state."
    )


def set_level(session: Session, args: Mapping[str, Any]) -> None:
    """Set the ``level``."""
    name = _known(args.get("level"), LEVELS, "level")
    session.layout = replace(session.layout, level=name)
    session.status = Status(f"Level {name}: {LEVELS[name].about}.")


def set_preset(session: Session, args: Mapping[str, Any]) -> None:
    """Set the ``preset`` of panes."""
    name = _known(args.get("preset"), PRESETS, "preset")
    session.layout = replace(session.layout, preset=name)
    session.status = Status(f"Shown: {PRESETS[name].text}.")


def _known(name: object, known: Mapping[str, Any], what: str) -> str:
    if isinstance(name, str) and name in known:
        return name
    raise ScheduleError(
        f"choose a {what}", f"there is no such {what}", got=repr(name), expected=", ".join(known)
    )


ACTIONS = {
    "preview": look,
    "move": move,
    "take": take,
    "reset": reset,
    "level": set_level,
    "preset": set_preset,
}
"""By the name of the request."""
