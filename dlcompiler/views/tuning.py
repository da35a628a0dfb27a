"""A tuning run: how the best rose, what each trial gave, and what failed.

The view model is small and grows by its points only, so that a widget gets what is new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.views.colors import HUES
from dlcompiler.views.markup import Markup, tag
from dlcompiler.views.nest_picture import SANS

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 14, 34
MEASURED, FAILED = HUES[0], HUES[1]
MOST_ROWS = 40
"""Rows of the static table; a notebook stores it."""

HOW_TO_READ = (
    "How to read: each dot is a trial, the line is the best so far (higher is faster); marks at "
    "the bottom are trials that failed."
)


class Best(TypedDict):
    """The fastest trial."""

    trial: int
    gflops: float
    time: str
    config: str


class Tuning(TypedDict):
    """What is shown of a run, without its points."""

    title: str
    state: str
    text: str
    """The state in one sentence."""
    trials: int
    total: int
    rate: float
    """Trials per second."""
    best: Best | None
    counts: list[tuple[str, int]]
    """Outcomes with their numbers of trials, as far as there are any."""
    note: str


Point = float | None
"""The GFLOP/s of a trial, or None if it failed."""


def tuning(run: TuningRun) -> Tuning:
    """Return the view model of a run as it is now."""
    best = run.best
    return {
        "title": str(run.plan.workload),
        "state": run.state,
        "text": _sentence(run, best),
        "trials": len(run.trials),
        "total": run.plan.trials or len(run.trials),
        "rate": round(run.trials_per_second, 2),
        "best": None if best is None else _best(best),
        "counts": list(run.counts.items()),
        "note": run.note,
    }


def points(run: TuningRun, first: int = 0) -> list[Point]:
    """Return what each trial gave, from the trial `first` on."""
    rates = (trial.gflops for trial in run.trials[first:])
    return [None if rate is None else float(f"{rate:.4g}") for rate in rates]


def tuning_html(run: TuningRun) -> Markup:
    """Return a run as a picture with a table behind it.

    Parameters
    ----------
    run
        The run, going on or ended.

    Returns
    -------
    Markup
        A fragment.
    """
    model, series = tuning(run), points(run)
    small = {"style": "font-size:12px;opacity:.8;margin:4px 0"}
    notes = [tag("p", {"style": "margin:4px 0"}, tag("strong", None, "Note: "), model["note"])]
    return tag(
        "div",
        {"class": "dlc-fragment"},
        tag(
            "p", {"style": "margin:4px 0"}, tag("strong", None, model["title"]), ": ", model["text"]
        ),
        *(notes if model["note"] else ()),
        tuning_picture(model, series),
        tag("p", small, HOW_TO_READ),
        tag(
            "details",
            {"style": "margin:4px 0"},
            tag("summary", {"style": "cursor:pointer;font-size:12px"}, "Show as table"),
            _table(run),
        ),
    )


def _sentence(run: TuningRun, best: Trial | None) -> str:
    total = "" if run.plan.trials is None else f" of {run.plan.trials}"
    parts = [f"{run.state}, {len(run.trials)}{total} trials"]
    if best is not None:
        parts.append(f"best {best.gflops:.3g} GFLOP/s at trial {best.index}")
    failed = [f"{count} {name}" for name, count in run.counts.items() if name != "ok"]
    parts.append(", ".join(failed) if failed else "none failed")
    parts.append(f"{run.trials_per_second:.1f} trials/s")
    return "; ".join(parts)


def _best(trial: Trial) -> Best:
    return {
        "trial": trial.index,
        "gflops": float(f"{trial.gflops or 0:.4g}"),
        "time": format_seconds(trial.seconds or 0.0),
        "config": ", ".join(f"{name}={value}" for name, value in trial.config.values.items()),
    }


# -- the picture --------------------------------------------------------------------------------


def tuning_picture(model: Tuning, series: Sequence[Point]) -> Markup:
    """Return the picture of a series: dots, the best so far, and what failed."""
    top = nice_ceiling(max((rate for rate in series if rate is not None), default=1.0))
    last = max(model["total"] - 1, len(series) - 1, 1)

    def x(trial: int) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * trial / last:.1f}"

    def y(rate: float) -> str:
        return f"{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top:.1f}"

    dots = "".join(f"M{x(n)} {y(rate)}h0" for n, rate in enumerate(series) if rate is not None)
    fails = "".join(f"M{x(n)} {HEIGHT - BOTTOM}v-6" for n, r in enumerate(series) if r is None)
    line, best = "", 0.0
    for n, rate in enumerate(series):
        if rate is not None and rate > best:
            line += f"M{x(n)} {y(rate)}" if not line else f"H{x(n)}V{y(rate)}"
            best = rate
    line += f"H{x(len(series) - 1)}" if line else ""
    return tag(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "width": WIDTH,
            "height": HEIGHT,
            "role": "img",
            "aria-label": f"Tuning of {model['title']}: {model['text']}",
            "style": "max-width:100%;height:auto;display:block",
            "font-family": SANS,
            "font-size": 11,
            "fill": "currentColor",
        },
        tag("title", None, f"Tuning of {model['title']}"),
        *_axes(top, model["total"]),
        _path(dots, MEASURED, "stroke-width", 5, "stroke-linecap", "round"),
        _path(fails, FAILED, "stroke-width", 2),
        _path(line, "currentColor", "stroke-width", 1.5),
    )


def _path(d: str, color: str, *attributes: str | float) -> Markup:
    names = attributes[::2]
    extra = {str(name): value for name, value in zip(names, attributes[1::2], strict=True)}
    return tag("path", {"d": d, "fill": "none", "stroke": color, **extra}) if d else Markup()


def _axes(top: float, total: int) -> list[Markup]:
    base = HEIGHT - BOTTOM
    parts = []
    for step in range(5):
        height = base - (base - TOP) * step / 4
        frame = {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": height, "y2": height}
        parts.append(tag("line", {**frame, "stroke": "currentColor", "opacity": 0.15}))
        parts.append(
            tag(
                "text",
                {"x": LEFT - 6, "y": height + 4, "text-anchor": "end"},
                f"{top * step / 4:g}",
            )
        )
    words = ((LEFT, "start", "GFLOP/s by trial"), (WIDTH - RIGHT, "end", f"trial {total - 1}"))
    for place, anchor, text in words:
        parts.append(tag("text", {"x": place, "y": HEIGHT - 12, "text-anchor": anchor}, text))
    return parts


_CEILINGS = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 4.8, 6, 8, 10)


def nice_ceiling(value: float) -> float:
    """Return a round number of at least `value`, whose quarters are round too.

    Examples
    --------
    >>> nice_ceiling(91.2), nice_ceiling(0.3), nice_ceiling(0.0)
    (100.0, 0.32, 1.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    fitting = (step * power for step in _CEILINGS if value <= step * power * 1.0001)
    return float(f"{next(fitting):.3g}")


# -- the table ----------------------------------------------------------------------------------


def _table(run: TuningRun) -> Markup:
    """Return the trials that made the best rise, and those that failed."""
    rising = {index for index, _ in run.best_so_far()}
    shown = [trial for trial in run.trials if trial.index in rising or trial.outcome != "ok"]
    head = ("trial", "outcome", "time", "GFLOP/s", "config or reason")
    rows = [tag("tr", None, *map(_cell, _row(trial))) for trial in shown[:MOST_ROWS]]
    if len(shown) > MOST_ROWS:
        text = f"… and {len(shown) - MOST_ROWS} more"
        rows.append(tag("tr", None, tag("td", {"colspan": len(head)}, text)))
    return tag(
        "table",
        {"class": "dlc-table"},
        tag("thead", None, tag("tr", None, *(tag("th", {"scope": "col"}, c) for c in head))),
        tag("tbody", None, *rows),
    )


def _row(trial: Trial) -> tuple[str, ...]:
    if trial.seconds is None:
        reason = trial.result.message.splitlines()[0] if trial.result.message else ""
        return str(trial.index), trial.outcome, "", "", reason[:200]
    best = _best(trial)
    return str(trial.index), "ok", best["time"], f"{best['gflops']:g}", best["config"]


def _cell(text: str) -> Markup:
    return tag("td", {"style": "text-align:left"}, text)
