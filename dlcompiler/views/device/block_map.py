"""Draw a grid of threads, and next to it a grid of the elements that they touch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from dlcompiler import dtypes
from dlcompiler.ir import Buffer
from dlcompiler.simulate.recording import BlockRecording, Thread, Touch
from dlcompiler.views.device.block_legend import LINE_PX, MARGIN_PX, legend, numbers
from dlcompiler.views.loops.iteration_space import MOST_CELLS
from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Mark
from dlcompiler.views.render.units import format_bytes

_SIDE_PX, _GAP, _HEAD = 168.0, 24.0, 66.0
_ROW = 32
"""Threads, and elements of a vector, in a row: the threads of a warp."""
_MOST_NAMED = 4
_MOST_LINKS = 6000
"""Pairs of a thread and a cell that a picture links; with more it has words only."""

Place: TypeAlias = tuple[int, int]
P = TypeVar("P", int, Place)


def index_of(buffer: Buffer, offset: int) -> tuple[int, ...]:
    """Return the index of an element from its offset.

    Examples
    --------
    >>> index_of(Buffer("A", (4, 8), "float32"), 19)
    (2, 3)
    """
    index = []
    for stride in buffer.static_strides:
        index.append(offset // stride)
        offset %= stride
    return tuple(index)


def element_text(buffer: Buffer, offset: int) -> str:
    """Return an element by its index: ``A.shared[2, 3]``."""
    return f"{buffer.name}[{', '.join(map(str, index_of(buffer, offset)))}]"


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a buffer that is drawn: all rows and columns that are touched."""

    buffer: Buffer
    top: int
    left: int
    rows: int
    columns: int
    down: int
    """Rows of elements in one drawn cell."""
    across: int

    def place(self, offset: int) -> Place:
        """Return the row and column of the cell that shows the element at `offset`."""
        row, column = _row_and_column(self.buffer, offset)
        return (row - self.top) // self.down, (column - self.left) // self.across

    @property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return math.ceil(self.rows / self.down), math.ceil(self.columns / self.across)


def _row_and_column(buffer: Buffer, offset: int) -> Place:
    """Return the row and column of an element: the last dimension across, all others down."""
    *outer, last = index_of(buffer, offset) or (0,)
    if not outer:
        return divmod(last, _ROW)
    row = 0
    for index, extent in zip(outer, buffer.static_shape, strict=False):
        row = row * extent + index
    return row, last


def window_of(touch: Touch) -> Window:
    """Return the smallest window that contains all elements that the threads touch."""
    places = [
        _row_and_column(touch.buffer, at) for offsets in touch.by_thread.values() for at in offsets
    ]
    top, left = min(row for row, _ in places), min(column for _, column in places)
    rows = max(row for row, _ in places) - top + 1
    columns = max(column for _, column in places) - left + 1
    # Powers of two, so that cells and tiles have common edges.
    most = 2 * MOST_CELLS
    down, across = (1 << (math.ceil(n / most) - 1).bit_length() for n in (rows, columns))
    return Window(touch.buffer, top, left, rows, columns, down, across)


def thread_text(thread: Thread, threads: Thread) -> str:
    """Return a thread's indices as text: ``(3, 2)``, with z if the block has several."""
    shown = thread if threads[2] > 1 else thread[:2]
    return f"({', '.join(map(str, shown))})"


def words_of(recording: BlockRecording, touch: Touch, thread: Thread) -> str:
    """Return a sentence that names the elements that a thread reads or writes."""
    name = f"thread {thread_text(thread, recording.threads)}"
    verb = "writes" if touch.is_write else "reads"
    offsets = list(dict.fromkeys(touch.by_thread.get(thread, ())))
    if not offsets:
        return f"{name} {verb} nothing"
    first = ", ".join(element_text(touch.buffer, at) for at in offsets[:_MOST_NAMED])
    size = format_bytes(len(offsets) * dtypes.bytes_of(touch.buffer.dtype))
    rest = ", …" if len(offsets) > _MOST_NAMED else ""
    return f"{name} {verb} {first}{rest}: {_many(len(offsets), 'element')}, {size}"


def threads_in_order(threads: Thread) -> list[Thread]:
    """Return all threads of a block, x fastest."""
    x, y, z = threads
    return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]


