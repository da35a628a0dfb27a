"""Points of a space for pictures: knob positions, colours by rate, and a legal sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.runtime.provenance import Kind
from dlcompiler.space import Config, Space
from dlcompiler.views.render.scene import Mark
from dlcompiler.views.tuning.chart import VIRIDIS, nice_ceiling
from dlcompiler.views.tuning.watched import TrialRow, Watched

MOST_LEGAL = 4096
"""Largest number of points drawn as the sample of legal configs."""
_SEED = 0
Digits: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """Data of a space that need no trials: a sample of legal points, and the user's own config."""

    space: Space
    legal: tuple[int, ...]
    """Points that the filters allow: all of them, or a random sample in random order."""
    legal_values: frozenset[tuple[int, int]]
    """Values that occur in legal points, as (number of the knob, position of the value)."""
    legal_digits: tuple[Digits, ...]
    """The positions of the knobs' values at each of them."""
    own: int | None = None
    """The user's own config, as a point."""


def ground(space: Space, own: Config | None = None) -> Ground:
    """Sample the legal points of a space; call once for each space, since it is slow.

    Raises
    ------
    TuningError
        If the user's own config belongs to another space.
    """
    point = None if own is None else space.index_of(space.adopt(own, remap=True))
    legal = tuple(space.sample(MOST_LEGAL, _SEED))
    found = tuple(all_digits(space, legal))
    values = frozenset(pair for each in found for pair in enumerate(each))
    return Ground(space, legal, values, found, point)


def all_digits(space: Space, points: Sequence[int]) -> list[Digits]:
    """Return the position of each knob's value at each point."""
    return [tuple(each) for each in space.digits(list(points)).tolist()] if points else []


def value_text(value: object) -> str:
    """Return a value of a knob as pictures show it.

    Examples
    --------
    >>> value_text(True), value_text(""), value_text((4, 16))
    ('yes', '–', '4×16')
    """
    if isinstance(value, tuple):
        return "×".join(map(value_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or "–"


def top_rate(seen: Watched) -> float:
    """Return the upper end of the scale of rates [GFLOP/s]."""
    return nice_ceiling(max((row.gflops or 0 for row in seen.rows), default=1.0))


def rate_color(row: TrialRow, top: float) -> str:
    """Return the colour of a trial by its rate: dark is slow, bright is fast."""
    share = min(max((row.gflops or 0) / top, 0.0), 0.999)
    return VIRIDIS[int(share * len(VIRIDIS))]


def timed(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """Return the successful trials, which have a time."""
    return [row for row in rows if row.gflops]


def scale_of_rates(top: float, x: float, y: float, kind: Kind) -> list[Mark]:
    """Return the legend of the colour scale of rates."""
    marks: list[Mark] = [
        {"shape": "rect", "role": "cell", "x": x + n * 18, "y": y, "w": 18, "h": 12, "fill": color}
        for n, color in enumerate(VIRIDIS)
    ]
    words = f"0 to {top:g} GFLOP/s, {kind}"
    marks.append({"shape": "text", "role": "soft", "x": x + len(VIRIDIS) * 18 + 8, "y": y + 10,
                  "text": words, "anchor": "start"})  # fmt: skip
    return marks
