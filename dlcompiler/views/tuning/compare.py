"""Compare tuners, seeds or machines by several runs of each: median and quartiles.

**Source:** T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018, Figure 12: the
best so far against the number of trials, with a line for each tuner.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.autotune import TuningRun
from dlcompiler.errors import TuningError
from dlcompiler.runtime.timing import format_rate
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.tuning.chart import (
    BOTTOM,
    DASHES,
    LEFT,
    RIGHT,
    TOP,
    USUAL,
    Scale,
    axes,
    legend,
    nice_ceiling,
    polyline,
)
from dlcompiler.views.tuning.watched import Watched, watched

RunLike: TypeAlias = "TuningRun | Watched | Sequence[float]"
Against: TypeAlias = Literal["trials", "seconds"]
HIT = 0.95
"""A run reaches the best known result at this share of it."""
_PLOT_PX = 260.0
_MOST_STEPS = 240
HOW_TO_READ = (
    "each line belongs to a tuner: the median, over its runs, of the best result so far. Higher is "
    "better, further left is sooner. The band holds the middle half of the runs. A run that ended "
    "earlier keeps its last value."
)


@dataclass(frozen=True, slots=True)
class Course:
    """All runs of one tuner, sampled at the same trials or times."""

    name: str
    at: tuple[float, ...]
    """Trials, from 1, or seconds [s]."""
    median: tuple[float, ...]
    low: tuple[float, ...]
    """Lower quartile."""
    high: tuple[float, ...]
    """Upper quartile."""
    hits: tuple[float | None, ...]
    """The trial or time at which each run first reached `HIT` of the best known; None: never."""


def compare_tuners(
    groups: Mapping[str, Sequence[RunLike]],
    *,
    against: Against = "trials",
    best: float | None = None,
    unit: str = "GFLOP/s",
    title: str = "Tuners compared",
    width: float = USUAL,
) -> Scene:
    """Return the medians and the spread of several runs of several tuners.

    Parameters
    ----------
    groups : mapping
        By name, the runs (ended or still running), or for each run its best so far after each
        trial, as numbers.
    against
        The horizontal axis: trials, or seconds since the start. Runs given as numbers have no
        times.
    best
        The best known; by default, the best of all these runs.
    unit
        Of the numbers.
    title
        Title of the picture.
    width
        Of the picture [px].

    Returns
    -------
    Scene
        Its table lists the trials that each tuner needed for 0.95 of the best known.

    Raises
    ------
    TuningError
        If no run has a trial, or if `against` is seconds and a run is given as numbers.
    """
    series = {name: [_series(run, against, name) for run in runs] for name, runs in groups.items()}
    if not any(any(run for run in runs) for runs in series.values()):
        raise TuningError(
            "compare tuners", "no run has a trial yet",
            got=", ".join(f"{name}: {len(runs)} runs" for name, runs in groups.items()) or "none",
        )  # fmt: skip
    every = [value for runs in series.values() for run in runs for _, value in run]
    known = max(every) if best is None else best
    end = max(at for runs in series.values() for run in runs for at, _ in run)
    places = _places(end, against)
    courses = [_course(name, runs, places, known) for name, runs in series.items() if any(runs)]
    across = Scale(0, end, LEFT, width - RIGHT, is_whole=against == "trials")
    up = Scale(0, nice_ceiling(max(*every, known)), TOP + _PLOT_PX, TOP)
    label = "trials" if against == "trials" else "seconds since the start [s]"
    marks = axes(across, up, (label, f"best so far [{unit}]"))
    for n, course in enumerate(courses):
        marks += _drawn(course, n, across, up)
    marks.append({"shape": "line", "role": "capacity", "x": LEFT, "x2": width - RIGHT,
                  "y": up.at(HIT * known), "y2": up.at(HIT * known),
                  "title": f"{HIT} of the best known"})  # fmt: skip
    items: list[tuple[str, Mark]] = [
        (f"{course.name} ({len(groups[course.name])})", _look(n) | {"shape": "line"})
        for n, course in enumerate(courses)
    ]
    items.append((f"{HIT} of the best known", {"shape": "line", "role": "capacity"}))
    below = TOP + _PLOT_PX + BOTTOM
    marks += legend(items, LEFT, below + 16, width - LEFT)
    return {
        "title": title,
        "summary": _summary(courses, known, unit, against),
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": below + 58,
        "marks": marks,
        "table": {
            "columns": ["tuner", "runs", f"median of the best [{unit}]", "lower quartile",
                        "upper quartile", f"{label} to {HIT} of the best known, median"],
            "rows": [_row(course, len(groups[course.name])) for course in courses],
        },
    }  # fmt: skip


def _series(run: RunLike, against: Against, name: str) -> list[tuple[float, float]]:
    """Return the best value of a run after each trial, as (trial or seconds, best so far)."""
    if isinstance(run, TuningRun):
        run = watched(run)
    if isinstance(run, Watched):
        pairs = [(row.index + 1 if against == "trials" else row.elapsed_s, row.gflops or 0.0)
                 for row in run.rows]  # fmt: skip
    elif against == "seconds":
        raise TuningError(
            "compare tuners by time", "a run given as numbers has no times",
            got=f"{name}: {len(run)} numbers", expected="runs of tune()",
            hint="compare_tuners(…, against='trials')",
        )  # fmt: skip
    else:
        pairs = [(n + 1, float(value)) for n, value in enumerate(run)]
    best, found = 0.0, []
    for at, value in pairs:
        best = max(best, value)
        found.append((at, best))
    return found


def _places(end: float, against: Against) -> list[float]:
    """Return the sampling points of the axis: each trial, or `_MOST_STEPS` even steps."""
    if against == "trials" and end <= _MOST_STEPS:
        return [float(n) for n in range(1, int(end) + 1)]
    return [end * (n + 1) / _MOST_STEPS for n in range(_MOST_STEPS)]


def _course(
    name: str,
    runs: Sequence[Sequence[tuple[float, float]]],
    places: Sequence[float],
    known: float,
) -> Course:
    walks = [_walk(run, places) for run in runs if run]
    parts = [_quartiles(values) for values in zip(*walks, strict=True)]
    low, median, high = zip(*parts, strict=True)
    hits = [next((at for at, value in run if value >= HIT * known), None) for run in runs]
    return Course(name, tuple(places), median, low, high, tuple(hits))


def _walk(run: Sequence[tuple[float, float]], places: Sequence[float]) -> list[float]:
    found, at, best = [], 0, 0.0
    for place in places:
        while at < len(run) and run[at][0] <= place:
            best = run[at][1]
            at += 1
        found.append(best)
    return found


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def _look(n: int) -> Mark:
    return {"role": "curve", "stroke": HUES[n % len(HUES)], "dash": DASHES[n % len(DASHES)]}


def _drawn(course: Course, n: int, across: Scale, up: Scale) -> list[Mark]:
    def at(values: Sequence[float]) -> list[tuple[float, float]]:
        return [(across.at(x), up.at(y)) for x, y in zip(course.at, values, strict=True)]

    marks: list[Mark] = []
    if course.low != course.high:
        outline = polyline([*at(course.high), *reversed(at(course.low))])
        hue, title = HUES[n % len(HUES)], f"{course.name}, middle half"
        marks.append(
            {"shape": "path", "role": "band", "d": f"{outline}Z", "fill": hue, "title": title}
        )
    marks.append({**_look(n), "shape": "path", "d": polyline(at(course.median)),
                  "title": f"{course.name}, median"})  # fmt: skip
    return marks


def _median_hit(course: Course) -> float | None:
    """Return the median trial or time at which runs reach the goal; None if half never do."""
    hits = sorted(float("inf") if hit is None else hit for hit in course.hits)
    median = statistics.median(hits)
    return None if median == float("inf") else median


def _row(course: Course, runs: int) -> list[str | int | float | None]:
    numbers = (float(f"{each[-1]:.4g}") for each in (course.median, course.low, course.high))
    hit = _median_hit(course)
    return [course.name, runs, *numbers, "not reached" if hit is None else round(hit, 1)]


def _summary(courses: Sequence[Course], known: float, unit: str, against: Against) -> str:
    what = "trials" if against == "trials" else "seconds"
    parts = [
        f"{course.name} {'never' if hit is None else f'after {hit:g} {what}'}"
        for course in courses
        for hit in (_median_hit(course),)
    ]
    best = f"{HIT} of the best known ({format_rate(known)} {unit})"
    return f"{best} is reached, in the median: {', '.join(parts)}."
