"""Apply a step although it was refused as *semantic*: wrong, whatever follows.

This is how tests see whether such a refusal was right. Users have no way to do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlcompiler.schedule import Schedule
from dlcompiler.schedule.legality.validity import problems
from dlcompiler.schedule.primitives import REGISTRY, StepContext
from dlcompiler.schedule.state import State, child_id
from dlcompiler.schedule.trace import encode


class NotForced(Exception):
    """The step is refused for another reason, too: it cannot be applied."""


def force(schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]) -> State:
    """Return the state that a refused step would lead to; the schedule stays where it is."""
    item, current = REGISTRY[name], schedule.state.stage(stage)
    verdict = item.check(schedule.state, current, **args)
    if not verdict and verdict.kind != "semantic":
        raise NotForced(verdict.reason)
    step = encode(item, schedule.state, current, args)
    state_id = child_id(schedule.state.id, step)
    context = StepContext(state_id, schedule.history.history, str(step))
    try:
        state, _ = item.apply(schedule.state, current, context, **args)
    except Exception as error:  # what the check would have refused later
        raise NotForced(str(error)) from error
    for problem in problems(state):
        if problem.kind != "semantic":
            raise NotForced(problem.reason)
    return state
