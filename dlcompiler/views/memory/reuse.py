"""Histogram of reuse distances by tensor, with the capacities of the caches as marks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from dlcompiler.ir import Buffer
from dlcompiler.simulate.cache.distances import ReuseDistances
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.scene import Cell, Mark
from dlcompiler.views.render.units import format_bytes, format_count, percent

_LEFT, _RIGHT, _NAME_PX = 4.0, 360.0, 76.0
_ROW, _BAR, _LINE = 26.0, 20.0, 17.0
_LEAST = 1.5
"""Height of the lowest bar, which must be seen; [px]."""
_MOST_NAME = 10
_FIRST = "first"


def draw_reuse(
    reuse: ReuseDistances, colors: Mapping[Buffer, str], y: float, marks: list[Mark]
) -> float:
    """Draw, for each tensor, the share of its accesses with each reuse distance.

    Parameters
    ----------
    reuse
        The distances.
    colors
        The tensors to draw, with their colours.
    y
        Where the drawing begins [px].
    marks
        Gets the marks.

    Returns
    -------
    float
        Where it ends [px].
    """
    flow = Flow(marks, _LEFT, y)
    flow.text("Reuse distances", "name")
    flow.text(_traced(reuse), "soft")
    y = flow.y + _LINE
    shown = [tensor for tensor in reuse.by_tensor if tensor in colors]
    histograms = {tensor: reuse.histogram(tensor) for tensor in shown}
    lines = [level.bytes // reuse.line_bytes for level in reuse.target.caches]
    bins = max([math.log2(max(lines)) + 2, *(len(bins) for bins, _ in histograms.values())])
    left = _LEFT + _NAME_PX
    cell = (_RIGHT - left) / (math.ceil(bins) + 1.5)  # a gap, then the first accesses
    y = _head(reuse, lines, left, cell, y, marks)
    top = y
    for tensor, (counts, first) in histograms.items():
        places = [(left + n * cell, count, words_of(n)) for n, count in enumerate(counts)]
        places.append((_RIGHT - cell, first, _FIRST))
        _draw_row(tensor, places, cell, colors[tensor], y, marks)
        y += _ROW
    for level, count in zip(reuse.target.caches, lines, strict=True):
        x = round(left + _position(count) * cell, 1)
        title = f"{level.name} holds {format_bytes(level.bytes)}: {count:,} lines"
        marks.append({"shape": "line", "role": "capacity", "x": x, "y": top - 3, "x2": x, "y2": y,
                      "title": title})  # fmt: skip
    return _draw_axis(left, cell, y, marks)


def words_of(number: int) -> str:
    """Return the distances of a bin in words.

    Examples
    --------
    >>> [words_of(n) for n in range(4)]
    ['0', '1', '2–3', '4–7']
    """
    low, high = (1 << number) // 2, (1 << number) - 1
    return str(low) if low == high or number == 0 else f"{format_count(low)}–{format_count(high)}"


def reuse_rows(reuse: ReuseDistances | None) -> Iterator[list[Cell]]:
    """Yield the histogram as rows of the table of the caches."""
    if reuse is None:
        return
    for tensor in reuse.by_tensor:
        counts, first = reuse.histogram(tensor)
        named = [(f"reuse distance {words_of(n)}", count) for n, count in enumerate(counts)]
        for name, count in (*named, ("first access to a line", first)):
            if count:
                yield [name, tensor.name, "the program", count, None, None, None, "", None]


def _traced(reuse: ReuseDistances) -> str:
    unit = f"in lines of {reuse.line_bytes} B"
    if not reuse.sampled:
        return unit
    counts = f"{format_count(reuse.accesses)} of {format_count(reuse.whole_accesses)}"
    return f"{unit}; sample: {counts} accesses"


def _position(distance: int) -> float:
    """Return the place of a distance on the axis, in bins: a power of two begins a bin."""
    return math.log2(distance) + 1 if distance else 0.0


def _head(
    reuse: ReuseDistances, lines: list[int], left: float, cell: float, y: float, marks: list[Mark]
) -> float:
    """Write the names of the caches above their marks; a name that has no room is left out."""
    taken = left
    for level, count in zip(reuse.target.caches, lines, strict=True):
        x = left + _position(count) * cell
        width = 7.0 * len(level.name)
        if x - width / 2 >= taken:
            marks.append({"shape": "text", "role": "soft", "x": round(x, 1), "y": y + 11,
                          "anchor": "middle", "text": level.name})  # fmt: skip
            taken = x + width / 2 + 4
    return y + _LINE


def _draw_axis(left: float, cell: float, y: float, marks: list[Mark]) -> float:
    """Write distances below their bins: 0, 1, 16, 256, …; last, the first accesses."""
    places = [(0, "0"), *((n, format_count(1 << (n - 1))) for n in range(1, 40, 4))]
    end = _RIGHT - 7.0 * len(_FIRST) - 12
    shown = [
        (left + n * cell, text) for n, text in places if left + n * cell + 7.0 * len(text) < end
    ]
    for x, text in shown:
        marks.append({"shape": "text", "role": "soft", "x": round(x, 1), "y": y + 12,
                      "text": text})  # fmt: skip
    marks.append({"shape": "text", "role": "soft", "x": _RIGHT, "y": y + 12, "anchor": "end",
                  "text": _FIRST, "title": "first accesses to a line"})  # fmt: skip
    return y + _LINE


def _draw_row(
    tensor: Buffer, places: list[tuple[float, int, str]], cell: float, color: str, y: float,
    marks: list[Mark],
) -> None:  # fmt: skip
    name, base = tensor.name, y + _BAR
    short = name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"
    marks.append({"shape": "text", "role": "label", "x": _LEFT, "y": base - 3, "text": short,
                  "title": name})  # fmt: skip
    whole = sum(count for _, count, _ in places)
    marks.append({"shape": "line", "role": "axis", "x": _LEFT + _NAME_PX, "y": base, "x2": _RIGHT,
                  "y2": base})  # fmt: skip
    for x, count, words in places:
        if not count:
            continue
        high = max(_BAR * count / whole, _LEAST)
        what = "are the first to their line" if words == _FIRST else f"have reuse distance {words}"
        title = f"{name}: {count:,} of {whole:,} accesses ({percent(count / whole)}) {what}"
        marks.append({"shape": "rect", "role": "bar", "x": round(x + 0.5, 1),
                      "y": round(base - high, 1), "w": round(cell - 1, 1), "h": round(high, 1),
                      "fill": color, "title": title})  # fmt: skip
