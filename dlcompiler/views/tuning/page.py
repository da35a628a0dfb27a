"""Static page of a tuning run: headline, pictures and tables, without widgets."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.autotune import TuningRun
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.views.render.markup import Markup, join, tag
from dlcompiler.views.render.scene import Scene, scene_html, table_html
from dlcompiler.views.tuning.best_so_far import best_so_far
from dlcompiler.views.tuning.coordinates import coordinates
from dlcompiler.views.tuning.headline import headline
from dlcompiler.views.tuning.predicted import predicted_measured
from dlcompiler.views.tuning.space_points import ground
from dlcompiler.views.tuning.time_spent import time_spent
from dlcompiler.views.tuning.trials_table import config_text
from dlcompiler.views.tuning.watched import TrialRow, Watched, watched

MOST_ROWS = 40
"""Largest number of rows of the static table: a notebook stores every row."""
LARGEST_BYTES = 56_000
"""Largest size of the page: a notebook stores it with each output."""
_TOO_LARGE = "Left out, because it is too large to be stored in a notebook"
_WIDTH = 720.0
_STATIC_DOTS = 400


def tuning_html(run: TuningRun) -> Markup:
    """Return a run as a static page: its headline, pictures and tables.

    Parameters
    ----------
    run
        The run, going on or ended.

    Returns
    -------
    Markup
        A fragment without script.
    """
    seen = watched(run)
    head = _head(seen)
    parts: list[Markup] = []
    left_out = ""
    for scene in _scenes(_thinned(seen)):
        drawn = scene_html(scene)
        larger = tag("div", {"class": "dlc-fragment"}, head, *parts, drawn, _table(run))
        if len(larger.encode()) > LARGEST_BYTES:
            left_out = f"{left_out}, {scene['title']}" if left_out else scene["title"]
            continue
        parts.append(drawn)
    note = [tag("p", None, f"{_TOO_LARGE}: {left_out}.")] if left_out else []
    return tag("div", {"class": "dlc-fragment"}, head, *parts, *note, _table(run))


def _scenes(seen: Watched) -> list[Scene]:
    scenes = [best_so_far(seen, width=_WIDTH)]
    if any(row.predicted_s and row.seconds for row in seen.rows):
        scenes.append(predicted_measured(seen, width=_WIDTH))
    if seen.phases is not None and seen.rows:
        scenes.append(time_spent(seen, width=_WIDTH))
    if seen.best is not None:
        scenes.append(coordinates(seen, ground(seen.space), width=_WIDTH))
    return scenes


def _thinned(seen: Watched) -> Watched:
    """Return a run with every n-th trial only if it has many; its note then gives n."""
    if len(seen.rows) <= _STATIC_DOTS:
        return seen
    best = seen.best
    every = -(-len(seen.rows) // _STATIC_DOTS)
    rows = [row for row in seen.rows if row.index % every == 0 or row is best]
    return replace(seen, rows=rows, note=f"one of {every} trials is drawn")


def _head(seen: Watched) -> Markup:
    model = headline(seen)
    style = {"style": "margin:4px 0"}
    said = tag("p", style, tag("strong", None, model["title"]), ": ", model["text"])
    if not model["note"]:
        return said
    return join(said, tag("p", style, tag("strong", None, "Note: "), model["note"]))


def _table(run: TuningRun) -> Markup:
    """Return the table of the trials that improved the best, and of those that failed."""
    seen = watched(run)
    rising = {index for index, _ in run.best_so_far()}
    reasons = {trial.index: trial.result.message for trial in run.trials}
    shown = [row for row in seen.rows if row.index in rising or row.outcome != "ok"]
    rows = [_row(seen, row, reasons[row.index]) for row in shown[:MOST_ROWS]]
    more = len(shown) - MOST_ROWS
    return tag(
        "details",
        {"style": "margin:4px 0"},
        tag("summary", {"style": "cursor:pointer;font-size:12px"},
            "Trials that improved the best, and trials that failed"),
        table_html(["trial", "outcome", "time", "GFLOP/s", "config or reason"], rows),
        *([tag("p", None, f"… and {more} more")] if more > 0 else ()),
    )  # fmt: skip


def _row(seen: Watched, row: TrialRow, message: str) -> list[object]:
    if row.seconds is None:
        return [row.index, row.outcome, None, None, (message.splitlines() or [""])[0][:200]]
    rate = float(f"{row.gflops or 0:.4g}")
    return [row.index, "ok", format_seconds(row.seconds), rate, config_text(seen, row.point)]
