"""The table of measured steps, and a page that shows each with its loop nest."""

from __future__ import annotations

from typing import Any, TypedDict

from dlcompiler.measurement.steps import MeasuredStep, StepTable
from dlcompiler.runtime.timing import format_rate, format_ratio, format_seconds
from dlcompiler.views.code.program import Program, program
from dlcompiler.views.loops.loop_tree import LoopTree, loop_tree
from dlcompiler.views.render.html import program_html, tree_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.page import Section, page

MODEL_VERSION = 1
_NUMBER = {"style": "text-align:right"}
_VALUE = {"style": "text-align:right;white-space:nowrap"}
_TEXT = {"style": "text-align:left"}
HOW_TO_READ = "How to read: medians of repeated calls; ± is half of the quartile range."
HOW_TO_READ_RATIO = (
    " A ratio above 1 is faster than the baseline. It is the median of the ratios of rounds where "
    "both were measured in alternation, so the quotient of both rates may differ a little."
)


class StepModel(TypedDict):
    """One step: its row of the table, its loops and its program."""

    row: dict[str, Any]
    tree: LoopTree
    program: Program


class StepsModel(TypedDict):
    """The table of measured steps."""

    version: int
    baseline: str | None
    steps: list[StepModel]


def steps_model(table: StepTable) -> StepsModel:
    """Return a table of steps as data."""
    steps = [
        StepModel(row=row, tree=loop_tree(step.schedule), program=program(step.func))
        for row, step in zip(table.rows(), table.steps, strict=True)
    ]
    return StepsModel(version=MODEL_VERSION, baseline=table.baseline, steps=steps)


def step_html(step: MeasuredStep) -> Markup:
    """Return the HTML of a step: its measurements and its loop nest."""
    return tag(
        "div",
        {"class": "dlc-fragment"},
        tag("p", {"style": "margin:4px 0"}, repr(step)),
        tree_html(loop_tree(step.schedule)),
    )


def steps_html(table: StepTable) -> Markup:
    """Return the table of steps."""
    return rows_html(table.rows(), table.baseline)


def rows_html(rows: list[dict[str, Any]], baseline: str | None) -> Markup:
    """Return rows of measured steps as a table."""
    heads = ["step", "threads", "time", "±", "GFLOP/s"]
    heads += [f"{baseline} GFLOP/s", f"ratio to {baseline}"] if baseline else []
    body = [_row(row, bool(baseline)) for row in rows]
    return tag(
        "div",
        {"class": "dlc-fragment"},
        tag(
            "table",
            {"class": "dlc-fragment-table", "style": "border-spacing:8px 2px"},
            tag(
                "caption",
                {"style": "text-align:left"},
                "Measured on this machine, after verification",
            ),
            tag("thead", None, tag("tr", None, *map(_head, heads))),
            tag("tbody", None, *body),
        ),
        tag(
            "p",
            {"style": "font-size:12px;opacity:.8;margin:4px 0"},
            HOW_TO_READ + (HOW_TO_READ_RATIO if baseline else ""),
        ),
    )


def _head(text: str) -> Markup:
    return tag("th", {"scope": "col", **(_TEXT if text == "step" else _NUMBER)}, text)


def _row(row: dict[str, Any], has_baseline: bool) -> Markup:
    cells = [
        tag("td", _TEXT, row["step"]),
        tag("td", _VALUE, str(row["threads"] or "all")),
        tag("td", _VALUE, format_seconds(row["median_s"])),
        tag("td", _VALUE, format_seconds(row["spread_s"])),
        tag("td", _VALUE, _rate(row["gflops"])),
    ]
    if has_baseline:
        cells.append(tag("td", _VALUE, _rate(row["baseline_gflops"])))
        ratio = row["ratio"]
        cells.append(tag("td", _VALUE, "" if ratio is None else format_ratio(ratio)))
    return tag("tr", None, *cells)


def _rate(gflops: float | None) -> str:
    return "" if gflops is None else format_rate(gflops)


def steps_page(models: list[StepsModel], title: str, text: str = "") -> str:
    """Return a page without scripts: the tables of steps, and each step's loop nest and program.

    Parameters
    ----------
    models
        What `steps_model` returned, for each table.
    title, text
        What stands above them.
    """
    sections = []
    for model in models:
        rows = [step["row"] for step in model["steps"]]
        table = rows_html(rows, model["baseline"])
        sections.append(Section("Measured steps", "", [table]))
        for step in model["steps"]:
            row = step["row"]
            rate = f", {format_rate(row['gflops'])} GFLOP/s" if row["gflops"] else ""
            summary = f"{format_seconds(row['median_s'])} measured{rate}, verified."
            fragments = [tree_html(step["tree"]), program_html(step["program"])]
            sections.append(Section(row["step"], summary, fragments))
    return page(title, sections, text)
