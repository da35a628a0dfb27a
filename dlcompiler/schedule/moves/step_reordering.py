"""Step reordering: find an earlier state where a refused step is legal, and keep the later steps.

The search goes back through the history, tries the refused step at each state, and replays the
later steps behind it. What it finds is another branch of the history.
"""

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

MAX_STEPS_BACK = 8
"""Most steps to go back: all steps after that state are replayed."""
ANNOTATED_PART = {"vectorize": "inner", "unroll": "inner", "parallel": "outer"}
"""For an annotation of a loop: the part of the split loop that gets it."""


@dataclass(frozen=True, slots=True)
class ReorderedSteps:
    """A state to go back to, and the steps to take from that state, the refused one first."""

    start: str
    """Id of the state to go back to."""
    before: Step
    """The step that the refused one is taken before."""
    steps: tuple[Step, ...]


def reordered_steps(
    schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]
) -> ReorderedSteps | None:
    """Return the steps in an order in which a refused step is legal, with all later steps kept.

    Parameters
    ----------
    schedule
        The schedule; it stays where it is.
    name, stage, args
        The refused step, as for `Schedule.attempt`.

    Returns
    -------
    ReorderedSteps or None
        From the latest state possible. A step that annotated a loop which is now split annotates
        its inner part instead, or its outer part if it is parallel.
    """
    path = schedule.node.path()
    for place in range(len(path) - 2, max(len(path) - 2 - MAX_STEPS_BACK, -1), -1):
        fork = schedule.fork("tried")
        fork.jump(path[place].id)
        later = [node.step for node in path[place + 1 :] if node.step is not None]
        try:
            first = fork.attempt(name, stage, args)
        except ScheduleError:  # the stage is made later
            return None
        if not isinstance(first.verdict, Illegal) and first.step is not None:
            again = _replayed(fork.after(first), later)
            if again is not None:
                return ReorderedSteps(path[place].id, later[0], (first.step, *again))
    return None


def _replayed(schedule: Schedule, steps: Sequence[Step]) -> tuple[Step, ...] | None:
    """Replay steps from the state of a schedule; None if one of them is refused."""
    taken: list[Step] = []
    for step in steps:
        found = _attempt(schedule, step) or _attempt(schedule, _on_split_part(step))
        if found is None or found.step is None:
            return None
        taken.append(found.step)
        schedule = schedule.after(found)
    return tuple(taken)


def _on_split_part(step: Step) -> Step:
    """Return an annotation step for the part of its loop that gets it after a split."""
    if step.primitive not in ANNOTATED_PART:
        return step
    return replace(
        step, args={**step.args, "axis": f"{step.args['axis']}.{ANNOTATED_PART[step.primitive]}"}
    )


def _attempt(schedule: Schedule, step: Step) -> Attempt | None:
    """Return what a step leads to, or None if it is refused or names a loop that does not exist."""
    try:
        attempt = schedule.attempt(step.primitive, step.stage, decode(schedule.state, step))
    except ScheduleError:
        return None
    return None if isinstance(attempt.verdict, Illegal) else attempt
