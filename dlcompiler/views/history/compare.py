"""Compare two states of a schedule: their steps, their metrics and their programs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import PrimFunc
from dlcompiler.schedule import Node
from dlcompiler.views.code.program import Program, program
from dlcompiler.views.history.columns import (
    NotePair,
    NumberPair,
    note_pairs,
    number_pairs,
    reasons,
    time_pairs,
)
from dlcompiler.views.memory.metrics import Metric
from dlcompiler.views.render.html import program_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import table_html

HOW_TO_READ = (
    "A is on the left, B on the right. A line with − is only in the program of A, a line with + "
    "only in that of B; the others are in both."
)


@dataclass(frozen=True)
class Side:
    """One of the two compared states, with its program and metrics."""

    node: Node
    program: PrimFunc | DLCompilerError
    """Its lowered program, or the error of lowering."""
    metrics: Sequence[Metric] = ()
    """Its metrics."""


class SideView(TypedDict):
    """A state as the view shows it: title, number of steps and note."""

    id: str
    title: str
    """Its name, or else the step that led to it."""
    steps: int
    note: str


class StepPair(TypedDict):
    """One line of the comparison of steps; `a` or `b` is None if that state lacks the step."""

    a: str | None
    b: str | None
    status: Literal["same", "only in A", "only in B"]


class StateComparison(TypedDict):
    """The view of two compared states of one schedule."""

    a: SideView
    b: SideView
    summary: str
    how_to_read: str
    steps: list[StepPair]
    metrics: list[NumberPair]
    """Numbers of both states: counted, predicted and measured ones."""
    unknown: list[str]
    """Why numbers are unknown, or cannot be compared."""
    notes: list[NotePair]
    program: Program | None
    """B's program, compared with A's; None if one of them has none."""
    problems: list[str]
    """Why a state has no program."""


def compare_states(a: Side, b: Side, target: str = "") -> StateComparison:
    """Return what differs between two states of one schedule.

    Parameters
    ----------
    a, b
        The states.
    target
        Name of the target that they are compared for: what is known for others names its target.

    Returns
    -------
    StateComparison
        JSON-able.
    """
    steps = _steps(a.node, b.node)
    both = isinstance(a.program, PrimFunc) and isinstance(b.program, PrimFunc)
    lines = program(b.program, a.program) if both else None  # type: ignore[arg-type]
    times, differ = time_pairs(a.node, b.node, target)
    return {
        "a": _side(a.node),
        "b": _side(b.node),
        "summary": _summary(steps, lines),
        "how_to_read": HOW_TO_READ,
        "steps": steps,
        "metrics": [*number_pairs(a.metrics, b.metrics), *times],
        "unknown": [*reasons([*a.metrics, *b.metrics]), *differ],
        "notes": note_pairs(a.node, b.node, target),
        "program": lines,
        "problems": [
            f"{letter} has no program: {side.program.operation}: {side.program.problem}"
            for letter, side in (("A", a), ("B", b))
            if isinstance(side.program, DLCompilerError)
        ],
    }


def comparison_html(view: StateComparison) -> Markup:
    """Return a comparison as a fragment without script."""
    titles = f"A: {view['a']['title']} — B: {view['b']['title']}. "
    parts = [
        tag("p", None, tag("strong", None, titles), view["summary"]),
        table_html(["step of A", "step of B"], [[s["a"], s["b"]] for s in view["steps"]]),
    ]
    if view["metrics"]:
        keys = ("name", "unit", "a", "b", "change", "kind")
        rows = [[pair[key] for key in keys] for pair in view["metrics"]]  # type: ignore[literal-required]
        parts.append(table_html(["metric", "unit", "A", "B", "B ÷ A", "what it is"], rows))
    parts += [tag("p", None, reason) for reason in view["unknown"]]
    if view["notes"]:
        noted = [[note["name"], note["a"], note["b"]] for note in view["notes"]]
        parts.append(table_html(["note", "A", "B"], noted))
    parts += [tag("p", None, problem) for problem in view["problems"]]
    if view["program"]:
        parts.append(program_html(view["program"], "Program of B compared with that of A"))
    parts.append(tag("p", {"style": "font-size:12px"}, f"How to read: {view['how_to_read']}"))
    return tag("div", {"class": "dlc-fragment"}, *parts)


def _side(node: Node) -> SideView:
    steps = len(node.path()) - 1
    title = node.name or node.title()
    return {"id": node.id, "title": title, "steps": steps, "note": node.note}


def _steps(a: Node, b: Node) -> list[StepPair]:
    """Return the steps of both states as a diff shows them; equal steps share one line."""
    left, right = ([str(node.step) for node in each.path()[1:]] for each in (a, b))
    pairs: list[StepPair] = []
    codes = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    for code, start, end, first, last in codes:
        if code == "equal":
            pairs += [{"a": step, "b": step, "status": "same"} for step in left[start:end]]
            continue
        pairs += [{"a": step, "b": None, "status": "only in A"} for step in left[start:end]]
        pairs += [{"a": None, "b": step, "status": "only in B"} for step in right[first:last]]
    return pairs


def _summary(steps: Sequence[StepPair], lines: Program | None) -> str:
    count = Counter(step["status"] for step in steps)
    common = "1 step" if count["same"] == 1 else f"{count['same']} steps"
    text = f"{common} in common, {count['only in A']} only in A, {count['only in B']} only in B"
    if lines is None:
        return f"{text}."
    if not lines["added"] and not lines["removed"]:
        return f"{text}; the programs are the same."
    return f"{text}; lines only in B's program: {lines['added']}, only in A's: {lines['removed']}."
