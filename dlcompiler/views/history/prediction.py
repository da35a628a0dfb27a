"""What a learner predicted of a step, beside what happened and one sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.views.memory.metrics import Metric
from dlcompiler.views.render.units import format_count

SAME = "about the same"
SPEEDS = ("faster", SAME, "slower")
FACTORS = ("less than 1.5×", "1.5× to 3×", "3× to 10×", "more than 10×")
_BOUNDS = (1.5, 3.0, 10.0)
NO_LEVEL = "none"
"""The answer that the traffic of no level changes."""
SAME_WITHIN = 0.1
"""Times that differ by less, as a share, are about the same: the machine is noisy."""
_CHANGED_BY = 0.05
"""Least change of a traffic that counts, as a share."""
OPEN = "Not measured yet."
NOTHING_COUNTED = (
    "Operations, predicted traffic and iterations at once are as before: a difference comes from "
    "what these do not count, such as strides, registers and the cost of loops."
)


Verdict = Literal["right", "wrong", "open", "unsaid"]
"""Whether an answer was right; ``open``: it is not known yet; ``unsaid``: there was no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a learner said before a step was applied; '' where nothing was said."""

    speed: str = ""
    """One of `SPEEDS`."""
    factor: str = ""
    """One of `FACTORS`."""
    level: str = ""
    """The cache between which and the level behind it the traffic changes, or `NO_LEVEL`."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a state."""

    title: str
    seconds: float | None = None
    """Median time of a call [s]; None if it is not measured."""
    spread_s: float = 0.0
    moved_bytes: Mapping[str, int] = field(default_factory=dict)
    """Predicted traffic of each cache by its name, nearest first [byte]."""
    metrics: Sequence[Metric] = ()


class Line(TypedDict):
    """One question with its answer and the outcome."""

    question: str
    said: str
    was: str
    verdict: Verdict
    kind: str
    """Where the outcome comes from: ``measured``, ``predicted``."""


class Reveal(TypedDict):
    """What was predicted, what happened, and why."""

    title: str
    summary: str
    lines: list[Line]
    why: str
    hint: str
    """What is still to be measured; '' if nothing."""


def reveal(title: str, answer: Answer, before: Facts, after: Facts, *, has_times: bool) -> Reveal:
    """Compare what a learner predicted of a step with what happened.

    Parameters
    ----------
    title
        The step in words.
    answer
        What was predicted.
    before, after
        The states before and after the step.
    has_times
        Whether programs for the target are measured.

    Examples
    --------
    >>> before, after = Facts("a", 0.004), Facts("b", 0.001)
    >>> found = reveal("parallel", Answer("faster"), before, after, has_times=True)
    >>> found["lines"][0]["was"], found["lines"][0]["verdict"]
    ('4.0× faster: 4 ms → 1 ms', 'right')
    """
    ratio = _ratio(before, after)
    direction = _direction(before, after, ratio)
    lines = [_speed(answer, before, after, ratio), _factor(answer, ratio, direction)]
    lines = lines if has_times else []
    lines = [line for line in lines if line["was"] != ""]
    if after.moved_bytes:
        lines.append(_level(answer, before, after))
    right = sum(line["verdict"] == "right" for line in lines)
    judged = sum(line["verdict"] in ("right", "wrong") for line in lines)
    return {
        "title": title,
        "summary": f"{right} of {judged} right." if judged else "Nothing is decided yet.",
        "lines": lines,
        "why": _why(before, after, direction),
        "hint": _hint(before, after) if has_times else "",
    }


def between(name: str, names: Sequence[str]) -> str:
    """Return the place of a traffic in words.

    Examples
    --------
    >>> between("L1d", ["L1d", "L2"]), between("L2", ["L1d", "L2"])
    ('between L1d and L2', 'between L2 and memory')
    """
    names = [*names, "memory"]
    return f"between {name} and {names[names.index(name) + 1]}"


def _ratio(before: Facts, after: Facts) -> float | None:
    """Return the speed of `after` as a multiple of that of `before`; None if it is unknown."""
    return before.seconds / after.seconds if before.seconds and after.seconds else None


def _direction(before: Facts, after: Facts, ratio: float | None) -> str:
    """Return one of `SPEEDS`, or '' if the times are unknown."""
    if ratio is None or before.seconds is None or after.seconds is None:
        return ""
    is_noise = abs(before.seconds - after.seconds) <= max(before.spread_s, after.spread_s)
    if is_noise or abs(math.log(ratio)) < math.log(1 + SAME_WITHIN):
        return SAME
    return SPEEDS[0] if ratio > 1 else SPEEDS[2]


