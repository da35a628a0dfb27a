"""The card of two models that ran on the same arrays: which of their values differ."""

from __future__ import annotations

from dlcompiler.graph.execution import ModelComparison, ValuePair
from dlcompiler.views.cards.card import Card, Tone, card, card_html
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell

MOST_ROWS = 500
"""Most values in the table; [1]."""


def comparison_html(comparison: ModelComparison) -> Markup:
    """Return the card of two models side by side: their values, and where they differ."""
    return card_html(comparison_card(comparison))


def comparison_card(comparison: ModelComparison) -> Card:
    """Return the card of two models side by side: their values, and where they differ."""
    tone: Tone = "bad" if not comparison.results_agree else "open" if comparison.first else "good"
    rows = [_row(pair) for pair in comparison.pairs]
    shown = rows[:MOST_ROWS]
    facts = [
        ("values that only the first has", str(len(comparison.only[0]))),
        ("values that only the second has", str(len(comparison.only[1]))),
    ]
    columns = ["value", "type", "largest error", "at", "tolerance", ""]
    title = "Values" if len(shown) == len(rows) else f"The first {len(shown)} of {len(rows)} values"
    return card(
        "Two models", str(comparison), tone=tone, facts=facts,
        tables=[(title, {"columns": columns, "rows": shown})],
    )  # fmt: skip


def _row(pair: ValuePair) -> list[Cell]:
    return [
        pair.name,
        f"{pair.dtype}{list(pair.shape)}",
        f"{pair.error:.3g}",
        str(list(pair.at)),
        f"{pair.tolerance:g}",
        "✕ differs" if pair.differs else "✓",
    ]