def draw_map(recording: BlockRecording, touch: Touch) -> tuple[list[Mark], float, float]:
    """Return the marks of both grids, their width, and their lower edge [px].

    A thread has the key ``t3``, its number with x fastest, and a cell of the buffer ``e17``; each
    has the keys of what it is linked with, too.
    """
    window = window_of(touch)
    order = {thread: n for n, thread in enumerate(threads_in_order(recording.threads))}
    columns = window.cells[1]
    by_cell: dict[Place, list[Thread]] = {}
    cells: dict[Thread, list[Place]] = {}
    for thread in order:
        cells[thread] = list(dict.fromkeys(map(window.place, touch.by_thread.get(thread, ()))))
        for place in cells[thread]:
            by_cell.setdefault(place, []).append(thread)
    is_linked = sum(map(len, cells.values())) <= _MOST_LINKS
    keys_of_threads = {
        thread: [f"e{row * columns + column}" for row, column in cells.get(thread, ())]
        for thread in order if is_linked
    }  # fmt: skip
    marks: list[Mark] = []
    width, bottom = _draw_threads(recording, touch, window, keys_of_threads, marks)
    links = {place: [f"t{order[t]}" for t in each] for place, each in by_cell.items() if is_linked}
    right, lower = _draw_elements(recording, window, by_cell, links, width + _GAP, marks)
    more, wide, low = _draw_legends(recording, touch, by_cell, max(bottom, lower) + 6)
    return [*marks, *more], max(right, wide), low


def _draw_legends(
    recording: BlockRecording, touch: Touch, by_cell: Mapping[Place, Sequence[Thread]], y: float
) -> tuple[list[Mark], float, float]:
    """Return two lines: which elements and which threads the darkest and lightest colours are."""
    order = threads_in_order(recording.threads)
    elements = sorted(at[0] for at in touch.by_thread.values() if at)
    owners = sorted({order.index(threads[0]) for threads in by_cell.values()})
    if not elements or not owners:
        return [], 0.0, y
    ends = [str(list(index_of(touch.buffer, elements[n]))) for n in (0, -1)]
    owning = [thread_text(order[owners[n]], recording.threads) for n in (0, -1)]
    above, wide = legend(y, "colour of a thread, its first element", ends[0], ends[1])
    below, wider = legend(y + LINE_PX, "of an element, its first thread", owning[0], owning[1])
    return [*above, *below], max(wide, wider), y + 2 * LINE_PX


def _draw_threads(
    recording: BlockRecording, touch: Touch, window: Window, links: Mapping[Thread, Sequence[str]],
    marks: list[Mark],
) -> tuple[float, float]:  # fmt: skip
    x, rows, depth = recording.threads
    wide = x if rows * depth > 1 else min(x, _ROW)
    high = math.ceil(x * rows * depth / wide)
    side = _side(high, wide)
    detail = f"{x} across" if wide == x else f"rows of {wide}"
    layers = f", {depth} layers" if depth > 1 else ""
    size = " × ".join(map(str, recording.threads[: 3 if depth > 1 else 2]))
    size = f"{'x × y × z' if depth > 1 else 'x × y'} = {size}"
    _heads(marks, 0, "Threads", size, f"{detail}{layers}; colour: element")
    marks.append(_frame(0, wide * side, high * side, "the threads of the block"))
    is_grid = wide == x and rows * depth > 1
    marks += numbers(
        (0, _HEAD), side, (high, wide), lambda n: n,
        lambda n: n % rows if is_grid else n * wide,
    )  # fmt: skip
    first = {thread: window.place(at[0]) for thread, at in touch.by_thread.items() if at}
    colors = _colors(first.values())
    for n, thread in enumerate(threads_in_order(recording.threads)):
        if thread in first:
            marks.append(
                {"shape": "rect", "role": "cell", "x": n % wide * side,
                 "y": _HEAD + n // wide * side, "w": side, "h": side, "fill": colors[first[thread]],
                 "keys": [f"t{n}", *links.get(thread, ())],
                 "title": words_of(recording, touch, thread)}
            )  # fmt: skip
    return max(wide * side + MARGIN_PX, 150.0), _HEAD + high * side