def _speed(answer: Answer, before: Facts, after: Facts, ratio: float | None) -> Line:
    direction, was = _direction(before, after, ratio), OPEN
    if ratio is not None and before.seconds is not None and after.seconds is not None:
        times = f"{format_seconds(before.seconds)} → {format_seconds(after.seconds)}"
        size = f"{format_ratio(max(ratio, 1 / ratio))} " if direction != SAME else ""
        was = f"{size}{direction}: {times}"
    return _line("The program is", answer.speed, was, direction and answer.speed == direction)


def _factor(answer: Answer, ratio: float | None, direction: str) -> Line:
    """Judge the factor: it is wrong if it was said of the other direction."""
    if ratio is None or not answer.factor:
        return _line("by", answer.factor, "" if not answer.factor else OPEN, None)
    size = max(ratio, 1 / ratio)
    bucket = FACTORS[sum(size >= bound for bound in _BOUNDS)]
    is_right = answer.factor == bucket and answer.speed in ("", direction)
    return _line("by", answer.factor, bucket, is_right)


def _level(answer: Answer, before: Facts, after: Facts) -> Line:
    names = list(after.moved_bytes)
    changes = {
        name: after.moved_bytes[name] / old
        for name, old in before.moved_bytes.items()
        if old and name in after.moved_bytes
    }
    changed = {name: each for name, each in changes.items() if abs(each - 1) > _CHANGED_BY}
    was = ", ".join(f"{between(name, names)} {format_ratio(x)}" for name, x in changed.items())
    said = answer.level if answer.level in ("", NO_LEVEL) else between(answer.level, names)
    is_right = answer.level in changed if changed else answer.level == NO_LEVEL
    known = is_right if before.moved_bytes else None
    line = _line("Traffic changes", said, was or NO_LEVEL, known)
    return {**line, "kind": "predicted"}


def _line(question: str, said: str, was: str, is_right: bool | str | None) -> Line:
    verdict: Verdict
    if not said:
        verdict = "unsaid"
    elif was == OPEN or is_right is None:
        verdict = "open"
    else:
        verdict = "right" if is_right else "wrong"
    return {
        "question": question, "said": said or "no answer", "was": was, "verdict": verdict,
        "kind": "" if was == OPEN else "measured",
    }  # fmt: skip


def _hint(before: Facts, after: Facts) -> str:
    missing = [facts for facts in (before, after) if facts.seconds is None]
    if not missing:
        return ""
    if len(missing) == 2:
        return "Neither state is measured yet."
    if missing[0] is after:
        return "This state is not measured yet: Run measures it."
    return f"The state before, {before.title}, is not measured yet."


# -- why ------------------------------------------------------------------------------------------


def _why(before: Facts, after: Facts, direction: str) -> str:
    """Return one sentence from the figures that changed."""
    gains, costs = _phrases(before, after)
    if not gains and not costs:
        return NOTHING_COUNTED
    if direction == SAME:
        return f"The time stays although {_joined(gains + costs)}: something else limits it."
    own, other = (costs, gains) if direction == SPEEDS[2] else (gains, costs)
    if direction and not own:
        return (
            f"The counted figures say otherwise: {_joined(other)}. What they do not count, such as "
            "strides, tails and the start of threads, weighs more here."
        )
    first, second = (own, other) if own else (other, [])
    text = f"{_joined(first)}{f', although {_joined(second)}' if second else ''}."
    return text[0].upper() + text[1:]


def _phrases(before: Facts, after: Facts) -> tuple[list[str], list[str]]:
    """Return what speaks for a faster and for a slower program, the largest change first."""
    found: list[tuple[float, bool, str]] = []
    old, new = ({m["name"]: m["value"] for m in each.metrics} for each in (before, after))
    for name, words in (("at once", "may run at once"), ("operations", "are computed")):
        a, b = old.get(name), new.get(name)
        if a and b and a != b:
            noun = "iterations" if name == "at once" else "operations"
            text = f"{format_count(int(b))} {noun} {words} instead of {format_count(int(a))}"
            found.append((abs(math.log(b / a)), (b > a) == (name == "at once"), text))
    names = list(after.moved_bytes)
    for name, size in before.moved_bytes.items():
        moved = after.moved_bytes.get(name)
        if size and moved and abs(moved / size - 1) > _CHANGED_BY:
            change = moved / size
            how = f"{format_ratio(max(change, 1 / change))} {'less' if change < 1 else 'more'}"
            text = f"{how} data moves {between(name, names)} (predicted)"
            found.append((abs(math.log(change)), change < 1, text))
    found.sort(key=lambda item: -item[0])
    return [t for _, good, t in found if good][:2], [t for _, good, t in found if not good][:2]


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(parts)
