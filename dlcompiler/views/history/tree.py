"""The states of a schedule as rows with lanes, as version control draws commits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict

from dlcompiler.runtime.timing import format_seconds
from dlcompiler.schedule import HistoryView, Node
from dlcompiler.views.history.predicted import Predicted


class HistoryRow(TypedDict):
    """The row of one state."""

    id: str
    parent: str | None
    step: str
    """The step that led to it, in words."""
    short: str
    """The step without what all steps have in common: ``parallel i.o``, not ``C i.outer``."""
    seconds: float | None
    """The measured time of a call [s]; None as long as there is none."""
    time: str
    """The same with its unit, or ''."""
    predicted: Predicted | None
    """The predicted time, where one is known that is not measured."""
    lane: int
    """Column in the picture: a first child stays in its parent's, other children open new ones."""
    notes: dict[str, str]
    """What is known of the state, by what it is: ``measured``, ``verified`` …"""
    name: str
    """What the user calls it, or ''."""
    note: str
    """What the user wrote about it, or ''."""
    is_here: bool
    is_on_path: bool
    """Whether it leads to the cursor."""
    label: str
    """The row in words, to be spoken."""


class HistoryTree(TypedDict):
    """The rows of a history, relative to the current state."""

    rows: list[HistoryRow]
    """Parents before children, a branch's states one after another."""
    lanes: int


def history_tree(
    view: HistoryView, target: str = "", predicted: Mapping[str, Predicted] | None = None
) -> HistoryTree:
    """Return the states of a history.

    Parameters
    ----------
    view
        The history and the cursor: ``s.history``.
    target
        Name of the target that the session shows: times of code for others name their target.
        Without it, each time does if there are times for several targets.
    predicted
        Predicted times for that target, by the id of the state.

    Returns
    -------
    HistoryTree
        JSON-able.
    """
    path = {node.id for node in view.history.node(view.cursor).path()}
    targets = {*map(_target, view.history.walk())} - {""}
    named = targets - {target} if target or len(targets) > 1 else set()
    rows: list[HistoryRow] = []
    lanes = 1
    stack: list[tuple[Node, int]] = [(view.history.root, 0)]
    while stack:
        node, lane = stack.pop()
        row = _row(node, lane, view.cursor, path, target)
        row = with_prediction(row, (predicted or {}).get(node.id))
        rows.append(_with_target(row, _target(node)) if _target(node) in named else row)
        # The first child is pushed last, so that its branch comes first, in this lane.
        branches = [lane, *range(lanes, lanes + max(len(node.children) - 1, 0))]
        lanes += len(branches) - 1
        stack.extend(reversed(list(zip(node.children, branches, strict=False))))
    return {"rows": rows, "lanes": lanes}


def branch_name(node: Node) -> str:
    """Return the name of a state, or of its nearest named ancestor; '' if there is none."""
    return next((each.name for each in reversed(node.path()) if each.name), "")


def note_text(value: object, target: str) -> str:
    """Return a note as text; one about code for a target other than `target` names that target."""
    own = str(getattr(value, "target", ""))
    return f"{value} (for {own})" if own and target and own != target else str(value)


def _row(node: Node, lane: int, cursor: str, path: set[str], target: str) -> HistoryRow:
    # `_with_target` names the target of a measured time.
    notes = {
        kind: str(value) if kind == "measured" else note_text(value, target)
        for kind, value in node.notes.items()
    }
    step = node.title()
    seconds = _seconds(node.notes.get("measured"))
    parts = [f"{node.name}: {step}" if node.name else step]
    parts += [f"{kind} {text}" for kind, text in notes.items()]
    label = ", ".join([*parts, *([f"note: {node.note}"] if node.note else [])])
    return {
        "id": node.id,
        "parent": node.parent.id if node.parent else None,
        "step": step,
        "short": _short(node),
        "seconds": seconds,
        "time": "" if seconds is None else format_seconds(seconds),
        "predicted": None,
        "lane": lane,
        "notes": notes,
        "name": node.name,
        "note": node.note,
        "is_here": node.id == cursor,
        "is_on_path": node.id in path,
        "label": f"{label}, current state" if node.id == cursor else label,
    }


def _target(node: Node) -> str:
    """Return the name of the target that a measured time is of; '' if it is not known."""
    return str(getattr(node.notes.get("measured"), "target", ""))


def _with_target(row: HistoryRow, target: str) -> HistoryRow:
    """Say at a measured time for which target the code was made."""
    if not row["time"]:
        return row
    note = row["notes"]["measured"]
    named = f"{note}, code for {target}"
    return {
        **row,
        "time": f"{row['time']}, {target}",
        "notes": {**row["notes"], "measured": named},
        "label": row["label"].replace(note, named, 1),
    }


def with_prediction(row: HistoryRow, predicted: Predicted | None) -> HistoryRow:
    """Add the predicted time of a state, also to its words."""
    if predicted is None:
        return row
    head, comma, here = row["label"].partition(", current state")
    label = f"{head}, {predicted['label']}{comma}{here}"
    return {**row, "predicted": predicted, "label": label}


def _short(node: Node) -> str:
    """Return the step with short loop names, and without the stage if the schedule has only one."""
    text, step = node.title(), node.step
    if step is None:
        return text
    if sum(not stage.is_placeholder for stage in node.state.stages) == 1:
        text = text.replace(f"{step.primitive} {step.stage} ", f"{step.primitive} ", 1)
    return re.sub(r"\.(outer|inner)\b", lambda match: f".{match[1][0]}", text)


def _seconds(value: Any) -> float | None:
    """Return the time in a note: a measurement of this package, or a timing that a user noted."""
    for name in ("seconds", "median_s"):
        seconds = getattr(value, name, None)
        if isinstance(seconds, int | float) and seconds > 0:
            return float(seconds)
    return None
