"""Choose the part of a tensor to draw, so that the steps of inner loops can be seen at any size.

A *zoom* is a number. 0 shows whole tensors. ``n`` shows the tile that one iteration of
``loops[n - 1]`` touches; the next iteration of that loop shows the next tile. The last zoom shows
single elements, around the first one that the step touches. The page has the same rules
(``js/space-zoom.js``); a test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dlcompiler.views.loops.earlier import Region, in_step
from dlcompiler.views.loops.iteration_space import IterationSpace, SpaceTensor, grid_of
from dlcompiler.views.loops.visits import Touched, loop_values, touched_in, value_of

MOST_ZOOMED = 32
"""A side of a part of a tensor has no more cells."""

Cells = set[tuple[int, int]]
"""Rows and columns of cells, from the top left of a window."""


@dataclass(frozen=True)
class Window:
    """The part of a tensor that is drawn: its last two dimensions, as cells."""

    top: int
    left: int
    rows: int
    columns: int
    block: tuple[int, int]
    """Elements that a cell stands for: down and across."""
    cell: int
    """Side of a cell; [px]."""

    def cell_of(self, row: int, column: int) -> tuple[int, int] | None:
        """Return the cell that an element is in; None outside the window."""
        down, across = self.block
        at = (row - self.top) // down, (column - self.left) // across
        return at if 0 <= at[0] < self.rows and 0 <= at[1] < self.columns else None


def zooms(space: IterationSpace) -> list[str]:
    """Return the names of the zooms: whole tensors, a tile for each outer loop, single elements."""
    loops = [loop["name"] for loop in space["loops"][: space["depth"]]]
    return ["whole tensors", *(f"one iteration of {name}" for name in loops[:-1]),
            *(["single elements"] if loops else [])]  # fmt: skip


def first_zoom(space: IterationSpace) -> int:
    """Return the first zoom at which the second step looks different from the first."""
    if space["steps"] < 2:
        return 0
    last = len(zooms(space)) - 1
    seen = [[touched_in(space, each, step) for step in (0, 1)] for each in space["tensors"]]

    def is_moving(zoom: int) -> bool:
        for tensor, both in zip(space["tensors"], seen, strict=True):
            shown = [window_of(space, tensor, zoom, step) for step in (0, 1)]
            first, second = map(cells, both, shown)
            if shown[0] != shown[1] or first != second:
                return True
        return False

    return next((zoom for zoom in range(last) if is_moving(zoom)), last)


def window_of(space: IterationSpace, tensor: SpaceTensor, zoom: int, step: int) -> Window:
    """Return the part of a tensor that is drawn at a zoom in a step."""
    rows, columns = ([1, *tensor["shape"]])[-2:]
    if not 0 < zoom <= space["depth"]:
        grid = tensor["grid"]
        down, across = grid["block"]
        return Window(0, 0, grid["rows"], grid["columns"], (down, across), grid["cell"])
    box = _tile(space, tensor, zoom, step) if zoom < space["depth"] else None
    if box is None:
        row, column = _first_element(space, tensor, step)
        top, left = row - row % MOST_ZOOMED, column - column % MOST_ZOOMED
        box = (top, left, min(top + MOST_ZOOMED, rows), min(left + MOST_ZOOMED, columns))
    top, left, bottom, right = box
    grid = grid_of(bottom - top, right - left, MOST_ZOOMED)
    down, across = grid["block"]
    return Window(top, left, grid["rows"], grid["columns"], (down, across), grid["cell"])


def part_text(tensor: SpaceTensor, window: Window) -> str:
    """Return the part of a tensor that a window shows: ``rows 32–63, column 4``; '' for all."""
    height, width = ([1, *tensor["shape"]])[-2:]
    ends = (
        ("row", window.top, window.rows * window.block[0], height),
        (
            "element" if len(tensor["shape"]) == 1 else "column",
            window.left,
            window.columns * window.block[1],
            width,
        ),
    )
    spans = [(name, low, min(low + count, size), size) for name, low, count, size in ends]
    if all(high - low == size for _, low, high, size in spans):
        return ""
    return ", ".join(
        f"{name} {low:,}" if high - low == 1 else f"{name}s {low:,}–{high - 1:,}"
        for name, low, high, size in spans if size > 1
    )  # fmt: skip


def _tile(
    space: IterationSpace, tensor: SpaceTensor, zoom: int, step: int
) -> tuple[int, int, int, int] | None:
    """Return what an iteration of the loop of a zoom touches: top, left, bottom, right."""
    inside = math.prod(loop["extent"] for loop in space["loops"][zoom : space["depth"]])
    outer: IterationSpace = {**space, "depth": zoom}
    regions = in_step(outer, tensor, step // inside)
    if not regions:
        return None
    spans: list[set[int]] = [{0}, *(set[int]() for _ in tensor["shape"])]
    for part in (part for region in regions for part in region.parts):
        for n, dim in enumerate(part.dims):
            spans[dim + 1] |= {value[n] for value in part.values}
    rows, columns = spans[-2:]
    return min(rows), min(columns), max(rows) + 1, max(columns) + 1


def _first_element(space: IterationSpace, tensor: SpaceTensor, step: int) -> tuple[int, int]:
    """Return row and column of the first access, moved into the tensor; conditions are ignored."""
    values = [*loop_values(space, step), *(0 for _ in space["loops"][space["depth"] :])]
    found = [value_of(index, values) for index in tensor["accesses"][0]["indices"]]
    kept = [min(max(at, 0), size - 1) for at, size in zip(found, tensor["shape"], strict=True)]
    row, column = ([0, *kept])[-2:]
    return row, column


def cells(seen: Touched, window: Window) -> Cells:
    """Return the cells of a window that contain a touched element."""
    if not seen["exact"]:
        rows, columns = ([[0], *seen["spans"]])[-2:]
        return _product(rows, columns, window)
    found = (window.cell_of(*([0, *point])[-2:]) for point in seen["points"])
    return {cell for cell in found if cell is not None}


def region_cells(regions: Iterable[Region], rank: int, window: Window) -> Cells:
    """Return the cells of a window that contain an element of the regions of a tensor."""
    return set[tuple[int, int]]().union(*(_cells_of(each, rank, window) for each in regions))


def _cells_of(region: Region, rank: int, window: Window) -> Cells:
    spans: dict[int, set[int]] = {-1: {0}}  # a vector is one row
    for part in region.parts:
        if rank > 1 and {rank - 2, rank - 1} <= set(part.dims):
            a, b = part.dims.index(rank - 2), part.dims.index(rank - 1)
            both = (window.cell_of(value[a], value[b]) for value in part.values)
            return {cell for cell in both if cell is not None}
        for n, dim in enumerate(part.dims):
            spans[dim] = {value[n] for value in part.values}
    return _product(spans[rank - 2], spans[rank - 1], window)


def _product(rows: Iterable[int], columns: Iterable[int], window: Window) -> Cells:
    """Return the cells of all combinations of rows and columns."""
    down = {(row - window.top) // window.block[0] for row in rows}
    across = {(column - window.left) // window.block[1] for column in columns}
    return {
        (row, column)
        for row in down if 0 <= row < window.rows
        for column in across if 0 <= column < window.columns
    }  # fmt: skip
