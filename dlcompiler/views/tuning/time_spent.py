"""Chart of the time that a run spends in each phase, in total and by round."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.autotune.run.clock import Phases
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.tuning.chart import (
    AMBER,
    BLUE,
    BOTTOM,
    GREEN,
    LEFT,
    PINK,
    RIGHT,
    SKY,
    USUAL,
    Scale,
    axes,
    legend,
    nice_ceiling,
    number,
    text,
)
from dlcompiler.views.tuning.watched import Watched, time_left

PHASES = {"searching": BLUE, "building": AMBER, "running": GREEN, "waiting": SKY, "paused": PINK}
"""The phases of a run, in the order of their bars, with their colours."""
_BAR_PX = 34.0
_PLOT_PX = 130.0
_MOST_ROUNDS = 60
HOW_TO_READ = (
    "the upper bar is the whole run. Searching is the work of the tuner: it proposes, learns and "
    "records. Building and running are the work on candidates. Waiting is the rest, such as the "
    "start of a worker. Below, each round has a bar of its own."
)


def time_spent(seen: Watched, *, width: float = USUAL) -> Scene:
    """Return the chart of the time spent in each phase.

    Parameters
    ----------
    seen
        The run. Building that overlaps with a run counts in the bar of its round, but not in the
        bar of the whole run.
    width
        Of the picture [px].
    """
    phases = _phases(seen.phases)
    total = sum(phases.values())
    marks = _whole(phases, total, width)
    top = 26 + _BAR_PX + 30
    rounds = _by_round(seen)
    below = top
    if rounds:
        marks += _rounds(rounds, width, top)
        below = top + _PLOT_PX + BOTTOM
    items = [(name, _sample(name)) for name in phases]
    marks += legend(items, LEFT, below + 16, width - LEFT)
    return {
        "title": "Where the time goes",
        "summary": _summary(seen, phases, total),
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": below + 40,
        "marks": marks,
        "table": {
            "columns": ["phase", "seconds", "share"],
            "rows": [[name, round(value, 3), f"{value / (total or 1):.1%}"]
                     for name, value in phases.items()],
        },
    }  # fmt: skip


def _phases(phases: Phases | None) -> dict[str, float]:
    if phases is None:
        return {}
    found = {name: float(getattr(phases, f"{name}_s")) for name in PHASES}
    return {name: value for name, value in found.items() if value or name != "paused"}


def _by_round(seen: Watched) -> dict[int, dict[str, float]]:
    """Return the time spent in each phase of the last rounds [s]."""
    found = {
        each.number: {"searching": each.searching_s, "building": 0.0, "running": 0.0}
        for each in seen.rounds[-_MOST_ROUNDS:]
    }
    for row in seen.rows:
        if row.round in found:
            found[row.round]["building"] += row.build_s
            found[row.round]["running"] += row.run_s
    return found


def _whole(phases: Mapping[str, float], total: float, width: float) -> list[Mark]:
    if not total:
        return [text(LEFT, 40, "no round has ended yet")]
    room, at = width - LEFT - RIGHT, LEFT
    marks: list[Mark] = []
    for name, value in phases.items():
        size = room * value / total
        marks.append(_bar(name, at, 24, size, _BAR_PX, f"{name}: {format_seconds(value)}"))
        words = f"{value / total:.0%}"
        if size > 40:
            marks.append(text(at + size / 2, 20, words, "middle"))
        at += size
    return marks


def _rounds(rounds: Mapping[int, Mapping[str, float]], width: float, top: float) -> list[Mark]:
    first, last = min(rounds), max(rounds)
    most = max(sum(times.values()) for times in rounds.values())
    x = Scale(first - 0.5, last + 0.5, LEFT, width - RIGHT, is_whole=True)
    y = Scale(0, nice_ceiling(most), top + _PLOT_PX, top + 12)
    marks = axes(x, y, ("round", "seconds of each round [s]"), (number, number))
    size = max((x.end - x.start) / (last - first + 1) * 0.7, 2.0)
    for n, times in rounds.items():
        below = 0.0
        for name, value in times.items():
            high, low = y.at(below + value), y.at(below)
            title = f"round {n}, {name}: {format_seconds(value)}"
            marks.append(_bar(name, x.at(n) - size / 2, high, size, low - high, title))
            below += value
    return marks


def _bar(name: str, x: float, y: float, w: float, h: float, title: str) -> Mark:
    return {"shape": "rect", "role": "bar", "x": round(x, 1), "y": round(y, 1),
            "w": round(max(w, 0.5), 1), "h": round(max(h, 0.5), 1),
            "fill": PHASES[name], "title": title}  # fmt: skip


def _sample(name: str) -> Mark:
    return {"shape": "dots", "role": "dots", "glyph": "disc", "r": 5, "xy": [],
            "fill": PHASES[name]}  # fmt: skip


def _summary(seen: Watched, phases: Mapping[str, float], total: float) -> str:
    parts = [f"{format_seconds(seen.elapsed_s)} {'in all' if seen.is_over else 'so far'}"]
    parts += [f"{name} {value / total:.0%}" for name, value in phases.items() if total]
    return f"{'; '.join(filter(None, [*parts, time_left(seen)]))}."
