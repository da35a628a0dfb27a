"""Parallel coordinates of the trials: one vertical line for each knob, one path for each config."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.runtime.timing import format_rate
from dlcompiler.space import Space
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.tuning.chart import PINK, TOP, USUAL, clipped, legend, line, polyline, text
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.space_points import (
    Digits,
    Ground,
    all_digits,
    rate_color,
    scale_of_rates,
    timed,
    top_rate,
    value_text,
)
from dlcompiler.views.tuning.watched import TrialRow, Watched

MOST_LINES = 160
"""Largest number of trials drawn, the newest `_NEWEST` among them; more would hide each other."""
_NEWEST = 40
_HEIGHT_PX = 230.0
_HEAD_PX = 30.0
_SIDE_PX = 40.0
_OWN: Mark = {"shape": "line", "role": "curve", "stroke": PINK, "dash": "7 3"}
_BEST: Mark = {"shape": "line", "role": "curve", "stroke": "currentColor"}
HOW_TO_READ = (
    "each upright line is a knob with its values; the last line is the rate. Each line "
    "across is a config; bright ones are fast. If most bright lines pass through one value, this "
    "value matters. × marks values that no legal config has."
)


def coordinates(
    seen: Watched, ground: Ground, *, chosen: int | None = None, width: float = USUAL
) -> Scene:
    """Return the trials as paths across the knobs.

    Parameters
    ----------
    seen
        The run.
    ground
        What is known of its space.
    chosen
        Number of the trial that is marked.
    width
        Of the picture [px].
    """
    space, top = seen.space, top_rate(seen)
    columns = len(space.knobs) + 1
    step = (width - 2 * _SIDE_PX) / max(columns - 1, 1)
    first, base = TOP + _HEAD_PX, TOP + _HEAD_PX + _HEIGHT_PX

    good = timed(seen.rows)
    lines = _drawn(good)
    best, picked = seen.best, None if chosen is None else seen.row(chosen)
    wanted = [row.point for row in (*lines, best, picked) if row] + [ground.own or 0]
    found = dict(zip(wanted, all_digits(space, wanted), strict=True))

    def way(point: int, gflops: float | None) -> str:
        places = [
            (round(_SIDE_PX + n * step, 1), _height(digit, len(knob.values), first, base))
            for n, (knob, digit) in enumerate(zip(space.knobs, found[point], strict=True))
        ]
        if gflops is not None:
            at = round(base - _HEIGHT_PX * gflops / top, 1)
            places.append((round(_SIDE_PX + (columns - 1) * step, 1), at))
        return polyline(places)

    marks: list[Mark] = [
        {"shape": "path", "role": "edge", "d": way(row.point, row.gflops),
         "stroke": rate_color(row, top), "keys": [key_of(row.index)],
         "title": f"{key_of(row.index)}: {format_rate(row.gflops or 0)} GFLOP/s"}
        for row in lines
    ]  # fmt: skip
    marks += _axes(space, ground, step, first, base, top)
    if best is not None:
        marks.append(_way(way(best.point, best.gflops), _BEST, best, "the best"))
    if ground.own is not None:
        marks.append({**_OWN, "shape": "path", "d": way(ground.own, None), "title": "your own"})
    if picked is not None and picked is not best:
        mark = _way(way(picked.point, picked.gflops), _BEST, picked, "chosen")
        marks.append(mark | {"dash": "2 3"})
    items = [("the best", _BEST)]
    if ground.own is not None:
        items.append(("your own", _OWN))
    if picked is not None and picked is not best:
        items.append(("chosen", _BEST | {"dash": "2 3"}))
    marks += scale_of_rates(top, _SIDE_PX, base + 28, seen.provenance.kind)
    marks += legend(items, _SIDE_PX, base + 62, width - 2 * _SIDE_PX)
    return {
        "title": "The space, knob by knob",
        "summary": _summary(seen, good, lines),
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": base + 76,
        "marks": marks,
        "table": {
            "columns": ["knob", "values", "of the best", "of the fastest tenth, most often"],
            "rows": _rows(space, seen, good),
        },
    }


def _height(digit: int, count: int, first: float, base: float) -> float:
    """Return the y of a value on its line; values are evenly spaced, from the bottom up [px]."""
    return round(base - (base - first) * (digit / (count - 1) if count > 1 else 0.5), 1)


def _drawn(good: Sequence[TrialRow]) -> list[TrialRow]:
    """Return the fastest and the newest trials, slowest first, so that bright lines lie on top."""
    if len(good) <= MOST_LINES:
        return sorted(good, key=lambda row: (row.gflops or 0, row.index))
    fastest = sorted(good, key=lambda row: -(row.gflops or 0))[: MOST_LINES - _NEWEST]
    found = {row.index: row for row in (*fastest, *good[-_NEWEST:])}
    return sorted(found.values(), key=lambda row: (row.gflops or 0, row.index))


def _way(d: str, look: Mark, row: TrialRow, words: str) -> Mark:
    return {**look, "shape": "path", "d": d, "keys": [key_of(row.index)],
            "title": f"{key_of(row.index)}, {words}"}  # fmt: skip


def _axes(
    space: Space, ground: Ground, step: float, first: float, base: float, top: float
) -> list[Mark]:
    marks: list[Mark] = []
    for n, knob in enumerate(space.knobs):
        x = round(_SIDE_PX + n * step, 1)
        marks.append(line(x, first, x, base))
        marks.append(
            text(x, first - (26 if n % 2 else 10), clipped(knob.name, 2 * step), "middle", "name")
        )
        stride = -(-len(knob.values) // 12)
        for digit, value in enumerate(knob.values):
            y = _height(digit, len(knob.values), first, base)
            word = "× " if (n, digit) not in ground.legal_values else ""
            if digit % stride == 0 or word:
                words = clipped(word + value_text(value), step - 10)
                marks.append(text(x + 4, y + (12 if y < first + 2 else -3), words))
    x = round(_SIDE_PX + len(space.knobs) * step, 1)
    above = 26 if len(space.knobs) % 2 else 10
    marks += [line(x, first, x, base), text(x, first - above, "GFLOP/s", "middle", "name"),
              text(x + 4, base - 3, "0"), text(x + 4, first + 12, f"{top:g}")]  # fmt: skip
    return marks


def _summary(seen: Watched, good: Sequence[TrialRow], lines: Sequence[TrialRow]) -> str:
    tried = len({row.point for row in seen.rows})
    said = f"{tried:,} of {seen.space.size:,} points were tried, {len(good):,} succeeded"
    if len(lines) < len(good):
        said += f"; the {len(lines)} fastest and newest are drawn"
    return f"{said}."


def _rows(
    space: Space, seen: Watched, good: Sequence[TrialRow]
) -> list[list[str | int | float | None]]:
    best = seen.best
    fastest = sorted(good, key=lambda row: -(row.gflops or 0))[: max(len(good) // 10, 1)]
    at_fastest = all_digits(space, [row.point for row in fastest])
    at_best: Digits = all_digits(space, [best.point])[0] if best else ()
    rows: list[list[str | int | float | None]] = []
    for n, knob in enumerate(space.knobs):
        counts = [sum(each[n] == digit for each in at_fastest) for digit in range(len(knob.values))]
        most = max(range(len(counts)), key=counts.__getitem__)
        values = ", ".join(value_text(value) for value in knob.values[:12])
        rows.append(
            [knob.name, values, value_text(knob.values[at_best[n]]) if best else None,
             value_text(knob.values[most]) if at_fastest else None]
        )  # fmt: skip
    return rows
