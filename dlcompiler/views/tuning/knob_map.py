"""Heat map of the space over two knobs: the best rate for each pair of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.errors import TuningError
from dlcompiler.runtime.timing import format_rate
from dlcompiler.space import Space
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.tuning.chart import (
    BOTTOM,
    NARROWEST,
    RIGHT,
    TOP,
    USUAL,
    VIRIDIS,
    clipped,
    text,
)
from dlcompiler.views.tuning.notable import map_legend, notable
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.space_points import (
    Ground,
    all_digits,
    rate_color,
    top_rate,
    value_text,
)
from dlcompiler.views.tuning.watched import TrialRow, Watched

_PLOT_PX = 280.0
_SIDE_PX = 76.0
_MOST_ROWS = 60
_DARK = 4
"""Colours from this index on carry black text, darker ones white text."""
HOW_TO_READ = (
    "each field is a pair of values. Its colour is the speed of the fastest config tried with "
    "this pair, whatever the other knobs are; its number is how many configs were tried. Empty "
    "fields were not tried; × marks pairs without a legal config."
)


def knob_map(
    seen: Watched,
    ground: Ground,
    across: str,
    up: str,
    *,
    chosen: int | None = None,
    width: float = USUAL,
) -> Scene:
    """Return the heat map of the best rate for each pair of values of two knobs.

    Parameters
    ----------
    seen
        The run.
    ground
        What is known of its space.
    across, up
        Names of two knobs.
    chosen
        Number of the trial that is marked.
    width
        Of the picture [px].

    Raises
    ------
    TuningError
        If the space has no such knob.
    """
    space, top = seen.space, top_rate(seen)
    a, b = (_number(space, name) for name in (across, up))
    cells = _Cells(len(space.knobs[a].values), len(space.knobs[b].values), width)
    legal = {(each[a], each[b]) for each in ground.legal_digits}
    fastest, tried = _by_cell(seen, a, b)
    marks: list[Mark] = []
    rows: list[list[str | int | float | None]] = []
    for j, second in enumerate(space.knobs[b].values):
        marks.append(text(_SIDE_PX - 6, cells.centre(0, j)[1] + 4, _short(second, 62), "end"))
        for i, first in enumerate(space.knobs[a].values):
            row, count = fastest.get((i, j)), tried.get((i, j), 0)
            marks += _cell(cells, (i, j), row, count, (i, j) in legal, top)
            if count:
                rows.append([value_text(first), value_text(second), count,
                             None if row is None else float(f"{row.gflops or 0:.4g}")])  # fmt: skip
    for i, first in enumerate(space.knobs[a].values):
        x, _ = cells.centre(i, 0)
        marks.append(text(x, cells.base + 16, _short(first, cells.w), "middle"))
    marks.append(text(width - RIGHT, cells.base + 33, across, "end", "name"))
    marks.append(text(6, TOP - 8, up, "start", "name"))

    def place(point: int) -> tuple[float, float]:
        (found,) = all_digits(space, [point])
        return cells.inside(found[a], found[b], point)

    marks += notable(seen, ground, place, chosen)
    rows.sort(key=lambda cells: -float(cells[3] or 0))
    said = f"{len(tried)} of {len(legal)} pairs of {across} and {up} of legal configs were tried"
    below = cells.base + BOTTOM
    marks += map_legend(seen, ground, below, top, width)
    return {
        "title": f"The space by {across} and {up}",
        "summary": f"{said}{_fastest(rows, seen)}.",
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": below + 74,
        "marks": marks,
        "table": {"columns": [across, up, "tried", "best GFLOP/s"], "rows": rows[:_MOST_ROWS]},
    }


def _number(space: Space, name: str) -> int:
    names = [knob.name for knob in space.knobs]
    if name not in names:
        raise TuningError(
            "draw a map of the space", "there is no such knob", got=repr(name),
            expected=", ".join(names),
        )  # fmt: skip
    return names.index(name)


class _Cells:
    """Positions of the fields of the heat map."""

    def __init__(self, columns: int, rows: int, width: float) -> None:
        self.w = (max(width, NARROWEST) - _SIDE_PX - RIGHT) / columns
        self.h = min(max(_PLOT_PX / rows, 16.0), 44.0)
        self.base = TOP + rows * self.h

    def corner(self, i: int, j: int) -> tuple[float, float]:
        return round(_SIDE_PX + i * self.w, 1), round(self.base - (j + 1) * self.h, 1)

    def centre(self, i: int, j: int) -> tuple[float, float]:
        x, y = self.corner(i, j)
        return round(x + self.w / 2, 1), round(y + self.h / 2, 1)

    def inside(self, i: int, j: int, point: int) -> tuple[float, float]:
        """Return a pseudo-random place in a field, so that signs rarely overlap."""
        x, y = self.corner(i, j)
        u, v = point * 0.618 % 1, point * 0.755 % 1
        return round(x + self.w * (0.2 + 0.6 * u), 1), round(y + self.h * (0.25 + 0.5 * v), 1)


def _by_cell(
    seen: Watched, a: int, b: int
) -> tuple[dict[tuple[int, int], TrialRow], dict[tuple[int, int], int]]:
    fastest: dict[tuple[int, int], TrialRow] = {}
    tried: dict[tuple[int, int], int] = {}
    places = all_digits(seen.space, [row.point for row in seen.rows])
    for row, found in zip(seen.rows, places, strict=True):
        at = (found[a], found[b])
        tried[at] = tried.get(at, 0) + 1
        if row.gflops and (at not in fastest or row.gflops > (fastest[at].gflops or 0)):
            fastest[at] = row
    return fastest, tried


def _cell(
    cells: _Cells,
    at: tuple[int, int],
    row: TrialRow | None,
    count: int,
    is_legal: bool,
    top: float,
) -> list[Mark]:
    x, y = cells.corner(*at)
    w, h = round(cells.w - 2, 1), round(cells.h - 2, 1)
    mark: Mark = {"shape": "rect", "role": "cell", "x": x + 1, "y": y + 1, "w": w, "h": h,
                  "fill": "none"}  # fmt: skip
    cx, cy = cells.centre(*at)
    if row is not None:
        color = rate_color(row, top)
        mark |= {"fill": color, "keys": [key_of(row.index)],
                 "title": f"{_rate(row)}, {key_of(row.index)}; {count} tried"}  # fmt: skip
        ink = "#ffffff" if VIRIDIS.index(color) < _DARK else "#000000"
        return [mark, text(cx, cy + 4, str(count), "middle", "label") | {"fill": ink}]
    if not is_legal and not count:
        return [text(cx, cy + 4, "×", "middle")]
    return [mark, text(cx, cy + 4, f"{count} failed", "middle")] if count else [mark]


def _rate(row: TrialRow) -> str:
    return f"best {format_rate(row.gflops or 0)} GFLOP/s"


def _short(value: object, width: float) -> str:
    return clipped(value_text(value), width)


def _fastest(rows: Sequence[Sequence[str | int | float | None]], seen: Watched) -> str:
    if seen.best is None or not rows or not math.isfinite(float(rows[0][3] or 0)):
        return ""
    rate = format_rate(float(rows[0][3] or 0))
    return f"; the fastest, {rate} GFLOP/s, has {rows[0][0]} and {rows[0][1]}"
