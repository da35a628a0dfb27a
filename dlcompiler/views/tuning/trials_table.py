"""Table of trials: sorted, filtered, one page at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from dlcompiler.runtime.timing import format_rate, format_ratio, format_seconds
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.space_points import value_text
from dlcompiler.views.tuning.watched import TrialRow, Watched

PAGE = 100
"""Rows of a page, few enough for a quick browser."""
Sortable = Callable[[TrialRow], tuple[bool, float | str]]


def _number(value: float | None) -> tuple[bool, float | str]:
    return value is None, value or 0.0


COLUMNS: Mapping[str, tuple[str, Sortable]] = {
    "index": ("trial", lambda row: (False, row.index)),
    "round": ("round", lambda row: (False, row.round)),
    "origin": ("why tried", lambda row: (False, row.origin)),
    "outcome": ("outcome", lambda row: (False, row.outcome)),
    "seconds": ("time", lambda row: _number(row.seconds)),
    "gflops": ("GFLOP/s", lambda row: _number(row.gflops)),
    "predicted_s": ("predicted", lambda row: _number(row.predicted_s)),
    "error": ("off by", lambda row: _number(_error(row))),
}
"""Columns to sort by: name, heading and sort key. Trials without a value come last."""
_NUMBERS = ("index", "round", "seconds", "gflops", "predicted_s", "error")


@dataclass(frozen=True, slots=True)
class Order:
    """Which trials are shown, and in which order."""

    by: str = "index"
    """A name of `COLUMNS`."""
    is_descending: bool = True
    outcome: str | None = None
    """Show only trials with this outcome; None: all."""
    page: int = 0
    """Number of the page of `PAGE` rows, from 0."""


class Heading(TypedDict):
    """A column."""

    name: str
    text: str
    is_number: bool


class ShownTrial(TypedDict):
    """A row."""

    key: str
    outcome: str
    cells: list[str]
    config: str


class TrialsTable(TypedDict):
    """A page of trials."""

    columns: list[Heading]
    rows: list[ShownTrial]
    count: int
    """Number of trials that pass the filter."""
    page: int
    pages: int
    by: str
    is_descending: bool
    outcome: str | None
    outcomes: list[tuple[str, int]]
    """Outcomes to filter by, each with its number of trials."""
    summary: str


def trials_table(seen: Watched, order: Order) -> TrialsTable:
    """Return a page of the trials of a run."""
    by = order.by if order.by in COLUMNS else "index"
    rows = _ordered(seen, order)
    pages = max(-(-len(rows) // PAGE), 1)
    page = min(max(order.page, 0), pages - 1)
    shown = rows[page * PAGE : (page + 1) * PAGE]
    return {
        "columns": [{"name": name, "text": words, "is_number": name in _NUMBERS}
                    for name, (words, _) in COLUMNS.items()],
        "rows": [_shown(seen, row) for row in shown],
        "count": len(rows),
        "page": page,
        "pages": pages,
        "by": by,
        "is_descending": order.is_descending,
        "outcome": order.outcome,
        "outcomes": list(seen.counts.items()),
        "summary": _summary(rows, shown, pages, page),
    }  # fmt: skip


def page_of(seen: Watched, order: Order, index: int) -> int | None:
    """Return the number of the page that shows a trial; None if the filter hides it."""
    rows = _ordered(seen, order)
    return next((n // PAGE for n, row in enumerate(rows) if row.index == index), None)


def _ordered(seen: Watched, order: Order) -> list[TrialRow]:
    """Return the trials that pass the filter, sorted; those without a value come last."""
    key = COLUMNS[order.by if order.by in COLUMNS else "index"][1]
    rows = [row for row in seen.rows if order.outcome in (None, row.outcome)]
    known = sorted((row for row in rows if not key(row)[0]), key=key, reverse=order.is_descending)
    return [*known, *(row for row in rows if key(row)[0])]


def config_text(seen: Watched, point: int) -> str:
    """Return the knobs of a point and their values as one line."""
    values = seen.space.at(point).values
    return ", ".join(f"{name}={value_text(value)}" for name, value in values.items())


def _summary(rows: list[TrialRow], shown: list[TrialRow], pages: int, page: int) -> str:
    if pages == 1:
        return f"{len(rows):,} trials."
    first = page * PAGE
    return f"Trials {first + 1:,} to {first + len(shown):,} of {len(rows):,} in this order."


def _shown(seen: Watched, row: TrialRow) -> ShownTrial:
    error = _error(row)
    cells = [
        str(row.index), str(row.round), row.origin, row.outcome,
        "" if row.seconds is None else format_seconds(row.seconds),
        "" if row.gflops is None else format_rate(row.gflops),
        "" if row.predicted_s is None else format_seconds(row.predicted_s),
        "" if error is None else format_ratio(error),
    ]  # fmt: skip
    tried = row.candidate.text if row.candidate else config_text(seen, row.point)
    return {"key": key_of(row.index), "outcome": row.outcome, "cells": cells,
            "config": tried}  # fmt: skip


def _error(row: TrialRow) -> float | None:
    """Return predicted time over actual time; above 1 the trial was faster than predicted."""
    if not row.predicted_s or not row.seconds:
        return None
    return row.predicted_s / row.seconds
