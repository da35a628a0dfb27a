"""Headline of a tuning run: state, best result, counts and time, shown above its pictures."""

from __future__ import annotations

from typing import TypedDict

from dlcompiler.runtime.timing import format_seconds
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.trials_table import config_text
from dlcompiler.views.tuning.watched import Watched, done_text

OVER = ("finished", "stopped", "failed")
"""States of a run that has ended: no more trials follow."""
ESTIMATING = "estimating the time left"


class Headline(TypedDict):
    """The headline of a run."""

    title: str
    state: str
    is_over: bool
    text: str
    """The state in one sentence."""
    facts: list[tuple[str, str]]
    """Pairs of a name and a value, as text."""
    best: str | None
    """Key of the fastest trial."""
    note: str


def headline(seen: Watched) -> Headline:
    """Return the headline of a run."""
    best = seen.best
    failed = [f"{count} {name}" for name, count in seen.counts.items() if name != "ok"]
    speed = len(seen.rows) / max(seen.elapsed_s, 1e-9)
    facts = [("trials", done_text(seen))]
    if best is None:
        facts.append(("best", "none yet"))
    else:
        rate = f"{best.gflops or 0:.4g} GFLOP/s ({format_seconds(best.seconds or 0)})"
        facts.append(("best", f"{rate}, trial {best.index}"))
    facts.append(("failed", ", ".join(failed) or "none"))
    facts.append(("speed", f"{speed:.1f} trials/s"))
    facts.append(("time", _time(seen)))
    if best is not None:
        facts.append(("its config", config_text(seen, best.point)))
    if seen.prior:
        facts.append(("earlier runs", f"{len(seen.prior):,} trials"))
    return {
        "title": seen.title,
        "state": seen.state,
        "is_over": seen.state in OVER,
        "text": sentence(seen),
        "facts": facts,
        "best": None if best is None else key_of(best.index),
        "note": seen.note,
    }


def sentence(seen: Watched) -> str:
    """Return the state of a run in one sentence."""
    best = seen.best
    parts = [f"{seen.state}, {done_text(seen)} trials"]
    if best is not None:
        parts.append(f"best {best.gflops or 0:.3g} GFLOP/s at trial {best.index}")
    failed = [f"{count} {name}" for name, count in seen.counts.items() if name != "ok"]
    parts.append(", ".join(failed) if failed else "none failed")
    if seen.remaining_s is not None:
        parts.append(f"about {format_seconds(seen.remaining_s)} to go")
    elif _is_estimating(seen):
        parts.append(ESTIMATING)
    return "; ".join(parts)


def _time(seen: Watched) -> str:
    said = _clock(seen.elapsed_s)
    if seen.remaining_s is not None:
        return f"{said}, about {_clock(max(seen.remaining_s, 0.0))} to go"
    return f"{said}, {ESTIMATING}" if _is_estimating(seen) else said


def _is_estimating(seen: Watched) -> bool:
    """Tell whether the run will have an estimate of its end, but has none yet."""
    return seen.state == "running" and seen.most_trials is not None


def _clock(value: float) -> str:
    """Return a time in whole seconds, so that a page does not flicker.

    Examples
    --------
    >>> _clock(4.2), _clock(75), _clock(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
