"""Trials as signs on a chart: each origin of a trial has its own shape and colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from dlcompiler.views.render.scene import Glyph, Mark
from dlcompiler.views.tuning.chart import AMBER, BLUE, GREEN, ORANGE, SKY
from dlcompiler.views.tuning.watched import TrialRow

MOST_DOTS = 2_000
"""Largest number of trials drawn; beyond it every n-th is, to keep pictures quick to send."""
CHUNK = 64
"""Number of consecutive trials in one mark, so that a new trial changes the last mark only."""
Kind: TypeAlias = Literal["chosen by the search", "near good ones", "at random", "default or given"]
_KINDS: dict[str, Kind] = {
    "model": "chosen by the search",
    "grid": "chosen by the search",
    "mutation": "near good ones",
    "crossover": "near good ones",
    "neighbour": "near good ones",
    "random": "at random",
    "default": "default or given",
    "history": "default or given",
    "user": "default or given",
}
_LOOKS: dict[Kind, tuple[Glyph, str]] = {
    "chosen by the search": ("disc", BLUE),
    "near good ones": ("disc", SKY),
    "at random": ("ring", AMBER),
    "default or given": ("diamond", GREEN),
}


def key_of(index: int) -> str:
    """Return the key of a trial, which selects it in every picture."""
    return f"trial {index}"


def index_of(key: str) -> int | None:
    """Return the number of a trial from its key; None if it is no key of a trial.

    Examples
    --------
    >>> index_of("trial 12"), index_of("trial x"), index_of("C/k")
    (12, None, None)
    """
    word, _, digits = key.partition(" ")
    return int(digits) if word == "trial" and digits.isdecimal() and len(digits) < 10 else None


def kind_of(row: TrialRow) -> Kind:
    """Return the group of a trial in the legend, by its origin."""
    return _KINDS.get(row.origin, "default or given")


def stride_of(count: int) -> int:
    """Return the step n of "every n-th trial is drawn", a power of two.

    With powers of two, a trial that is drawn after the step doubles was drawn before it.

    Examples
    --------
    >>> stride_of(2000), stride_of(2001), stride_of(10_000)
    (1, 2, 8)
    """
    stride = 1
    while count > MOST_DOTS * stride:
        stride *= 2
    return stride


def dots(
    rows: Sequence[TrialRow], place: Callable[[TrialRow], tuple[float, float]]
) -> Iterator[Mark]:
    """Yield the signs of trials, in chunks of their numbers.

    Parameters
    ----------
    rows
        What to draw.
    place
        Returns the position of a trial [px].
    """
    chunks: dict[tuple[int, Kind], list[TrialRow]] = {}
    for row in rows:
        chunks.setdefault((row.index // CHUNK, kind_of(row)), []).append(row)
    for (_, kind), members in sorted(chunks.items()):
        xy = [value for row in members for value in place(row)]
        yield sign(kind) | {"xy": xy, "keys": [key_of(row.index) for row in members]}


def sign(kind: Kind) -> Mark:
    """Return the sign of a group of trials, as a mark without positions."""
    glyph, color = _LOOKS[kind]
    return glyph_mark(glyph, color)


def glyph_mark(glyph: Glyph, color: str, r: float = 3.0) -> Mark:
    """Return signs of a glyph and a colour, as a mark without positions."""
    mark: Mark = {"shape": "dots", "role": "dots", "glyph": glyph, "r": r, "xy": []}
    if glyph in ("disc", "diamond"):
        return mark | {"fill": color}
    return mark | {"fill": "none", "stroke": color}


def kinds_in(rows: Sequence[TrialRow]) -> list[tuple[str, Mark]]:
    """Return the legend's items for the groups that occur."""
    found = {kind_of(row) for row in rows}
    return [(kind, sign(kind)) for kind in _LOOKS if kind in found]


def ring_round(x: float, y: float, key: str) -> Mark:
    """Return the ring around the chosen trial."""
    return {"shape": "circle", "role": "warn", "x": x, "y": y, "r": 7, "keys": [key],
            "title": f"{key}, chosen"}  # fmt: skip


FAILED = ORANGE
