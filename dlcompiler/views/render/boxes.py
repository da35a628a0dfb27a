"""Nodes and arrows of graphs, shared by all pictures that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler.views.render.layered import Place
from dlcompiler.views.render.scene import Mark

MARGIN = 6.0
_CHAR_PX, _BOLD_PX, _PAD_PX, _LINE_PX = 6.8, 7.6, 9.0, 16.0


def box_size(lines: Sequence[str]) -> tuple[float, float]:
    """Return the width and the height of a box with lines of text; [px]."""
    name, *others = lines
    widest = max(len(name) * _BOLD_PX, *(len(line) * _CHAR_PX for line in others), 0.0)
    return widest + 2 * _PAD_PX, len(lines) * _LINE_PX + 8


def box(
    place: Place[Any],
    lines: Sequence[str],
    keys: list[str],
    *,
    fill: str = "none",
    is_dashed: bool = False,
) -> list[Mark]:
    """Return the marks of a node: a box, its name, and further lines of text."""
    outline: Mark = {
        "shape": "rect", "role": "capacity" if is_dashed else "node", "x": place.x, "y": place.y,
        "w": place.w, "h": place.h, "keys": keys, "title": ", ".join(lines),
    }  # fmt: skip
    if not is_dashed:
        outline["fill"] = fill
    marks = [outline]
    for n, line in enumerate(lines):
        marks.append(
            {"shape": "text", "role": "soft" if n else "name", "x": place.x + _PAD_PX,
             "y": place.y + (n + 1) * _LINE_PX, "text": line, "keys": keys}
        )  # fmt: skip
    return marks


def arrow(source: Place[Any], target: Place[Any]) -> Mark:
    """Return the arrow from a node to one below it."""
    (x1, y1), (x2, y2) = source.below, target.above
    middle = round((y1 + y2) / 2, 1)
    x1, y1, x2, y2 = (round(value, 1) for value in (x1, y1, x2, y2))
    curve = f"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}"
    return {"shape": "path", "role": "edge", "d": f"{curve}m-4 -7l4 7l4 -7"}


def extent_of(places: Mapping[Any, Place[Any]]) -> tuple[float, float]:
    """Return the width and the height of a picture that contains all nodes and a margin [px]."""
    return (
        max((place.x + place.w for place in places.values()), default=0.0) + MARGIN,
        max((place.y + place.h for place in places.values()), default=0.0) + MARGIN,
    )


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(2, "axis", "axes")
    '2 axes'
    """
    return f"{n} {noun}" if n == 1 else f"{n} {plural or noun + 's'}"
