"""Sort rows, or select their first elements in sorted order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Buffer, Builder, BufferView, Expr, Stmt
from dlcompiler.ops.nests.rows import Rows, key_dtype
from dlcompiler.ops.nests.runs import Sorter, comes_before, last_value, runs_of
from dlcompiler.target import Target
from dlcompiler.te import Tensor

STEP_CYCLES = 8.0
"""Time of a merge for each element; [cycle]."""
CHUNK = 64
"""Elements that are compared with the bound at once; [1]."""


def first_in_order(
    data: Tensor, axis: int, count: int, wants: Sequence[str], target: Target, *,
    is_ascending: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Define the first elements of the sorted rows of a tensor.

    Equal elements stay in order. NaN is larger than all numbers.

    Parameters
    ----------
    data : Tensor
        Numbers; a row has at least one.
    axis : int
        The dimension along which rows lie.
    count : int
        How many elements of each row, at least 1.
    wants : sequence of str
        ``"values"`` for the elements; else a dtype of integers, for their positions.
    target : Target
        A CPU.
    """
    rows = Rows(data.static_shape, axis)
    kinds = [data.dtype if want == "values" else want for want in wants]
    has_places = any(want != "values" for want in wants)
    is_sort = 2 * count + 2 * CHUNK >= rows.extent
    size = rows.extent if is_sort else 2 * count + 2 * CHUNK
    runs = runs_of(size)
    cycles = STEP_CYCLES * size * (runs.merges + 1) + rows.extent

    def code(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = Builder()
        source, made = ib.buffer_ptr(ins[0]), [ib.buffer_ptr(out) for out in outs]
        with rows.loop(ib, cycles, target) as row:
            keys = ib.allocate(key_dtype(data.dtype), (2, runs.size), "keys")
            places = [ib.allocate("int32", (2, runs.size), "places")] if has_places else []
            sorter = Sorter(ib, runs, keys, tuple(places), is_ascending)
            read = lambda i: source[rows.at(row, i)].astype(keys.dtype)
            if is_sort:
                _fill(sorter, rows.extent, read)
                sorter.sort()
            else:
                Selection(sorter, rows.extent, count, read).emit()
            with ib.for_range(0, count, "i", kind="vectorize") as i:
                for want, out in zip(wants, made, strict=True):
                    view = keys if want == "values" else places[0]
                    out[rows.at(row, i)] = view[sorter.result, i].astype(out.dtype)
        return ib.get()

    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    made = te.extern(
        [shape] * len(wants), [data], code, name="sorted", dtype=kinds, is_complete=True
    )
    return made if isinstance(made, tuple) else (made,)


def _fill(sorter: Sorter, count: int, read) -> None:
    """Copy the first elements of a row to a buffer."""
    with sorter.ib.for_range(0, count, "i", kind="vectorize") as i:
        sorter.keys[0, i] = read(i)
        for view in sorter.moved:
            view[0, i] = i.astype("int32")
    sorter.pad(count)


class Selection:
    def __init__(self, sorter, extent, count, read):
        self.sorter, self.extent, self.count, self.read = sorter, extent, count, read

    def emit(self) -> None:
        sorter, ib = self.sorter, self.sorter.ib
        first = self.count + (self.extent - self.count) % CHUNK
        chunks = (self.extent - first) // CHUNK
        _fill(sorter, first, self.read)
        bound = ib.allocate(sorter.keys.dtype, (1,), "bound", "local")
        filled = ib.allocate("int32", (1,), "filled", "local")
        bound[0] = last_value(sorter.keys.dtype, is_ascending=sorter.is_ascending)
        filled[0] = te.const(first, "int32")
        with ib.for_range(0, chunks + 1, "chunk") as chunk:
            with ib.if_scope(chunk < chunks):
                self.append(first + chunk * CHUNK, bound[0], filled)
            is_full = te.any(filled[0] > sorter.runs.size - CHUNK, chunk >= chunks)
            with ib.if_scope(is_full):
                self.shorten(bound, filled)

    def append(self, start, bound, filled):
        sorter, ib, keys = self.sorter, self.sorter.ib, self.sorter.keys
        one, zero = te.const(1, "int32"), te.const(0, "int32")
        hits = ib.allocate("int32", (CHUNK,), "hits", "local")
        def passes(x):
            return comes_before(x, bound, is_ascending=sorter.is_ascending)
        with ib.for_range(0, CHUNK, "i", kind="vectorize") as i:
            hits[i] = te.select(passes(self.read(start + i)), one, zero)
        width = CHUNK
        while width > 1:
            width //= 2
            with ib.for_range(0, width, "i", kind="vectorize") as i:
                hits[i] = hits[i] | hits[width + i]
        with ib.if_scope(hits[0] > 0):
            with ib.for_range(0, CHUNK, "i") as i:
                place = te.assume_bounds(filled[0].astype("index"))
                x = ib.let("x", self.read(start + i))
                keys[0, place] = x
                for view in sorter.moved:
                    view[0, place] = (start + i).astype("int32")
                filled[0] = filled[0] + passes(x).astype("int32")

    def shorten(self, bound, filled):
        sorter, ib, keys = self.sorter, self.sorter.ib, self.sorter.keys
        sorter.pad(filled[0].astype("index"))
        sorter.sort()
        for view in (keys, *sorter.moved):
            if sorter.result:
                with ib.for_range(0, self.count, "i", kind="vectorize") as i:
                    view[0, i] = view[1, i]
        bound[0] = keys[0, self.count - 1]
        filled[0] = te.const(self.count, "int32")
