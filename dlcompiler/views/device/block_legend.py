"""The numbers along a grid of threads or elements, and the legend of its colours."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Mark

LEFT_PX, TOP_PX = 34.0, 16.0
"""Room for the numbers: left of a grid, and above it."""
LEGEND_PX = 40.0
_APART_PX, _SWATCH_PX, _SWATCHES, _CHAR_PX = 24.0, 14.0, 5, 6.4


def draw_numbers(
    marks: list[Mark],
    corner: tuple[float, float],
    side: float,
    counts: tuple[int, int],
    texts: tuple[Callable[[int], str], Callable[[int], str]],
) -> None:
    """Write the numbers of rows and columns along a grid.

    Parameters
    ----------
    marks
        Where the marks are added.
    corner
        Top left corner of the grid; [px].
    side
        Side of a cell; [px].
    counts
        How many rows and columns there are.
    texts
        The number of a row, and of a column, as text.
    """
    x, y = corner
    for n in range(0, counts[0], _apart(side, 1)):
        marks.append(
            {"shape": "text", "role": "soft", "x": x - 5, "y": y + n * side + side / 2 + 4,
             "anchor": "end", "text": texts[0](n)}
        )  # fmt: skip
    longest = len(texts[1](counts[1] - 1))
    for n in range(0, counts[1], _apart(side, longest)):
        marks.append(
            {"shape": "text", "role": "soft", "x": x + n * side + side / 2, "y": y - 4,
             "anchor": "middle", "text": texts[1](n)}
        )  # fmt: skip


def _apart(side: float, characters: int) -> int:
    """Return how many cells to go on from a number to the next: a power of two."""
    wanted = max(_APART_PX, characters * _CHAR_PX + 8) if characters > 1 else 14.0
    step = 1
    while step * side < wanted:
        step *= 2
    return step


def draw_legend(
    marks: list[Mark], x: float, y: float, count: int, texts: tuple[str, str, str]
) -> float:
    """Draw a legend of colours from `y` down; return its width [px].

    Parameters
    ----------
    marks
        Where the marks are added.
    x, y
        Its top left corner; [px].
    count
        How many colours there are.
    texts
        What a colour means, and what the first and the last colour stand for.
    """
    head, first, last = texts
    marks.append({"shape": "text", "role": "soft", "x": x, "y": y + 14, "text": head})
    shown = min(count, _SWATCHES)
    for n in range(shown):
        marks.append(
            {"shape": "rect", "role": "bar", "x": x + n * _SWATCH_PX, "y": y + 21,
             "w": _SWATCH_PX, "h": 12, "fill": ramp(n / max(shown - 1, 1))}
        )  # fmt: skip
    text = first if count == 1 else f"{first} … {last}"
    left = shown * _SWATCH_PX + 6
    marks.append({"shape": "text", "role": "soft", "x": x + left, "y": y + 31, "text": text})
    return max(left + len(text) * _CHAR_PX, len(head) * _CHAR_PX)
