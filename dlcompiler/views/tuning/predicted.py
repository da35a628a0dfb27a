"""Accuracy of the cost model: predicted against actual times, and the ranking of each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dlcompiler.autotune.run.rounds import Round
from dlcompiler.runtime.provenance import Kind
from dlcompiler.views.render.scene import Cell, Mark, Scene, Table
from dlcompiler.views.tuning.accuracy import correlation
from dlcompiler.views.tuning.chart import (
    BLUE,
    BOTTOM,
    LEFT,
    ORANGE,
    RIGHT,
    TOP,
    USUAL,
    Scale,
    axes,
    legend,
    line,
    log_scale,
    number,
    polyline,
    seconds,
    text,
)
from dlcompiler.views.tuning.series import glyph_mark, key_of, ring_round, stride_of
from dlcompiler.views.tuning.watched import TrialRow, Watched

Place: TypeAlias = Callable[[TrialRow], tuple[float, float]]
_SQUARE_PX = 250.0
_ROUNDS_PX = 110.0
_WIDE_PX = 620.0
_MOST_ROWS = 30
HOW_TO_READ = (
    "each sign is a trial. Further right: a longer time was predicted. Higher: the trial took "
    "longer. On the line both agree; below it the kernel was faster than predicted. The rank "
    "correlation says how well the order was predicted, which is all that a search needs: 1 is "
    "perfect, 0 is chance. Top-k recall is the share of the fastest quarter of the trials that "
    "the model had predicted to be in it."
)


def predicted_measured(seen: Watched, *, chosen: int | None = None, width: float = USUAL) -> Scene:
    """Return the plot of predicted against actual times, and the rank correlation by round.

    Parameters
    ----------
    seen
        The run.
    chosen
        Number of the trial that is marked.
    width
        Of the picture [px]; where it is wide, both plots stand side by side.
    """
    known = [row for row in seen.rows if row.predicted_s and row.seconds]
    rounds = [each for each in seen.rounds if each.correlation is not None]
    is_wide = width >= _WIDE_PX
    size = min(_SQUARE_PX, width - LEFT - RIGHT)
    marks = _scatter(known, size, chosen, seen.provenance.kind)
    below = TOP + size + BOTTOM
    if is_wide:
        marks += _rounds(rounds, LEFT * 2 + size + RIGHT + 10, width - RIGHT, TOP, TOP + size)
    else:
        marks += _rounds(rounds, LEFT, width - RIGHT, below + 26, below + 26 + _ROUNDS_PX)
        below += 26 + _ROUNDS_PX + BOTTOM
    items = [("earlier rounds", glyph_mark("ring", BLUE)), ("last round", _LAST),
             ("rank correlation", _LINE), ("top-k recall", _DASHED)]  # fmt: skip
    marks += legend(items, LEFT, below + 14, width - LEFT)
    return {
        "title": f"Predicted and {seen.provenance.kind}",
        "summary": _summary(seen, len(known), rounds),
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": below + 40,
        "marks": marks,
        "table": _table(rounds),
    }


_LAST: Mark = glyph_mark("disc", ORANGE)
_LINE: Mark = {"shape": "line", "role": "curve", "stroke": BLUE}
_DASHED: Mark = {"shape": "line", "role": "curve", "stroke": ORANGE, "dash": "6 3"}


def _scatter(known: Sequence[TrialRow], size: float, chosen: int | None, kind: Kind) -> list[Mark]:
    values = [value for row in known for value in (row.predicted_s or 0, row.seconds or 0)]
    x = log_scale(values, LEFT, LEFT + size)
    y = Scale(x.low, x.high, TOP + size, TOP, is_log=True)

    def place(row: TrialRow) -> tuple[float, float]:
        return x.at(row.predicted_s or 0), y.at(row.seconds or 0)

    marks = axes(x, y, ("predicted time", f"{kind} time"), (seconds, seconds))
    marks.append(line(x.start, y.start, x.end, y.end, "capacity"))
    if not known:
        marks.append(text(LEFT + 10, TOP + 20, "no trial was predicted yet"))
        return marks
    last = known[-1].round
    stride = stride_of(len(known))
    earlier = [row for row in known if row.round < last and row.index % stride == 0]
    for first in range(0, len(earlier), 64):
        marks.append(_signs(glyph_mark("ring", BLUE), earlier[first : first + 64], place))
    marks.append(_signs(_LAST, [row for row in known if row.round == last], place))
    picked = [row for row in known if row.index == chosen]
    return [*marks, *(ring_round(*place(row), key_of(row.index)) for row in picked)]


def _signs(sign: Mark, rows: Sequence[TrialRow], place: Place) -> Mark:
    xy = [value for row in rows for value in place(row)]
    return {**sign, "xy": xy, "keys": [key_of(row.index) for row in rows]}


def _rounds(
    rounds: Sequence[Round], left: float, right: float, top: float, base: float
) -> list[Mark]:
    """Return the plot of rank correlation and top-k recall by round."""
    low = min((each.correlation or 0 for each in rounds), default=0.0)
    ends = (rounds[0].number, rounds[-1].number) if rounds else (0, 1)
    x = Scale(ends[0], max(ends[1], ends[0] + 1), left, right, is_whole=True)
    y = Scale(0 if low >= 0 else -1, 1, base, top)
    marks = axes(x, y, ("round", "agreement of each round"), (number, number))
    for name, look in (("correlation", _LINE), ("recall", _DASHED)):
        points = [(x.at(each.number), y.at(value)) for each in rounds
                  if (value := getattr(each, name)) is not None]  # fmt: skip
        if points:
            marks.append({**look, "shape": "path", "d": polyline(points)})
            xy = [value for point in points for value in point]
            marks.append({**glyph_mark("disc", look["stroke"]), "xy": xy, "keys": []})
    return marks


def _summary(seen: Watched, succeeded: int, rounds: Sequence[Round]) -> str:
    predicted = sum(row.predicted_s is not None for row in seen.rows)
    if not predicted:
        return "No trial was predicted yet: a model learns from the first round."
    parts = [f"{predicted:,} trials were predicted before they ran"]
    if predicted > succeeded:
        parts.append(f"{predicted - succeeded:,} of them failed")
    every = correlation(seen.rows)
    if every is not None:
        parts.append(f"rank correlation {every:.2f}")
    if rounds:
        last = rounds[-1]
        said = f"in round {last.number} it is {last.correlation or 0:.2f}"
        if last.recall is not None:
            said += f"; its top-k recall is {last.recall:.0%}"
        parts.append(said)
    return f"{'; '.join(parts)}."


def _table(rounds: Sequence[Round]) -> Table:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 2)

    rows: list[list[Cell]] = [
        [each.number, each.trained_on, each.count, rounded(each.correlation), rounded(each.recall)]
        for each in rounds
    ]
    return {
        "columns": ["round", "learned from", "trials", "rank correlation", "top-k recall"],
        "rows": rows[-_MOST_ROWS:],
    }
