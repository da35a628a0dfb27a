"""The passes of a lowering as static HTML: a table, and the changes made by each pass."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.passes import Pass
from dlcompiler.pipeline import Change
from dlcompiler.views.code.pass_steps import PassSteps, pass_difference, pass_steps
from dlcompiler.views.render.html import program_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import table_html
from dlcompiler.views.render.text import text_table

COLUMNS = ("", "pass", "effect", "nodes", "needs", "gives")


def passes_html(changes: Sequence[Change], passes: Sequence[Pass]) -> list[Markup]:
    """Return a table of the passes, and the changes of each one; only the first is unfolded.

    Times are left out, so that the same program always gives the same HTML.

    Parameters
    ----------
    changes
        What an observer saw, in order.
    passes
        The passes, for what they need and give.
    """
    model = pass_steps(changes, passes)
    table = tag("div", {"class": "dlc-fragment"}, table_html(COLUMNS, _rows(model)))
    return [table, *(_difference(c, model) for c in changes if not c.is_unchanged)]


def passes_table(changes: Sequence[Change], passes: Sequence[Pass]) -> str:
    """Return the passes as a table for a terminal."""
    return text_table(COLUMNS, _rows(pass_steps(changes, passes)))


def _rows(model: PassSteps) -> list[list[object]]:
    return [
        [
            step["number"],
            step["name"],
            step["effect"],
            step["nodes"],
            ", ".join(step["requires"]),
            ", ".join(step["establishes"]),
        ]
        for step in model["steps"]
    ]


def _difference(change: Change, model: PassSteps) -> Markup:
    step = model["steps"][change.number - 1]
    is_open = change.number == model["open"]
    return tag(
        "details",
        {"open": "open"} if is_open else None,
        tag("summary", {"style": "cursor:pointer"}, f"{step['number']} {step['name']}"),
        tag("p", {"style": "margin:4px 0;font-size:12px"}, step["about"]),
        program_html(pass_difference(change), "Lines changed by this pass"),
    )
