"""The nearest legal change: what to do instead of a step that is refused, found by trying."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule.moves.alternatives import REORDER_STEPS, Call, Plan, Refusal, plans
from dlcompiler.schedule.moves.step_reordering import reordered_steps
from dlcompiler.schedule.state import StageState, Step
from dlcompiler.schedule.verdict import Illegal

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt, Schedule

MOST_TRIED = 40
"""Candidates that are tried at most: a refusal is answered while the pointer rests on it."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """What to do instead of a refused step: steps that are legal, one after another."""

    text: str
    """In words: ``use 4 instead of 0``, ``vectorize j instead``."""
    steps: tuple[Step, ...]
    start: str = ""
    """Id of the state to go back to first; '' for the steps to follow on the current state."""


def nearest(schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]) -> Nearest | None:
    """Return the nearest legal change to a step that is refused.

    Candidates (`alternatives`) are tried in the order of their distance to what was wanted. One of
    them, or the last, is the step itself, before those that forbid it (`step_reordering`).

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from; it stays there.
    name, stage, args
        The refused step, as for `Schedule.attempt`.

    Returns
    -------
    Nearest or None
        None if the step is legal, or nothing near it is.
    """
    if not isinstance(schedule.attempt(name, stage, args).verdict, Illegal):
        return None
    refused = Refusal(schedule.state, Call(name, stage, args))
    tried = list(itertools.islice(plans(refused), MOST_TRIED))
    for plan in tried if not all(tried) else (*tried, REORDER_STEPS):
        found = _instead(schedule, refused, plan) if plan else _reordered(schedule, refused)
        if found is not None:
            return found
    return None


def _instead(schedule: Schedule, refused: Refusal, plan: Plan) -> Nearest | None:
    attempts = _tried(schedule, plan)
    if attempts is None:
        return None
    steps = tuple(attempt.step for attempt in attempts if attempt.step is not None)
    return Nearest(_text(refused, steps), steps)


def _reordered(schedule: Schedule, refused: Refusal) -> Nearest | None:
    call = refused.call
    found = reordered_steps(schedule, call.name, call.stage, call.args)
    if found is None:
        return None
    wanted = _phrase(found.steps[0], refused.stage)
    return Nearest(f"{wanted} earlier, before “{found.before}”", found.steps, found.start)


def _tried(schedule: Schedule, plan: Plan) -> list[Attempt] | None:
    """Return what the calls of a plan lead to, or None if one of them is refused."""
    attempts: list[Attempt] = []
    for item in plan:
        call = item if isinstance(item, Call) else item(attempts[-1])
        try:
            attempt = schedule.attempt(call.name, call.stage, call.args)
        except ScheduleError:  # its arguments make no sense there
            return None
        if isinstance(attempt.verdict, Illegal):
            return None
        attempts.append(attempt)
        schedule = schedule.after(attempt)
    return attempts


def _text(refused: Refusal, steps: Sequence[Step]) -> str:
    """Return the steps in words, seen from what was wanted."""
    only, wanted = steps[0], refused.call
    if len(steps) > 1:
        return ", then ".join(_phrase(step, refused.stage) for step in steps)
    if only.primitive == wanted.name and only.stage == wanted.stage:
        changed = {name: value for name, value in only.args.items() if value != _old(refused, name)}
        if changed and all(isinstance(value, int) for value in changed.values()):
            new = " × ".join(str(value) for value in changed.values())
            old = " × ".join(str(wanted.args.get(name)) for name in changed)
            return f"use {new} instead of {old}"
    return f"{_phrase(only, refused.stage)} instead"


def _old(refused: Refusal, name: str) -> Any:
    """Return what a refused argument looks like in a step."""
    value = refused.call.args.get(name)
    paths = refused.stage.paths
    if isinstance(value, Axis):
        return paths.get(value, value.name)
    if isinstance(value, tuple):
        return [paths.get(x, x.name) if isinstance(x, Axis) else x for x in value]
    return value


def _phrase(step: Step, stage: StageState) -> str:  # noqa: C901 - one case per primitive
    args, own = step.args, "" if step.stage == stage.name else f"{step.stage}."
    match step.primitive:
        case "split":
            number = f"by {args['factor']}" if "factor" in args else f"in {args['nparts']} parts"
            return f"split {own}{args['axis']} {number}"
        case "compute_at" | "compute_group_at":
            what = step.stage if step.primitive == "compute_at" else f"the group of {step.stage}"
            return f"compute {what} at {args['parent']}.{args['axis']}"
        case "compute_inline":
            return f"inline {step.stage}"
        case "compute_root":
            return f"compute {step.stage} on its own"
        case "reorder":
            return f"reorder to {', '.join(args['axes'])}"
        case "fuse":
            return f"fuse {' and '.join(args['axes'])}"
        case "cache_read" | "cache_write":
            return f"{step.primitive} {step.stage} in {args['scope']}"
        case "bind":
            return f"bind {own}{args['axis']} to {args['thread']}"
        case "tensorize":
            return f"tensorize {own}{args['axis']} with {args['intrin']}"
        case "vectorize" | "unroll" | "parallel" | "rfactor":
            return f"{step.primitive} {own}{args['axis']}"
    return str(step)
