"""Chart of the best result so far, with every trial, and the failures by reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from dlcompiler.runtime.provenance import Kind
from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.views.render.scene import Mark, Scene, Table
from dlcompiler.views.tuning.chart import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    USUAL,
    Format,
    Scale,
    axes,
    legend,
    log_scale,
    nice_ceiling,
    number,
    seconds,
    staircase,
    text,
)
from dlcompiler.views.tuning.series import (
    FAILED,
    dots,
    glyph_mark,
    key_of,
    kinds_in,
    ring_round,
    stride_of,
)
from dlcompiler.views.tuning.watched import TrialRow, Watched, done_text

Against: TypeAlias = Literal["trials", "seconds"]
Shown: TypeAlias = Literal["rate", "time"]
PLOT_PX = 190.0
_LANE_PX = 16.0
_MOST_ROWS = 40
_CURVE: Mark = {"shape": "line", "role": "curve", "stroke": "currentColor"}

HOW_TO_READ = {
    "rate": "each sign is a trial; its shape shows why it was tried. The line is the best so far; "
    "higher is faster. Trials that failed are below the axis, one row for each reason.",
    "time": "each sign is a trial; its shape shows why it was tried. The line is the shortest time "
    "so far; lower is faster, on a log scale. Trials that failed are below the axis.",
}


def best_so_far(
    seen: Watched,
    *,
    against: Against = "trials",
    shown: Shown = "rate",
    chosen: int | None = None,
    width: float = USUAL,
) -> Scene:
    """Return the chart of the best result so far.

    Parameters
    ----------
    seen
        The run.
    against
        The horizontal axis: number of the trial, or seconds since the start.
    shown
        The vertical axis: ``rate`` in GFLOP/s, or ``time`` of a call on a logarithmic scale.
    chosen
        Number of the trial that is marked.
    width
        Of the picture [px].

    Returns
    -------
    Scene
        Keys are ``trial N``.
    """
    good = [row for row in seen.rows if row.seconds]
    failed = [row for row in seen.rows if not row.seconds]
    base = TOP + PLOT_PX
    x = _across(seen, against, width)
    y = _up(good, shown, base)

    def place(row: TrialRow) -> tuple[float, float]:
        value = row.index if against == "trials" else row.elapsed_s
        return x.at(value), y.at(_value(row, shown))

    rising = _rising(good)
    stride = stride_of(len(good))
    drawn = good if stride == 1 else [r for r in good if r.index % stride == 0]
    marks = axes(x, y, _labels(against, shown, seen.provenance.kind), _formats(shown))
    marks += dots(drawn, place)
    marks += _curve([place(row) for row in rising], x.at(_reached(seen, against)))
    lanes, height = _lanes(failed, x, against, base + BOTTOM + 4)
    marks += lanes
    marks += legend([*kinds_in(good), ("best so far", _CURVE)], LEFT, height + 14, width - LEFT)
    picked = None if chosen is None else seen.row(chosen)
    if picked is not None and picked.seconds:
        marks.append(ring_round(*place(picked), key_of(picked.index)))
    return {
        "title": f"Best so far: {seen.title}",
        "summary": _summary(seen, stride),
        "how_to_read": HOW_TO_READ[shown],
        "width": width,
        "height": height + 42,
        "marks": marks,
        "table": _table(seen, rising),
    }


def _across(seen: Watched, against: Against, width: float) -> Scale:
    if against == "trials":
        known = seen.most_trials or nice_ceiling(len(seen.rows))
        high = float(max(known, len(seen.rows)) - 1)
    else:
        last = max((row.elapsed_s for row in seen.rows), default=0.0)
        high = nice_ceiling(max(last, 1e-3))
    return Scale(0, max(high, 1e-9), LEFT, width - RIGHT, is_whole=against == "trials")


def _up(good: Sequence[TrialRow], shown: Shown, base: float) -> Scale:
    if shown == "time":
        return log_scale([row.seconds or 0 for row in good], base, TOP)
    return Scale(0, nice_ceiling(max((row.gflops or 0 for row in good), default=1.0)), base, TOP)


def _value(row: TrialRow, shown: Shown) -> float:
    return (row.gflops if shown == "rate" else row.seconds) or 0.0


def _labels(against: Against, shown: Shown, kind: Kind) -> tuple[str, str]:
    across = "trial" if against == "trials" else "seconds since the start [s]"
    up = f"{kind} rate [GFLOP/s]" if shown == "rate" else f"{kind} time of a call, log scale"
    return across, up


def _formats(shown: Shown) -> tuple[Format, Format]:
    return number, number if shown == "rate" else seconds


def _reached(seen: Watched, against: Against) -> float:
    last = seen.rows[-1] if seen.rows else None
    if last is None:
        return 0.0
    return last.index if against == "trials" else last.elapsed_s


def _rising(good: Sequence[TrialRow]) -> list[TrialRow]:
    """Return the trials that were faster than all before them."""
    found: list[TrialRow] = []
    for row in good:
        if not found or (row.seconds or 0) < (found[-1].seconds or 0):
            found.append(row)
    return found


def _curve(points: Sequence[tuple[float, float]], end: float) -> list[Mark]:
    d = staircase(points, end)
    return [{"shape": "path", "role": "curve", "stroke": "currentColor", "d": d}] if d else []


def _lanes(
    failed: Sequence[TrialRow], x: Scale, against: Against, top: float
) -> tuple[list[Mark], float]:
    """Return a row of ticks for each reason of failure, and the lower edge of the rows [px]."""
    marks: list[Mark] = []
    reasons: dict[str, list[TrialRow]] = {}
    for row in failed:
        reasons.setdefault(row.outcome, []).append(row)
    for n, (reason, rows) in enumerate(reasons.items()):
        y = top + n * 2 * _LANE_PX
        marks.append(text(x.start, y + 10, f"{reason}: {len(rows):,}", role="label"))
        stride = stride_of(len(rows))
        ticks = glyph_mark("tick", FAILED, 5.0)
        for first in range(0, len(rows), 64 * stride):
            some = rows[first : first + 64 * stride : stride]
            at = [row.index if against == "trials" else row.elapsed_s for row in some]
            xy = [place for value in at for place in (x.at(value), y + 21)]
            marks.append(ticks | {"xy": xy, "keys": [key_of(row.index) for row in some]})
    return marks, top + len(reasons) * 2 * _LANE_PX


def _summary(seen: Watched, stride: int) -> str:
    best = seen.best
    if not seen.rows:
        return "No trial is done yet."
    parts = [f"{done_text(seen)} trials"]
    if best is None:
        parts.append("none succeeded")
    else:
        rate = f"{format_rate(best.gflops or 0)} GFLOP/s"
        parts.append(f"best {rate} ({format_seconds(best.seconds or 0)}) at trial {best.index}")
        if seen.provenance.on:
            parts.append(str(seen.provenance))
    failed = [f"{count} {name}" for name, count in seen.counts.items() if name != "ok"]
    parts.append(f"failed: {', '.join(failed)}" if failed else "none failed")
    if stride > 1:
        parts.append(f"every {stride}th is drawn")
    return f"{'; '.join(parts)}."


def _table(seen: Watched, rising: Sequence[TrialRow]) -> Table:
    """Return the trials that were faster than all before them."""
    last = rising[-_MOST_ROWS:]
    return {
        "columns": ["trial", "after [s]", "GFLOP/s", "time of a call", "why it was tried"],
        "rows": [
            [row.index, round(row.elapsed_s, 2), float(f"{row.gflops or 0:.4g}"),
             format_seconds(row.seconds or 0), row.origin]
            for row in last
        ],
    }  # fmt: skip
