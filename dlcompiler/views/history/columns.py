"""Numbers of two states in columns: each row has one unit, and as many decimals for both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from dlcompiler.runtime.timing import format_ratio
from dlcompiler.schedule import Node
from dlcompiler.views.history.tree import note_text
from dlcompiler.views.memory.metrics import Metric

MOST_DECIMALS = 4
NONE = "–"
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "byte": (
        (1, "B"),
        (2**10, "KiB"),
        (2**20, "MiB"),
        (2**30, "GiB"),
        (2**40, "TiB"),
        (2**50, "PiB"),
        (2**60, "EiB"),
    ),
    "s": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "op": ((1, "op"), (1e3, "k op"), (1e6, "M op"), (1e9, "G op"), (1e12, "T op")),
}
"""Unit of a value -> the units to show it in, each with its size."""


class NumberPair(TypedDict):
    """A number of both states."""

    name: str
    kind: str
    """Where it comes from: ``exact``, ``predicted``, ``measured``."""
    unit: str
    """The unit of both numbers."""
    a: str
    """The number; – if it is unknown."""
    b: str
    change: str
    """B as a multiple of A, or ''."""


class NotePair(TypedDict):
    """A note of both states, such as the result of a verification, as text."""

    name: str
    a: str
    b: str


def number_pairs(a: Sequence[Metric], b: Sequence[Metric]) -> list[NumberPair]:
    """Pair the metrics of two states by name: those of A first, then those that only B has."""
    left, right = ({metric["name"]: metric for metric in side} for side in (a, b))
    pairs: list[NumberPair] = []
    for name in dict.fromkeys([*left, *right]):
        one, other = left.get(name), right.get(name)
        known = one or other
        assert known is not None
        pairs.append(_pair(name, known["kind"], known["unit"], (one, other)))
    return pairs


def reasons(metrics: Sequence[Metric]) -> list[str]:
    """Return why metrics are unknown, each reason once."""
    texts = (metric["text"] for metric in metrics if metric["value"] is None)
    return list(dict.fromkeys(texts))


def time_pairs(a: Node, b: Node, target: str = "") -> tuple[list[NumberPair], list[str]]:
    """Return the measured times of two states, and why they cannot be compared if that is so.

    If both are of code for one target, and `target` is another one, their name says so.
    """
    notes = [node.notes.get("measured") for node in (a, b)]
    seconds = [getattr(note, "seconds", None) for note in notes]
    if seconds == [None, None]:
        return [], []
    one, other = (None if each is None else _time(each) for each in seconds)
    pair = _pair("time of a call", "measured", "s", (one, other))
    targets = [getattr(note, "target", "") for note in notes]
    known = {each for each, time in zip(targets, seconds, strict=True) if time is not None}
    if len(known) == 1:
        (own,) = known
        is_other = own and target and own != target
        return [{**pair, "name": f"{pair['name']}, code for {own}"} if is_other else pair], []
    why = f"the times are of code for {targets[0]} (A) and for {targets[1]} (B)"
    return [{**pair, "change": ""}], [why]


def note_pairs(a: Node, b: Node, target: str = "") -> list[NotePair]:
    """Pair the notes of both states as text; those about another target than `target` name it."""
    pairs: list[NotePair] = []
    for kind in dict.fromkeys([*a.notes, *b.notes]):
        one, other = (note_text(node.notes.get(kind, NONE), target) for node in (a, b))
        pairs.append({"name": kind, "a": one, "b": other})
    return pairs


def _time(seconds: float) -> Metric:
    return {"name": "", "value": seconds, "unit": "s", "text": "", "kind": "exact"}


def _pair(
    name: str, kind: str, unit: str, sides: tuple[Metric | None, Metric | None]
) -> NumberPair:
    values = [side["value"] if side else None for side in sides]
    size, shown = _scale(unit, [abs(value) for value in values if value is not None])
    decimals = _decimals([value / size for value in values if value is not None])
    bounds = ["≤ " if side and side["text"].startswith("at most ") else "" for side in sides]
    texts = [
        NONE if value is None else f"{bound}{_text(value / size, decimals)}"
        for value, bound in zip(values, bounds, strict=True)
    ]
    return {
        "name": name, "kind": kind, "unit": shown, "a": texts[0], "b": texts[1],
        "change": _change(values[0], values[1]),
    }  # fmt: skip


def _scale(unit: str, values: Sequence[float]) -> tuple[float, str]:
    """Return the largest unit in which the largest value is at least 1."""
    steps = _SCALES.get(unit, ((1.0, unit),))
    most = max(values, default=0.0)
    return max((step for step in steps if step[0] <= most), default=steps[0])


def _decimals(values: Sequence[float]) -> int:
    """Return how many decimals give each value two digits, and the largest one three."""
    wanted = 0
    for value in values:
        if value and math.isfinite(value) and not float(value).is_integer():
            digits = 3 if abs(value) == max(map(abs, values)) else 2
            wanted = max(wanted, digits - 1 - math.floor(math.log10(abs(value))))
    return min(max(wanted, 0), MOST_DECIMALS)


def _text(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    is_lost = value and not float(text.replace(",", ""))
    return f"< {10.0**-decimals:.{decimals}f}" if is_lost else text


def _change(a: float | None, b: float | None) -> str:
    """Return B / A as text: ``1.3×`` or ``same``; '' if a value is missing or A is ≤ 0."""
    if a is None or b is None or a <= 0:
        return ""
    return "same" if a == b else format_ratio(b / a)
