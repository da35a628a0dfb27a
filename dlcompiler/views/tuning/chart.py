"""Parts of charts: scales, axes, legends, and the looks of their series."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Mark, Role

LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 22.0, 38.0
"""Margins of a plot, for its labels [px]."""
NARROWEST, WIDEST, USUAL = 420.0, 1200.0, 640.0
"""Least, largest and usual width of a picture [px]."""
BLUE, ORANGE, GREEN, PINK, AMBER, SKY, YELLOW = HUES
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4")
"""Dash patterns, so that lines can be distinguished without their colours."""
VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
"""Slow to fast. **Source:** S. van der Walt, N. Smith, matplotlib 1.5, 2015; eight steps."""
_CHAR_PX = 6.6
Format: TypeAlias = Callable[[float], str]
"""Formats a value of an axis."""
_CEILINGS = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 4.8, 6, 8, 10)
_STEPS = (1, 2, 5, 10)


def nice_ceiling(value: float) -> float:
    """Return a round number of at least `value`, whose quarters are round too.

    Examples
    --------
    >>> nice_ceiling(91.2), nice_ceiling(0.3), nice_ceiling(0.0)
    (100.0, 0.32, 1.0)
    """
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = (step * power for step in _CEILINGS if value <= step * power * 1.0001)
    return float(f"{next(fitting):.3g}")


@dataclass(frozen=True, slots=True)
class Scale:
    """Map values to pixels, linearly or logarithmically.

    Examples
    --------
    >>> scale = Scale(1e-4, 1e-2, 0, 100, is_log=True)
    >>> scale.at(1e-3), scale.ticks()
    (50.0, [0.0001, 0.001, 0.01])
    """

    low: float
    high: float
    start: float
    """Position of `low` [px]."""
    end: float
    """Position of `high` [px]."""
    is_log: bool = False
    is_whole: bool = False
    """Whether ticks are whole numbers only."""

    def at(self, value: float) -> float:
        """Return the position of a value, clamped to the ends of the scale [px]."""
        low, high, value = (
            (math.log(max(each, 1e-300)) for each in (self.low, self.high, value))
            if self.is_log
            else (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.0
        return round(self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), 1)

    def ticks(self, most: int = 6) -> list[float]:
        """Return the values of the ticks."""
        if self.is_log:
            return _decades(self.low, self.high)
        most = max(min(most, int(self.high - self.low)), 1) if self.is_whole else most
        return _steps(self.low, self.high, most)


def _steps(low: float, high: float, most: int) -> list[float]:
    span = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next((s * power for s in _STEPS if span / (s * power) <= most), 10 * power)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [float(f"{(first + n) * step:.6g}") for n in range(count)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [float(f"{f * 10.0**p:.6g}") for p in range(first, last + 1) for f in factors]
        inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(inside) >= 3:
            break
    stride = -(-len(inside) // 6)
    return inside[::stride]


def log_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale with round ends that holds all positive values."""
    low, high = min(values, default=1e-3), max(values, default=1e-2)
    unit = 10.0 ** math.floor(math.log10(low))
    low = max(each * unit for each in (0.5, 1, 2, 5) if each * unit <= low * 1.0001)
    return Scale(low, max(_above(high), 2 * low), start, end, is_log=True)


def _above(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return next(each * unit for each in (1, 2, 5, 10) if each * unit >= value * 0.9999)


def number(value: float) -> str:
    """Return a number as an axis shows it."""
    return format_rate(value)


def seconds(value: float) -> str:
    """Return a time as an axis shows it."""
    return format_seconds(value)


def axes(
    x: Scale,
    y: Scale,
    labels: tuple[str, str],
    formats: tuple[Format, Format] = (number, number),
) -> list[Mark]:
    """Return the frame of a plot: grid lines, tick values, and the titles of both axes."""
    marks: list[Mark] = []
    for value in y.ticks(5):
        at = y.at(value)
        marks.append(line(x.start, at, x.end, at, "grid"))
        marks.append(text(x.start - 6, at + 4, formats[1](value), "end"))
    most = max(int((x.end - x.start) // 70), 2)
    for value in x.ticks(most):
        at = x.at(value)
        marks.append(line(at, y.start, at, y.start + 4, "axis"))
        marks.append(text(at, y.start + 17, formats[0](value), "middle"))
    marks.append(line(x.start, y.start, x.end, y.start, "axis"))
    marks.append(text(x.end, y.start + 33, labels[0], "end", "label"))
    marks.append(text(max(x.start - LEFT + 6, 4), y.end - 9, labels[1], "start", "label"))
    return marks


def line(x: float, y: float, x2: float, y2: float, role: Role = "axis") -> Mark:
    """Return a straight line."""
    return {"shape": "line", "role": role, "x": x, "y": y, "x2": x2, "y2": y2}


Anchor: TypeAlias = Literal["start", "middle", "end"]


def text(x: float, y: float, words: str, anchor: Anchor = "start", role: Role = "soft") -> Mark:
    """Return a text; `anchor` says which end of it is at `x`."""
    return {
        "shape": "text",
        "role": role,
        "x": round(x, 1),
        "y": round(y, 1),
        "text": words,
        "anchor": anchor,
    }


def clipped(words: str, width: float) -> str:
    """Return a text cut to fit a width [px].

    Examples
    --------
    >>> clipped("bytes of the second level", 80)
    'bytes of th…'
    """
    most = max(int(width / _CHAR_PX), 2)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def wrapped(words: str, width: float) -> list[str]:
    """Return the lines of a text that fit a width [px].

    Examples
    --------
    >>> wrapped("bytes of the second level", 80)
    ['bytes of the', 'second level']
    """
    return textwrap.wrap(words, max(int(width / _CHAR_PX), 2)) or [""]


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points [px]."""
    return "".join(f"{'L' if n else 'M'}{x:g} {y:g}" for n, (x, y) in enumerate(points))


def staircase(points: Sequence[tuple[float, float]], end: float) -> str:
    """Return a step curve: level from each point to the next, and from the last to `end` [px]."""
    parts = [f"H{x:g}V{y:g}" if n else f"M{x:g} {y:g}" for n, (x, y) in enumerate(points)]
    return "".join(parts) + (f"H{end:g}" if parts else "")


def legend(items: Sequence[tuple[str, Mark]], x: float, y: float, width: float) -> list[Mark]:
    """Return a legend: a sample of each mark with its label."""
    marks: list[Mark] = []
    at, row = x, 0
    for words, sample in items:
        needed = 20 + len(words) * _CHAR_PX + 14
        if at + needed > x + width and at > x:
            at, row = x, row + 1
        place = y + 18 * row
        marks.append(_moved(sample, at + 8, place - 4))
        marks.append(text(at + 20, place, words))
        at += needed
    return marks


def _moved(sample: Mark, x: float, y: float) -> Mark:
    moved: Mark = {**sample}
    if sample["shape"] == "dots":
        moved["xy"] = [round(x, 1), round(y, 1)]
    else:
        moved |= {"x": x - 8, "y": y, "x2": x + 8, "y2": y}
    return moved
