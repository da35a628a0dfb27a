"""Draw which thread of a warp holds which element of a tile on tensor cores."""

from __future__ import annotations

from dlcompiler.target.fragments import WARP, Fragment
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Mark, Scene, scene_html

_WIDTH, _HEIGHT, _HEAD, _SIDE = 40.0, 19.0, 38.0, 26.0
"""Size of a cell, and of the row and the column of numbers; [px]."""
_NAMES = {"a": "A", "b": "B", "c": "C and D"}


def fragment_scene(fragment: Fragment) -> Scene:
    """Return the picture of a tile: for each element, its lane and its number there.

    Parameters
    ----------
    fragment : Fragment
        The tile and how it is held.
    """
    rows, columns = fragment.shape
    held = {
        fragment.place(lane, element): (lane, element)
        for lane in range(WARP)
        for element in range(fragment.elements)
    }
    title = f"{_NAMES[fragment.matrix]}: {rows}×{columns} {fragment.dtype} in a warp"
    marks: list[Mark] = [
        {"shape": "text", "role": "name", "x": 4.0, "y": 14.0, "text": title},
        *_numbers(rows, columns),
    ]
    for (row, column), (lane, element) in sorted(held.items()):
        x, y = _SIDE + column * _WIDTH, _HEAD + row * _HEIGHT
        register = element // fragment.packed
        words = f"row {row}, column {column}: lane {lane}, element {element}, register {register}"
        marks += [
            {"shape": "rect", "role": "box", "x": x, "y": y, "w": _WIDTH, "h": _HEIGHT,
             "fill": HUES[register], "title": words},
            {"shape": "text", "role": "label", "x": x + _WIDTH / 2, "y": y + 14,
             "text": f"{lane}.{element}", "anchor": "middle"},
        ]  # fmt: skip
    return {
        "title": title,
        "summary": f"each of 32 lanes holds {fragment.elements} elements in {fragment.registers} "
        "registers",
        "how_to_read": "a cell is an element of the tile: the lane that holds it, and its number "
        "among the lane's elements. Colours are registers.",
        "width": _SIDE + columns * _WIDTH + 4,
        "height": _HEAD + rows * _HEIGHT + 4,
        "marks": marks,
        "table": {
            "columns": ["row", "column", "lane", "element", "register"],
            "rows": [
                _row(place, holder, fragment.packed) for place, holder in sorted(held.items())
            ],
        },
    }


def fragment_html(fragment: Fragment) -> Markup:
    """Return the picture of a tile as HTML."""
    return scene_html(fragment_scene(fragment), is_open=True)


def _numbers(rows: int, columns: int) -> list[Mark]:
    """Return the numbers of the rows and the columns."""
    down: list[Mark] = [
        {"shape": "text", "role": "soft", "x": _SIDE - 6, "y": _HEAD + row * _HEIGHT + 14,
         "text": str(row), "anchor": "end"}
        for row in range(rows)
    ]  # fmt: skip
    across: list[Mark] = [
        {"shape": "text", "role": "soft", "x": _SIDE + (column + 0.5) * _WIDTH, "y": _HEAD - 5,
         "text": str(column), "anchor": "middle"}
        for column in range(columns)
    ]  # fmt: skip
    return down + across


def _row(place: tuple[int, int], holder: tuple[int, int], packed: int) -> list[Cell]:
    lane, element = holder
    return [*place, lane, element, element // packed]
