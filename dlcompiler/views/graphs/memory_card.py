"""The card of a plan of memory: where values lie in the arena, and when."""

from __future__ import annotations

from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.graphs.fusion_scene import arena_scene
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.units import format_bytes


def memory_html(plan: MemoryPlan) -> Markup:
    """Return the card of a plan of memory."""
    return card_html(memory_card(plan))


def memory_card(plan: MemoryPlan) -> Card:
    """Return the card of a plan of memory: its arena as a picture, and its size beside others."""
    text = f"{count(len(plan.placements), 'value')} of {count(len(plan.kernels), 'kernel')}"
    return card(
        "Plan of memory", f"{format_bytes(plan.bytes)} for {text}",
        facts=[
            ("at least", format_bytes(plan.bound)),
            ("without reuse", format_bytes(plan.naive)),
            ("by the pool of Relay", format_bytes(plan.classic)),
        ],
        scene=arena_scene(plan) if plan.placements else None,
    )  # fmt: skip
