"""The loop nest as boxes: each loop is a box around its body."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler.views.loops.loop_tree import LINES, LoopTree, Row, kind_text
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.render.text import LOOP_COLUMNS, loop_rows, shortened

_HEAD, _INSET, _GAP = 20.0, 12.0, 4.0
_NARROWEST, _WIDEST = 356.0, 520.0
"""Of the picture: it fits beside the loop tree unless what stands in it needs more; [px]."""
_CHAR_PX, _BOLD_PX = 7.0, 7.6
_LEAST_NAME = 8
"""Characters of a name that are always there."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A drawing in progress: the rows by parent, the width, and the marks so far."""

    children: dict[str | None, list[Row]]
    width: float
    marks: list[Mark]


def nest_scene(tree: LoopTree) -> Scene:
    """Return the picture of a loop tree.

    Parameters
    ----------
    tree
        The view model of a schedule's loop nest.

    Returns
    -------
    Scene
        A box for each loop and stage, a line of text for each statement.
    """
    children: dict[str | None, list[Row]] = {}
    for row in tree["rows"]:
        children.setdefault(row["parent"], []).append(row)
    drawing = _Drawing(children, _width(tree), [])
    y = _GAP
    for row in children.get(None, []):
        y = _draw(row, drawing, _GAP, y) + _GAP
    return {
        "title": "Loop nest",
        "summary": tree["summary"] + ".",
        "how_to_read": "each box is a loop. It repeats everything inside it as many times as its "
        "number says. Its colour is that of its original axis; inner parts are lighter.",
        "width": drawing.width,
        "height": y,
        "marks": drawing.marks,
        "table": {
            "columns": list(LOOP_COLUMNS),
            "rows": [list(row) for row in loop_rows(tree)],  # type: ignore[arg-type]
        },
    }


def _draw(row: Row, drawing: _Drawing, x: float, y: float) -> float:
    """Draw a row and all rows inside it at (x, y), and return the lower edge [px]."""
    marks = drawing.marks
    # The right borders also keep a distance from each other.
    right = drawing.width - _GAP - (x - _GAP) / _INSET * _GAP
    if row["type"] in LINES:
        text = _cut(row["name"], right - x)
        marks.append({"shape": "text", "role": "soft", "x": x + 4, "y": y + 14, "text": text,
                      "keys": [row["stage"]], "title": row["label"]})  # fmt: skip
        return y + _HEAD
    place = len(marks)
    below = y + _HEAD
    for child in drawing.children.get(row["key"], []):
        below = _draw(child, drawing, x + _INSET, below) + _GAP
    box: Mark = {"shape": "rect", "role": "box", "x": x, "y": y, "w": right - x,
                 "h": below - y, "fill": (row["colors"] or ["none"])[0], "keys": [row["key"]],
                 "title": row["label"]}  # fmt: skip
    head: Mark = {"shape": "text", "role": "name", "x": x + 6, "y": y + 14,
                  "text": _head(row, right - x - 6), "keys": [row["key"]]}  # fmt: skip
    marks[place:place] = [box, head]
    return below


def _head(row: Row, width: float = math.inf) -> str:
    """Return the head of a box; a name that does not fit a width [px] loses its middle."""
    kind = "" if row["kind"] == "serial" else f"  {kind_text(row)}"
    rest = "" if row["type"] == "stage" else f"  × {row['extent']}{kind}"
    most = max(width / _BOLD_PX - len(rest), _LEAST_NAME)
    return f"{shortened(row['name'], most)}{rest}"


def _width(tree: LoopTree) -> float:
    """Return the width that the longest line and the borders beside it need [px]."""
    needed = [
        2 * _GAP + row["depth"] * (_INSET + _GAP)
        + (_CHAR_PX * len(row["name"]) if row["type"] in LINES else _BOLD_PX * len(_head(row)))
        for row in tree["rows"]
    ]  # fmt: skip
    return min(max([_NARROWEST, *needed]), _WIDEST)


def _cut(text: str, width: float) -> str:
    """Return a text cut to fit a width [px]; the title of its mark has the whole text."""
    most = max(int(width / _CHAR_PX), 8)
    return text if len(text) <= most else text[: most - 1] + "…"
