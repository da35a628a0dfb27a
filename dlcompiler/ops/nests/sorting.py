"""Sort rows, or select their first elements in sorted order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Buffer, BufferView, Builder, Expr, Stmt
from dlcompiler.ops.nests.rows import Rows
from dlcompiler.ops.nests.runs import Sorter, runs_of
from dlcompiler.ops.nests.selection import CHUNK, Selection, key_of
from dlcompiler.target import Target
from dlcompiler.te import Tensor

STEP_CYCLES = 8.0
"""Time of a merge for each element; [cycle]."""

_Read = Callable[[Any], Expr]


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
        How many elements of each row, at least 1; [1].
    wants : sequence of str
        ``"values"`` for the elements; else a dtype of integers, for their positions.
    target : Target
        A CPU.
    is_ascending : bool
        The smallest element comes first.
    """
    rows = Rows(data.static_shape, axis)
    has_keys = key_of(te.const(0, data.dtype), is_ascending=is_ascending) is not None
    is_selection = has_keys and 2 * count < rows.extent
    size = count if is_selection else rows.extent
    cycles = STEP_CYCLES * size * (runs_of(size).merges + 1) + 4 * rows.extent

    def code(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = Builder()
        source, made = ib.buffer_ptr(ins[0]), [ib.buffer_ptr(out) for out in outs]
        with rows.loop(ib, cycles, target) as row:

            def read(i: Any, row: Expr = row) -> Expr:
                return source[rows.at(row, i)]

            if has_keys:
                places = _sorted_by_keys(ib, rows.extent, count, read, is_ascending)
            else:
                places = _sorted(ib, rows.extent, read, is_ascending)
            for want, out in zip(wants, made, strict=True):
                # The elements are loaded one by one in any case.
                kind = "serial" if want == "values" else "vectorize"
                with ib.for_range(0, count, "i", kind=kind) as i:
                    place = places(i)
                    found = read(_inside(place)) if want == "values" else place
                    out[rows.at(row, i)] = found.astype(out.dtype)
        return ib.get()

    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    kinds = [data.dtype if want == "values" else want for want in wants]
    made = te.extern(
        [shape] * len(wants), [data], code, name="sorted", dtype=kinds, is_complete=True
    )
    return made if isinstance(made, tuple) else (made,)


def _sorted(ib: Builder, extent: int, read: _Read, is_ascending: bool) -> _Read:
    """Sort a row by its elements; return a function for the positions in order."""
    runs = runs_of(extent)
    keys = ib.allocate(read(0).dtype, (2, runs.size), "keys")
    places = ib.allocate("int32", (2, runs.size), "places")
    with ib.for_range(0, extent, "i", kind="vectorize") as i:
        keys[0, i] = read(i)
        places[0, i] = i.astype("int32")
    sorter = Sorter(ib, runs, keys, (places,), is_ascending)
    sorter.pad(extent)
    sorter.sort()
    return lambda i: places[sorter.result, i]


def _sorted_by_keys(ib: Builder, extent: int, count: int, read: _Read, is_ascending: bool) -> _Read:
    """Sort the keys of a row, or of those elements of it that are selected before."""
    is_selection = 2 * count < extent
    runs = runs_of(count + 1 if is_selection else extent)  # a place more: see `Selection.emit`
    dtype = _key(read(0), is_ascending).dtype
    chosen = ib.allocate(dtype, (2, runs.size), "chosen")
    places = ib.allocate("int32", (2, runs.size), "places")

    def collect(number: Expr, place: Expr, key: Expr) -> None:
        chosen[0, number] = key
        places[0, number] = place.astype("int32")

    if is_selection:
        Selection(ib, _keys(ib, extent, read, is_ascending), count).emit(collect)
    else:
        with ib.for_range(0, extent, "i", kind="vectorize") as i:
            collect(i, i, _key(read(i), is_ascending))
    sorter = Sorter(ib, runs, chosen, (places,), is_ascending=True)
    sorter.pad(count if is_selection else extent)
    sorter.sort()
    return lambda i: places[sorter.result, i]


def _keys(ib: Builder, extent: int, read: _Read, is_ascending: bool) -> BufferView:
    """Fill a buffer with the keys of a row, and further keys that come after all of them."""
    dtype = _key(read(0), is_ascending).dtype
    size = -(-extent // CHUNK) * CHUNK
    keys = ib.allocate(dtype, (size,), "keys")
    with ib.for_range(0, extent, "i", kind="vectorize") as i:
        keys[i] = _key(read(i), is_ascending)
    with ib.for_range(extent, size, "i") as i:
        keys[i] = te.max_value(dtype)
    return keys


def _inside(place: Expr) -> Expr:
    return te.assume_bounds(place.astype("index"))


def _key(value: Expr, is_ascending: bool) -> Expr:
    key = key_of(value, is_ascending=is_ascending)
    assert key is not None
    return key
