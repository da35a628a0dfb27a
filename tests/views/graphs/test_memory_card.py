"""A plan of memory shows its arena, and is shown in a notebook."""

import pytest

from dlcompiler.graph import builders, op, optimize, plan_memory, var
from dlcompiler.graph.ir import Module
from dlcompiler.views.graphs.memory_card import memory_card


def test_the_card_of_a_plan():
    given = builders.mlp()
    plan = plan_memory(optimize(given.bound))
    card = memory_card(plan)
    count = len(plan.placements)
    assert card["text"].endswith(f"for {count} values of {len(plan.kernels)} kernels")
    bars = [mark for mark in card["scene"]["marks"] if mark.get("role") == "bar"]
    assert len(bars) == count
    assert "<img" in plan._repr_html_() or "<svg" in plan._repr_html_()


@pytest.mark.parametrize("name", ["<script>", "a" * 5000])
def test_plans_of_awkward_graphs(name):
    for body in (var("x", (2,)), op.exp(var("x", (2,)), name=name), op.exp(var("x", (0,)))):
        html = plan_memory(Module.from_expr(body))._repr_html_()
        assert "<script>" not in html
        assert len(html) < 20_000
