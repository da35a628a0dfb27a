"""Suggestions: what to do instead of a refused step, found by trying candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError, shown_number
from dlcompiler.ir import Axis
from dlcompiler.schedule.arguments import plain_arguments
from dlcompiler.schedule.moves.candidates import Call, Candidate, Refusal, Source
from dlcompiler.schedule.moves.other_arguments import other_arguments
from dlcompiler.schedule.moves.other_moves import other_moves
from dlcompiler.schedule.moves.other_orders import earlier, earlier_structure, prepared
from dlcompiler.schedule.moves.other_targets import other_targets
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.state import StageState, Step
from dlcompiler.schedule.verdict import Illegal

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt, Schedule

SOURCES: tuple[Source, ...] = (
    other_arguments,
    prepared,
    earlier_structure,
    other_targets,
    other_moves,
    earlier,
)
"""Where candidates come from, ranked: the first sources keep most of what was asked for."""
MAX_ATTEMPTS = 64
"""Most calls that are tried for one suggestion: 5 ms, since the Explorer shows it on hover."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Legal steps to apply, one after another, instead of a refused step."""

    text: str
    """In words: ``use 4 instead of 0``, ``vectorize j instead``."""
    steps: tuple[Step, ...]
    start: str = ""
    """Id of the state to go back to first; '' if the steps follow on the current state."""


def suggestion(
    schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]
) -> Suggestion | None:
    """Return the legal change nearest to a refused step.

    The `SOURCES` are tried in the order of their rank, and the candidates of each source in the
    order of their distance from the refused step. The first one that is legal is the suggestion.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from. It stays there, and its history does not grow.
    name, stage, args
        The refused step, as for `Schedule.attempt`.

    Returns
    -------
    Suggestion or None
        None if the step is legal, or none of the first `MAX_ATTEMPTS` calls leads to a legal one.
    """
    if not isinstance(schedule.attempt(name, stage, args).verdict, Illegal):
        return None
    plain = plain_arguments(REGISTRY[name], args)
    refused = Refusal(schedule.node, Call(name, stage, plain))
    trials = Trials(schedule, MAX_ATTEMPTS)
    for source in SOURCES:
        for candidate in source(refused):
            attempts = trials.attempts(candidate)
            if attempts is not None:
                return _suggestion(refused, candidate, attempts)
            if trials.is_over:
                return None
    return None


class Trials:
    """Trials of candidates on a schedule; the total number of calls is limited."""

    def __init__(self, schedule: Schedule, limit: int) -> None:
        self._schedule = schedule
        self._left = limit

    @property
    def is_over(self) -> bool:
        """Tell whether the limit is reached."""
        return self._left <= 0

    def attempts(self, candidate: Candidate) -> list[Attempt] | None:
        """Return the attempt of each call; None if a call is refused or the limit is reached.

        No state is added to the history.
        """
        attempts: list[Attempt] = []
        schedule = self._schedule
        if candidate.start is not None:
            schedule = schedule.fork("tried")
            schedule.jump(candidate.start.id)
        for item in candidate.calls:
            if self.is_over:
                return None
            self._left -= 1
            try:
                call = item if isinstance(item, Call) else item(attempts[-1])
                attempt = schedule.attempt(call.name, call.stage, call.args)
            except ScheduleError:  # a loop or a stage that the call names does not exist there
                return None
            if isinstance(attempt.verdict, Illegal):
                return None
            attempts.append(attempt)
            schedule = schedule.after(attempt)
        return attempts


def _suggestion(refused: Refusal, candidate: Candidate, attempts: Sequence[Attempt]) -> Suggestion:
    steps = tuple(attempt.step for attempt in attempts if attempt.step is not None)
    if candidate.start is None:
        return Suggestion(_text(refused, steps), steps)
    before = next(node for node in refused.node.path() if node.parent is candidate.start)
    text = f"{_phrase(steps[0], refused.stage)} earlier, before “{before.step}”"
    return Suggestion(text, steps, candidate.start.id)


def _text(refused: Refusal, steps: Sequence[Step]) -> str:
    """Return the suggested steps as text, in relation to the refused call."""
    only, wanted = steps[0], refused.call
    if len(steps) > 1:
        return ", then ".join(_phrase(step, refused.stage) for step in steps)
    if only.primitive == wanted.name and only.stage == wanted.stage:
        old = {name: _stored(value, refused.stage) for name, value in wanted.args.items()}
        changed = {name: value for name, value in only.args.items() if value != old.get(name)}
        if changed and all(isinstance(value, int) for value in changed.values()):
            new = " × ".join(str(value) for value in changed.values())
            given = " × ".join(_shown(wanted.args.get(name)) for name in changed)
            return f"use {new} instead of {given}"
    return f"{_phrase(only, refused.stage)} instead"


def _shown(value: Any) -> str:
    """Return an argument as text; strings are quoted, so that '4' differs from 4."""
    return repr(value) if isinstance(value, str) else shown_number(value)


def _stored(value: Any, stage: StageState) -> Any:
    """Return an argument as a step stores it: axes by name; text for what no step can store."""
    if isinstance(value, Axis):
        return stage.paths.get(value, value.name)
    if isinstance(value, tuple):
        return [_stored(item, stage) for item in value]
    # An expression or an array has a comparison of its own, which returns no bool.
    return value if isinstance(value, str | int | float) else repr(value)


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
