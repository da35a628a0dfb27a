"""Static picture of an iteration space: the elements that the first step touches."""

from __future__ import annotations

from dlcompiler.views.loops.iteration_space import IterationSpace, SpaceTensor
from dlcompiler.views.loops.space_zoom import Window, cells, first_zoom, part_text, window_of
from dlcompiler.views.loops.visits import Touched, loop_values, touched
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Cell, Mark, Scene

HOW_TO_READ = (
    "each grid is a tensor, with rows down and columns across. The filled cells are the elements "
    "that one iteration of the chosen loop touches. Step to see in which order they are visited."
)
WRITTEN, READ = HUES[1], HUES[0]
_GAP, _TOP = 24.0, 44.0


def iteration_scene(space: IterationSpace, step: int = 0, zoom: int | None = None) -> Scene:
    """Return a step of an iteration space as a picture.

    Parameters
    ----------
    space
        The model.
    step
        Which step, from 0.
    zoom
        Which part of the tensors to draw, see `space_zoom`; by default, the first at which the
        steps can be told apart.

    Returns
    -------
    Scene
        A grid for each tensor.
    """
    seen = touched(space, step)
    zoom = first_zoom(space) if zoom is None else zoom
    marks: list[Mark] = []
    x, height = _GAP / 2, 0.0
    for tensor in space["tensors"]:
        window = window_of(space, tensor, zoom, step)
        width, bottom = _grid(tensor, seen[tensor["name"]], window, x, marks)
        x, height = x + width + _GAP, max(height, bottom)
    return {
        "title": "Iteration space",
        "summary": summary(space, step),
        "how_to_read": HOW_TO_READ,
        "width": x,
        "height": height + 10,
        "marks": marks,
        "table": {
            "columns": ["tensor", "shape", "accessed as", "elements in this step", "of all"],
            "rows": [_row(tensor, seen[tensor["name"]]) for tensor in space["tensors"]],
        },
    }


def summary(space: IterationSpace, step: int) -> str:
    """Return a sentence with the number of a step and the values of its loops."""
    loops = space["loops"][: space["depth"]]
    values = loop_values(space, step)
    if not loops:
        return f"{space['stage']} is one statement without loops."
    where = ", ".join(f"{loop['name']} = {v}" for loop, v in zip(loops, values, strict=True))
    which = f"step {step + 1:,} of {space['steps']:,}"
    return f"One iteration of {loops[-1]['name']}: {which}, at {where}."


def _grid(
    tensor: SpaceTensor, seen: Touched, window: Window, x: float, marks: list[Mark]
) -> tuple[float, float]:
    """Draw a window of a tensor at `x`, and return its width and its lower edge [px]."""
    side = window.cell
    width, height = window.columns * side, window.rows * side
    is_written = any(access["is_write"] for access in tensor["accesses"])
    down, across = window.block
    size = "×".join(f"{extent:,}" for extent in tensor["shape"])
    head = f"{tensor['name']}  {size}"
    rank = len(tensor["shape"])
    planes = f"last two of {rank} dimensions" if rank > 2 else ""
    details = ["written" if is_written else "read", planes, part_text(tensor, window)]
    if down * across > 1:
        details.append(f"cell = {down:,}×{across:,}")
    detail = ", ".join(text for text in details if text)
    marks.append({"shape": "text", "role": "name", "x": x, "y": 16, "text": head})
    marks.append({"shape": "text", "role": "soft", "x": x, "y": 32, "text": detail})
    marks.append(
        {"shape": "rect", "role": "capacity", "x": x, "y": _TOP, "w": width, "h": height,
         "title": f"{tensor['name']}, shape {size}"}
    )  # fmt: skip
    fill = WRITTEN if is_written else READ
    for top, left, bottom, right in blocks(cells(seen, window)):
        marks.append(
            {"shape": "rect", "role": "cell", "x": x + left * side, "y": _TOP + top * side,
             "w": (right - left) * side, "h": (bottom - top) * side, "fill": fill}
        )  # fmt: skip
    down_to, right_to = f"V{_TOP + height:g}", f"H{x + width:g}"
    columns = [f"M{x + n * side:g} {_TOP:g}{down_to}" for n in range(1, window.columns)]
    rows = [f"M{x:g} {_TOP + n * side:g}{right_to}" for n in range(1, window.rows)]
    marks.append({"shape": "path", "role": "axis", "d": "".join([*columns, *rows])})
    words = max(len(head), len(detail)) * 6.6
    return max(width, words), _TOP + height


def blocks(cells: set[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Cover cells by disjoint rectangles: (top, left, bottom, right), ends excluded.

    Examples
    --------
    >>> blocks({(0, 0), (0, 1), (1, 0), (1, 1), (3, 2)})
    [(0, 0, 2, 2), (3, 2, 4, 3)]
    """
    spans: dict[tuple[int, int], list[int]] = {}
    for row in sorted({row for row, _ in cells}):
        for left, right in _runs(sorted(column for r, column in cells if r == row)):
            spans.setdefault((left, right), []).append(row)
    return sorted(
        (top, left, bottom, right)
        for (left, right), rows in spans.items()
        for top, bottom in _runs(rows)
    )


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive numbers in an ascending list, as (first, last + 1)."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n + 1 for n in numbers if n + 1 not in numbers]
    return list(zip(starts, ends, strict=True))


def _row(tensor: SpaceTensor, seen: Touched) -> list[Cell]:
    total = 1
    for side in tensor["shape"]:
        total *= side
    count = 1
    for span in seen["spans"]:
        count *= len(span)
    number: Cell = len(seen["points"]) if seen["exact"] else count
    if not (seen["exact"] or seen["is_box"]):
        number = f"at most {count:,}"
    shape = " × ".join(map(str, tensor["shape"]))
    texts = ", ".join(dict.fromkeys(access["text"] for access in tensor["accesses"]))
    return [tensor["name"], shape, texts, number, total]
