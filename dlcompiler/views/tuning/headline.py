"""Headline of a tuning run: state, best result, counts and time, shown above its pictures."""

from __future__ import annotations

from typing import TypedDict

from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.trials_table import config_text
from dlcompiler.views.tuning.watched import Watched, done_text, time_left


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
        rate = f"{format_rate(best.gflops or 0)} GFLOP/s ({format_seconds(best.seconds or 0)})"
        facts.append(("best", f"{rate}, trial {best.index}"))
    facts.append(("failed", ", ".join(failed) or "none"))
    facts.append(("speed", f"{format_rate(speed)} trials/s"))
    facts.append(("time", _time(seen)))
    if best is not None:
        facts.append(("best config", config_text(seen, best.point)))
    if seen.prior:
        facts.append(("earlier runs", f"{len(seen.prior):,} trials"))
    return {
        "title": seen.title,
        "state": seen.state,
        "is_over": seen.is_over,
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
        parts.append(f"best {format_rate(best.gflops or 0)} GFLOP/s at trial {best.index}")
    failed = [f"{count} {name}" for name, count in seen.counts.items() if name != "ok"]
    parts.append(", ".join(failed) if failed else "none failed")
    return "; ".join(filter(None, [*parts, time_left(seen)]))


def _time(seen: Watched) -> str:
    return ", ".join(filter(None, [_clock(seen.elapsed_s), time_left(seen, _clock)]))


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
