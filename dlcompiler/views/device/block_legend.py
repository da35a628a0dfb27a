"""Numbers along the grids of a thread block, and the legend of their colours."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Mark

LINE_PX = 18.0
"""Height of a line of the legend [px]."""
_STEPS = 5
_SWATCH_PX = 12.0
_LETTER_PX = 6.6
_ACROSS_PX, _DOWN_PX = 26.0, 15.0
"""Least distance between two numbers [px]."""
MARGIN_PX = 30.0
"""Room for the numbers of the rows [px]."""


def numbers(
    origin: tuple[float, float], side: float, cells: tuple[int, int],
    column: Callable[[int], int], row: Callable[[int], int],
) -> list[Mark]:  # fmt: skip
    """Return the numbers of columns above a grid, and those of rows at its right.

    Parameters
    ----------
    origin
        The upper left corner of the grid [px].
    side
        Side of a cell [px].
    cells
        Rows and columns of the grid.
    column, row
        Return the number of a column or row of cells.
    """
    left, top = origin
    rows, columns = cells
    right = left + columns * side + 4
    above: list[Mark] = [
        {"shape": "text", "role": "soft", "x": left + (n + 0.5) * side, "y": top - 4,
         "text": str(column(n)), "anchor": "middle"}
        for n in range(0, columns, _every(side, _ACROSS_PX))
    ]  # fmt: skip
    beside: list[Mark] = [
        {"shape": "text", "role": "soft", "x": right, "y": top + (n + 0.5) * side + 4,
         "text": str(row(n))}
        for n in range(0, rows, _every(side, _DOWN_PX))
    ]  # fmt: skip
    return [*above, *beside]


def _every(side: float, least: float) -> int:
    """Return the smallest power of two of cells that is as long as `least`."""
    count = 1
    while count * side < least:
        count *= 2
    return count


def legend(y: float, name: str, first: str, last: str) -> tuple[list[Mark], float]:
    """Return a line with the colours from dark to light and what they stand for, and its width."""
    marks: list[Mark] = [
        {"shape": "rect", "role": "bar", "x": n * _SWATCH_PX, "y": y + 3, "w": _SWATCH_PX,
         "h": 11.0, "fill": ramp(n / (_STEPS - 1))}
        for n in range(_STEPS)
    ]  # fmt: skip
    left = _STEPS * _SWATCH_PX + 8
    text = f"{name}: {first}" if first == last else f"{name}: {first} … {last}"
    marks.append({"shape": "text", "role": "label", "x": left, "y": y + 13, "text": text})
    return marks, left + len(text) * _LETTER_PX
