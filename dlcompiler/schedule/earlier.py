"""A refused step, taken before those that forbid it, found by trying: another branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode
from dlcompiler.schedule.verdict import Illegal

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt, Schedule

FARTHEST = 8
"""Steps that are looked back over at most: all that follow are tried again."""
PART = {"vectorize": "inner", "unroll": "inner", "parallel": "outer"}
"""Which part of a loop that is split gets the annotation that the whole loop had."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Where to go back to, and the steps to take from there, the wanted one first."""

    start: str
    """Id of the state to go back to."""
    before: Step
    """The step that the wanted one is taken before."""
    steps: tuple[Step, ...]


def earlier(schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]) -> Earlier | None:
    """Return how a refused step could have been taken earlier, with all later steps kept.

    Parameters
    ----------
    schedule
        The schedule; it stays where it is.
    name, stage, args
        The refused step, as for `Schedule.attempt`.

    Returns
    -------
    Earlier or None
        The latest such place. A step that annotated a loop which is split now annotates its inner
        part, or its outer part where it is parallel.
    """
    path = schedule.node.path()
    for place in range(len(path) - 2, max(len(path) - 2 - FARTHEST, -1), -1):
        there = schedule.fork("tried")
        there.jump(path[place].id)
        later = [node.step for node in path[place + 1 :] if node.step is not None]
        try:
            first = there.attempt(name, stage, args)
        except ScheduleError:  # the stage is made later
            return None
        if not isinstance(first.verdict, Illegal) and first.step is not None:
            again = _again(there.after(first), later)
            if again is not None:
                return Earlier(path[place].id, later[0], (first.step, *again))
    return None


def _again(schedule: Schedule, steps: Sequence[Step]) -> tuple[Step, ...] | None:
    """Return steps as they are legal one after another from a state, or None."""
    taken: list[Step] = []
    for step in steps:
        found = _attempt(schedule, step) or _attempt(schedule, _on_part(step))
        if found is None or found.step is None:
            return None
        taken.append(found.step)
        schedule = schedule.after(found)
    return tuple(taken)


def _on_part(step: Step) -> Step:
    """Return the step for the part of its loop that stands for it after a split."""
    if step.primitive not in PART:
        return step
    return replace(step, args={**step.args, "axis": f"{step.args['axis']}.{PART[step.primitive]}"})


def _attempt(schedule: Schedule, step: Step) -> Attempt | None:
    """Return what a step leads to, or None if it is refused or names what is not there."""
    try:
        attempt = schedule.attempt(step.primitive, step.stage, decode(schedule.state, step))
    except ScheduleError:
        return None
    return None if isinstance(attempt.verdict, Illegal) else attempt
