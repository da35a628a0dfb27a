"""Fusion as fragments of HTML: what a notebook shows where no kernel runs."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.views.graphs.fused_graph import FusedGraph
from dlcompiler.views.graphs.fusion_picture import Shown, fusion_picture
from dlcompiler.views.graphs.fusion_scene import arena_scene, decision_table, fusion_scene
from dlcompiler.views.graphs.pass_steps import PassStep, steps_table
from dlcompiler.views.render.markup import Markup, join, tag
from dlcompiler.views.render.scene import Scene, scene_html, table_html

MOST_ROWS = 60
"""Most decisions of a static page; [1]."""
_SMALL = {"style": "cursor:pointer;font-size:12px"}


def fusion_parts(
    graph: FusedGraph, shown: Shown, steps: Sequence[PassStep], *,
    facts: Sequence[tuple[str, str]] = (), times: Scene | None = None,
) -> dict[str, Markup]:  # fmt: skip
    """Return the parts of a static page by their names, the most important one first.

    Parameters
    ----------
    graph : FusedGraph
        The graph.
    shown : Shown
        How much of it is drawn.
    steps : sequence of PassStep
        The passes that made it.
    facts : sequence of (str, str)
        Numbers with their labels.
    times : Scene, optional
        The measured times.
    """
    table = decision_table(graph.verdicts, MOST_ROWS)
    scene = fusion_scene(fusion_picture(graph, shown), table)
    parts = {"the graph": join(_facts(facts), scene_html(scene))}
    if graph.plan is not None and graph.plan.placements:
        parts["the arena"] = _folded("The arena", scene_html(arena_scene(graph.plan)))
    if times is not None:
        parts["the times"] = _folded("Time of each kernel", scene_html(times))
    if steps:
        found = steps_table(steps)
        parts["the passes"] = _folded("The passes", table_html(found["columns"], found["rows"]))
    return parts


def _facts(facts: Sequence[tuple[str, str]]) -> Markup:
    if not facts:
        return Markup("")
    return tag("p", {"style": "margin:4px 0"}, "; ".join(f"{name}: {text}" for name, text in facts))


def _folded(title: str, content: Markup) -> Markup:
    return tag("details", None, tag("summary", _SMALL, title), content)
