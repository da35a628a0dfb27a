"""Scatter plot of the space along its first two principal components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.autotune.projection import Projection
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.tuning.chart import LEFT, RIGHT, TOP, USUAL, VIRIDIS, clipped, line, text
from dlcompiler.views.tuning.notable import Place, map_legend, notable
from dlcompiler.views.tuning.series import CHUNK, glyph_mark, key_of, stride_of
from dlcompiler.views.tuning.space_points import Ground, rate_color, timed, top_rate
from dlcompiler.views.tuning.watched import TrialRow, Watched

_PLOT_PX = 280.0
_LEGAL = 600
_SOFT = glyph_mark("disc", "#8c8c8c", 1.5)
HOW_TO_READ = (
    "small grey points are legal configs; points near each other have similar values. Coloured "
    "points were tried: bright is fast, a small × failed. The two directions are those in "
    "which the configs differ most (principal components of the values)."
)


def plane_map(
    seen: Watched,
    ground: Ground,
    projection: Projection,
    *,
    chosen: int | None = None,
    width: float = USUAL,
) -> Scene:
    """Return the scatter plot of the space along its first two principal components.

    Parameters
    ----------
    seen
        The run.
    ground
        What is known of its space.
    projection
        The plane.
    chosen
        Number of the trial that is marked.
    width
        Of the picture [px].
    """
    top = top_rate(seen)
    spots = dict(zip(ground.legal[:_LEGAL], projection.places(ground.legal[:_LEGAL]), strict=True))
    good = timed(seen.rows)
    stride = stride_of(len(seen.rows))
    drawn = [row for row in seen.rows if row.index % stride == 0]
    standing = [each for each in seen.rounds if each.walkers][-2:]
    more = {row.point for row in drawn} | {w for each in standing for w in each.walkers}
    more |= {row.point for row in (seen.best, seen.row(-1 if chosen is None else chosen)) if row}
    more |= {ground.own} if ground.own is not None else set()
    fresh = sorted(more - spots.keys())
    spots |= dict(zip(fresh, projection.places(fresh), strict=True))
    place = _placed(spots, ground.legal[:_LEGAL], width)
    marks = [line(LEFT, TOP + _PLOT_PX, width - RIGHT, TOP + _PLOT_PX),
             line(LEFT, TOP, LEFT, TOP + _PLOT_PX)]  # fmt: skip
    marks.append(_SOFT | {"xy": [v for p in ground.legal[:_LEGAL] for v in place(p)], "keys": []})
    marks += _rated(timed(drawn), place, top)
    failed = [row for row in drawn if not row.gflops]
    if failed:
        marks.append(glyph_mark("cross", "currentColor", 2.5) | {
            "xy": [v for row in failed for v in place(row.point)],
            "keys": [key_of(row.index) for row in failed]})  # fmt: skip
    marks += notable(seen, ground, place, chosen)
    names = [f"direction {n + 1} (mostly {knob}): {share:.0%}"
             for n, (knob, share) in enumerate(
                 zip(projection.knobs, projection.shares, strict=True))]  # fmt: skip
    if names:
        across = clipped(names[0], width - LEFT)
        marks.append(text(width - RIGHT, TOP + _PLOT_PX + 18, across, "end"))
    if len(names) > 1:
        marks.append(text(6, TOP - 8, clipped(names[1], width - 20), "start"))
    shown = sum(projection.shares)
    rows: list[list[str | int | float | None]] = [
        [row.index, *(round(v, 2) for v in projection.places([row.point])[0]),
         float(f"{row.gflops or 0:.4g}")]
        for row in sorted(good, key=lambda row: -(row.gflops or 0))[:20]
    ]  # fmt: skip
    below = TOP + _PLOT_PX + 24
    marks += map_legend(seen, ground, below, top, width)
    return {
        "title": "The space, all knobs at once",
        "summary": f"{len(good):,} successful trials in a space of {seen.space.size:,} points; the "
        f"plane shows {shown:.0%} of their variance{_thinned(stride)}.",
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": below + 74,
        "marks": marks,
        "table": {"columns": ["trial", "direction 1", "direction 2", "GFLOP/s"], "rows": rows},
    }


def _thinned(stride: int) -> str:
    return f", and every {stride}th trial is drawn" if stride > 1 else ""


def _placed(spots: Mapping[int, tuple[float, float]], frame: Sequence[int], width: float) -> Place:
    """Return the positions of points. The legal sample sets the scale, so it stays fixed."""
    xs = [spots[point][0] for point in frame] or [0.0]
    ys = [spots[point][1] for point in frame] or [0.0]
    low, left = min(ys), min(xs)
    high, right = max(max(ys) - low, 1e-9), max(max(xs) - left, 1e-9)

    def place(point: int) -> tuple[float, float]:
        x, y = spots[point]
        u, v = (min(max(share, 0.0), 1.0) for share in ((x - left) / right, (y - low) / high))
        return (
            round(LEFT + 12 + (width - LEFT - RIGHT - 24) * u, 1),
            round(TOP + _PLOT_PX - 12 - (_PLOT_PX - 24) * v, 1),
        )

    return place


def _rated(good: Sequence[TrialRow], place: Place, top: float) -> list[Mark]:
    chunks: dict[tuple[int, str], list[TrialRow]] = {}
    for row in good:
        chunks.setdefault((row.index // CHUNK, rate_color(row, top)), []).append(row)
    return [
        glyph_mark("disc", color, 3.5)
        | {"xy": [v for row in rows for v in place(row.point)],
           "keys": [key_of(row.index) for row in rows]}
        for (_, color), rows in sorted(chunks.items(), key=lambda item: VIRIDIS.index(item[0][1]))
    ]  # fmt: skip
