"""Fragments of HTML for schedules, programs, histories, tensors and operations.

A fragment needs no script and no style sheet, has no ``id``, and inherits its text colour, so that
it is readable on light and dark backgrounds. Its classes are none of the widgets', whose style
sheet holds for the whole page of a notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dlcompiler.ir import PrimFunc
from dlcompiler.schedule import HistoryView, Schedule
from dlcompiler.te import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor
from dlcompiler.views.code.program import Line, Program, program
from dlcompiler.views.history.predicted import Predicted
from dlcompiler.views.history.tree import HistoryRow, history_tree
from dlcompiler.views.loops.loop_tree import LoopTree, element_text, loop_tree
from dlcompiler.views.loops.nest_picture import HOW_TO_READ, MONO, nest_picture
from dlcompiler.views.render.markup import Markup, heading, join, tag
from dlcompiler.views.render.scene import table_html
from dlcompiler.views.render.text import LOOP_COLUMNS, loop_rows

_SMALL = "font-size:12px;opacity:.8;margin:4px 0"
_CODE = f"font-family:{MONO};font-size:12px;line-height:1.5;margin:4px 0"
_MARKS = {"same": " ", "added": "+", "removed": "−"}
_LINE_STYLES = {
    "same": None,
    "added": "background:rgba(0,114,178,.14);font-weight:600",
    "removed": "background:rgba(213,94,0,.12);text-decoration:line-through;opacity:.75",
}
_TOKEN_STYLES = {
    "keyword": "font-weight:600",
    "kind": "font-weight:600;text-decoration:underline",
    "number": None,
    "text": None,
    "axis": None,
    "comment": "opacity:.72;font-style:italic",
}


def schedule_html(schedule: Schedule) -> Markup:
    """Return the loop nest of a schedule as a picture and as a table.

    Parameters
    ----------
    schedule
        The schedule, at the state to show.

    Returns
    -------
    Markup
        A fragment.
    """
    return tree_html(loop_tree(schedule))


def tree_html(tree: LoopTree) -> Markup:
    """Return a loop tree as a picture, followed by a table."""
    return tag(
        "div",
        {"class": "dlc-fragment"},
        *_notes(tree),
        nest_picture(tree),
        tag("p", {"style": _SMALL}, HOW_TO_READ),
        tag(
            "details",
            {"style": "margin:4px 0"},
            tag("summary", {"style": "cursor:pointer;font-size:12px"}, "Show as table"),
            table_html(LOOP_COLUMNS, loop_rows(tree)),
        ),
    )


def _notes(tree: LoopTree) -> list[Markup]:
    notes = []
    if tree["inputs"]:
        notes.append(tag("p", {"style": _SMALL}, f"Inputs: {', '.join(tree['inputs'])}"))
    if tree["inlined"]:
        notes.append(tag("p", {"style": _SMALL}, f"Inlined: {', '.join(tree['inlined'])}"))
    notes += [
        tag("p", {"style": "margin:4px 0"}, tag("strong", None, "Pending: "), text)
        for text in tree["obligations"]
    ]
    return notes


def func_html(func: PrimFunc) -> Markup:
    """Return a lowered program with line numbers.

    Parameters
    ----------
    func
        The program.

    Returns
    -------
    Markup
        A fragment.
    """
    return program_html(program(func))


def program_html(view: Program, changed: str = "Lines changed by the last step") -> Markup:
    """Return a program whose added and removed lines are marked ``+`` and ``−``.

    Parameters
    ----------
    view
        The program.
    changed
        Caption of the marked lines.
    """
    parts: list[Markup] = []
    if view["added"] or view["removed"]:
        text = f"{changed}: {view['added']} added (+), {view['removed']} removed (−)."
        parts.append(tag("p", {"style": _SMALL}, text))
    parts.append(lines_html(view["lines"]))
    if view["left_out"]:
        parts.append(tag("p", {"style": _SMALL}, f"… and {view['left_out']:,} more lines"))
    return tag("div", {"class": "dlc-fragment"}, *parts)


def lines_html(lines: Iterable[Line]) -> Markup:
    """Return lines of a program with their numbers and change marks."""
    style = f"{_CODE};overflow-x:auto"
    return tag("pre", {"class": "dlc-fragment-program", "style": style}, *map(_program_line, lines))


def _program_line(line: Line) -> Markup:
    number = f"{line['number'] or '':>4} {_MARKS[line['status']]} "
    pieces = [
        tag("span", {"style": style}, token["text"])
        if (style := _TOKEN_STYLES[token["kind"]])
        else token["text"]
        for token in line["tokens"]
    ]
    code = join("    " * line["depth"], *pieces)
    shown = tag("span", {"style": style}, code) if (style := _LINE_STYLES[line["status"]]) else code
    return join(tag("span", {"style": "opacity:.72;user-select:none"}, number), shown, "\n")


def history_html(view: HistoryView, predicted: Mapping[str, Predicted] | None = None) -> Markup:
    """Return the states of a history as a tree, with their metrics.

    Parameters
    ----------
    view
        The history and the cursor: ``s.history``.
    predicted
        Predicted times, by the id of the state.

    Returns
    -------
    Markup
        A fragment.
    """
    tree = history_tree(view, predicted=predicted)
    rows = [
        tag(
            "tr",
            None,
            tag("td", {"style": f"text-align:left;white-space:pre;{_CODE}"}, _glyphs(row)),
            tag("td", {"style": "text-align:left"}, _step(row)),
            tag("td", {"style": "text-align:left"}, _known(row)),
            tag("td", {"style": f"text-align:left;{_CODE}"}, row["id"][:8]),
        )
        for row in tree["rows"]
    ]
    heads = [heading(column, "text-align:left") for column in ("", "step", "notes", "state")]
    return tag(
        "div",
        {"class": "dlc-fragment"},
        tag(
            "table",
            {"class": "dlc-fragment-table", "style": "border-spacing:8px 2px"},
            tag("thead", None, tag("tr", None, *heads)),
            tag("tbody", None, *rows),
        ),
        tag(
            "p",
            {"style": _SMALL},
            "How to read: each row is a state and the step that led to it. Branches are further "
            "right. ◉ marks the current state; s.jump(state) goes to another one.",
        ),
    )


def _glyphs(row: HistoryRow) -> str:
    return "  " * row["lane"] + ("◉" if row["is_here"] else "●" if row["is_on_path"] else "○")


def _step(row: HistoryRow) -> Markup:
    step = tag("strong", None, row["step"]) if row["is_here"] else join(row["step"])
    return join(step, " — ", tag("em", None, row["name"])) if row["name"] else step


def _known(row: HistoryRow) -> str:
    known = [f"{kind} {text}" for kind, text in row["notes"].items()]
    if row["predicted"] is not None:
        known.append(row["predicted"]["label"])
    return "; ".join([*known, *([row["note"]] if row["note"] else [])])


def tensor_html(tensor: Tensor) -> Markup:
    """Return what a tensor is: its shape, its dtype, and how its elements are computed.

    Parameters
    ----------
    tensor
        The tensor.

    Returns
    -------
    Markup
        A fragment.
    """
    shape = " × ".join(f"{side:,}" if isinstance(side, int) else str(side) for side in tensor.shape)
    shape = shape or "scalar"
    head = tag("p", {"style": "margin:4px 0"}, tag("strong", None, tensor.name),
               f" — {shape}, {tensor.dtype}{_origin(tensor)}")  # fmt: skip
    if isinstance(tensor.op, PlaceholderOp):
        return tag("div", {"class": "dlc-fragment"}, head)
    return tag("div", {"class": "dlc-fragment"}, head, tag("pre", {"style": _CODE}, _text(tensor)))


def operation_html(op: Operation) -> Markup:
    """Return the tensors that an operation makes.

    Parameters
    ----------
    op
        The operation.

    Returns
    -------
    Markup
        A fragment.
    """
    return tag("div", {"class": "dlc-fragment"}, *map(tensor_html, op.outputs))


def _origin(tensor: Tensor) -> str:
    if isinstance(tensor.op, PlaceholderOp):
        return ", an input"
    return f", computed from {', '.join(t.name for t in tensor.op.input_tensors) or 'constants'}"


def _text(tensor: Tensor) -> str:
    """Return the definition of a computed tensor's elements, and its axes."""
    op = tensor.op
    if isinstance(op, ScanOp):
        return op.text()
    if isinstance(op, ExternOp):
        return op.text
    assert isinstance(op, ComputeOp)
    target = f"{tensor.name}[{', '.join(axis.name for axis in op.axis)}]"
    axes = [f"{axis.name} < {axis.extent}" for axis in (*op.axis, *op.reduce_axis)]
    return f"{element_text(target, op.bodies)}\nfor {', '.join(axes)}"
