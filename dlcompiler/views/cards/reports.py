"""Cards of race reports, compared schedules, traces of steps, and simulated caches."""

from __future__ import annotations

from dlcompiler.analysis.races import LoopVerdict, RaceReport
from dlcompiler.measurement.comparison import Comparison
from dlcompiler.schedule.trace import Trace
from dlcompiler.simulate.cache import CacheSimulation
from dlcompiler.views.cards.card import Card, Tone, card, card_html
from dlcompiler.views.cards.machines import paired_card
from dlcompiler.views.memory.cache_scene import cache_scene
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Table

_TONES: dict[str, Tone] = {"safe": "good", "unknown": "open", "violated": "bad"}
_SIGNS = {"safe": "✓ safe", "unknown": "◷ unknown", "violated": "✕ violated"}
_LONGEST_CODE = 20_000


def races_html(report: RaceReport) -> Markup:
    """Return the card of a race report: loops free of races, and the conflicts of the others."""
    return card_html(races_card(report))


def comparison_html(comparison: Comparison) -> Markup:
    """Return the card of two schedules side by side: their programs, and which is faster."""
    return card_html(comparison_card(comparison))


def trace_html(trace: Trace) -> Markup:
    """Return the card of a trace: the steps of a schedule as a table."""
    return card_html(trace_card(trace))


def caches_html(found: CacheSimulation) -> Markup:
    """Return the card of a cache simulation: hits and misses beside the predicted ones."""
    return card_html(caches_card(found))


def races_card(report: RaceReport) -> Card:
    """Return the card of a race report: loops free of races, and the conflicts of the others."""
    if not report.verdicts:
        return card(f"Races of {report.name}", "no loop is parallel or vectorized", tone="good")
    rows: list[list[Cell]] = [_race_row(verdict) for verdict in report.verdicts]
    safe = sum(verdict.status == "safe" for verdict in report.verdicts)
    return card(
        f"Races of {report.name}",
        f"{report.status}: {safe} of {len(rows)} loops may run in any order",
        tone=_TONES[report.status],
        tables=[("", {"columns": ["loop", "iterations", "why"], "rows": rows})],
    )


def _race_row(verdict: LoopVerdict) -> list[Cell]:
    return [verdict.label, _SIGNS[verdict.status], " ".join(verdict.reason.split())]


def comparison_card(comparison: Comparison) -> Card:
    """Return the card of two schedules side by side: their programs, and which is faster."""
    times = paired_card(comparison.timing)
    return card(
        f"{comparison.a} and {comparison.b}",
        times["text"],
        facts=[("a", comparison.a), ("b", comparison.b)],
        tables=times["tables"],
        code=comparison.diff[:_LONGEST_CODE],
    )


def trace_card(trace: Trace) -> Card:
    """Return the card of a trace: the steps of a schedule."""
    table: Table = {
        "columns": ["", "step"],
        "rows": [[n, str(step)] for n, step in enumerate(trace.steps, start=1)],
    }
    count = len(trace)
    steps = f"{count} step" if count == 1 else f"{count} steps"
    return card(
        "Trace",
        f"{steps}; to_python() and to_json() write them",
        tables=[("", table)] if trace.steps else [],
    )


def caches_card(found: CacheSimulation) -> Card:
    """Return the card of a cache simulation: hits and misses beside the predicted ones."""
    levels = ", ".join(f"{level}, {level.ways} ways" for level in found.levels)
    return card(
        f"Caches of {found.func.name}",
        f"{found.accesses:,} accesses, {found.provenance}",
        facts=[("caches", levels), ("sampled", ", ".join(map(str, found.sampled)))],
        scene=cache_scene(found),
    )
