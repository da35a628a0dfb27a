"""The loop nest as boxes: a loop is a box round all that it repeats."""

from __future__ import annotations

from dlcompiler.views.loop_tree import LoopTree, Row
from dlcompiler.views.scene import Mark, Scene
from dlcompiler.views.text import LOOP_COLUMNS, loop_rows

_WIDTH, _HEAD, _INSET, _GAP = 460.0, 20.0, 12.0, 4.0
_CHAR_PX = 7.0


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
    marks: list[Mark] = []
    y = _GAP
    for row in children.get(None, []):
        y = _draw(row, children, _GAP, y, marks) + _GAP
    return {
        "title": "Loop nest",
        "summary": tree["summary"] + ".",
        "how_to_read": "a box repeats what stands in it as often as its number says; it has the "
        "colour of the axis that it came from, lighter for an inner part of it.",
        "width": _WIDTH,
        "height": y,
        "marks": marks,
        "table": {
            "columns": list(LOOP_COLUMNS),
            "rows": [list(row) for row in loop_rows(tree)],  # type: ignore[arg-type]
        },
    }


def _draw(
    row: Row, children: dict[str | None, list[Row]], x: float, y: float, marks: list[Mark]
) -> float:
    """Add the marks of a row and all inside it, from (x, y); returns where it ends."""
    if row["type"] == "statement":
        marks.append(
            {
                "shape": "text",
                "role": "soft",
                "x": x + 4,
                "y": y + 14,
                "text": _cut(row["name"], _WIDTH - x - _GAP),
                "keys": [row["stage"]],
                "title": row["label"],
            }
        )
        return y + _HEAD
    place = len(marks)
    below = y + _HEAD
    for child in children.get(row["key"], []):
        below = _draw(child, children, x + _INSET, below, marks) + _GAP
    box: Mark = {"shape": "rect", "role": "box", "x": x, "y": y, "w": _right(x) - x,
                 "h": below - y, "fill": (row["colors"] or ["none"])[0], "keys": [row["key"]],
                 "title": row["label"]}  # fmt: skip
    kind = "" if row["kind"] == "serial" else f"  {row['kind']}"
    text = row["name"] if row["type"] == "stage" else f"{row['name']}  × {row['extent']}{kind}"
    head: Mark = {"shape": "text", "role": "name", "x": x + 6, "y": y + 14, "text": text,
                  "keys": [row["key"]]}  # fmt: skip
    marks[place:place] = [box, head]
    return below


def _right(x: float) -> float:
    """Return where a box that begins at `x` ends: its border stays apart from those around it."""
    return _WIDTH - _GAP - (x - _GAP) / _INSET * _GAP


def _cut(text: str, width: float) -> str:
    """Return as much of a text as fits; the whole stands in the title of its mark."""
    most = max(int(width / _CHAR_PX) - 2, 8)
    return text if len(text) <= most else text[: most - 1] + "…"