def _draw_elements(
    recording: BlockRecording, window: Window, by_cell: Mapping[Place, Sequence[Thread]],
    links: Mapping[Place, Sequence[str]], left: float, marks: list[Mark],
) -> tuple[float, float]:  # fmt: skip
    buffer = window.buffer
    rows, columns = window.cells
    side = _side(rows, columns)
    order = {thread: n for n, thread in enumerate(threads_in_order(recording.threads))}
    shape = "×".join(f"{extent:,}" for extent in buffer.static_shape)
    cell = f"cell = {window.down}×{window.across}; " if window.down * window.across > 1 else ""
    _heads(marks, left, buffer.name, shape, f"{cell}{_from(window)}colour: thread")
    marks.append(_frame(left, columns * side, rows * side, f"{buffer.name}, shape {shape}"))
    in_row = _ROW if len(buffer.shape) == 1 else 1  # a vector is drawn in rows of threads
    marks += numbers(
        (left, _HEAD), side, (rows, columns), lambda n: window.left + n * window.across,
        lambda n: (window.top + n * window.down) * in_row,
    )  # fmt: skip
    colors = _colors(order[threads[0]] for threads in by_cell.values())
    for (row, column), threads in sorted(by_cell.items()):
        first = ", ".join(thread_text(t, recording.threads) for t in threads[:_MOST_NAMED])
        rest = ", …" if len(threads) > _MOST_NAMED else ""
        marks.append(
            {"shape": "rect", "role": "cell", "x": left + column * side,
             "y": _HEAD + row * side, "w": side, "h": side,
             "fill": colors[order[threads[0]]],
             "keys": [f"e{row * columns + column}", *links.get((row, column), ())],
             "title": f"{_cell_name(window, row, column)}: {_many(len(threads), 'thread')}, "
             f"{first}{rest}"}
        )  # fmt: skip
    return left + max(columns * side + MARGIN_PX, 150.0), _HEAD + rows * side


def _colors(firsts: Iterable[P]) -> dict[P, str]:
    """Return a colour for each place or thread, in ascending order from dark to light."""
    known = sorted(set(firsts))
    return {each: ramp(n / max(len(known) - 1, 1)) for n, each in enumerate(known)}


def _cell_name(window: Window, row: int, column: int) -> str:
    if window.down * window.across > 1 or len(window.buffer.shape) != 2:
        return f"{window.buffer.name}, row {window.top + row * window.down}, column " \
               f"{window.left + column * window.across}"  # fmt: skip
    return f"{window.buffer.name}[{window.top + row}, {window.left + column}]"


def _from(window: Window) -> str:
    """Return the first row and column of the window as text; '' if both are 0."""
    if not (window.top or window.left):
        return ""
    return f"from row {window.top}, column {window.left}; "


def _heads(marks: list[Mark], x: float, name: str, size: str, detail: str) -> None:
    marks.append({"shape": "text", "role": "name", "x": x, "y": 14, "text": name})
    marks.append({"shape": "text", "role": "soft", "x": x, "y": 29, "text": size})
    marks.append({"shape": "text", "role": "soft", "x": x, "y": 44, "text": detail})


def _frame(x: float, width: float, height: float, title: str) -> Mark:
    return {"shape": "rect", "role": "capacity", "x": x, "y": _HEAD, "w": width, "h": height,
            "title": title}  # fmt: skip


def _side(rows: int, columns: int) -> float:
    return max(3.0, min(14.0, _SIDE_PX // max(rows, columns)))


def merged_cells(marks: Iterable[Mark]) -> list[Mark]:
    """Merge the cells of each colour into one mark, without their descriptions.

    This saves space: a notebook stores every picture, and a picture has many cells.
    """
    kept: list[Mark] = []
    outlines: dict[str, list[str]] = {}
    for mark in marks:
        if mark["role"] == "cell":
            x, y, side = mark["x"], mark["y"], mark["w"]
            outline = f"M{x:g} {y:g}h{side:g}v{side:g}h-{side:g}z"
            outlines.setdefault(mark["fill"], []).append(outline)
        else:
            kept.append(mark)
    cells: list[Mark] = [
        {"shape": "path", "role": "cell", "d": "".join(parts), "fill": fill}
        for fill, parts in outlines.items()
    ]
    return [*kept, *cells]


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
