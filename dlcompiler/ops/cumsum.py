"""The operator cumsum: sums of the elements up to each element along a dimension.

On a CPU, a dimension is cut into blocks. In a block, windows of 2, 4, 8 … elements are added::

    windows2[i] = data[i] + data[i - 1]                 the elements i - 1 and i
    windows4[i] = windows2[i] + windows2[i - 2]         the elements i - 3 to i
    …
    out[i] = windows64[i] + the sum of the blocks before

Each line computes whole vectors, whereas a sum that is carried from element to element takes the
latency of an addition for each. The windows of a block stay in the nearest cache. Sums of blocks
are added up in the same way.

**Source:** W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM
29(12), 1986.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ops.base import Operator, Reference, as_expected, by_device
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.ordering import running
from dlcompiler.ops.rounding import sum_bound
from dlcompiler.ops.shapes import checked_dimension, checked_dtype, shape_of, shape_text
from dlcompiler.space import Workload
from dlcompiler.te import ScanOp, Tensor

NAME = "cumsum"
DTYPES = ("float32", "float64", "int32", "int64")
ROW, _COLUMN = 64, 8
"""Most elements of a block along the last dimension, and along another. The loops over a block of
a row are written out; rows of a block are in the nearest cache."""
FEW = 16
"""Blocks whose sums are added without blocks of blocks."""


def workload(*, shape: Sequence[int] | str, axis: int = -1, dtype: str = "float32") -> Workload:
    """Return the workload of `cumsum`; integers wrap."""
    text = shape_text(shape, NAME)
    if not shape_of(text):
        text = "1"
    n = checked_dimension(axis, len(shape_of(text)), NAME)
    return Workload.of(NAME, shape=text, axis=n, dtype=checked_dtype(dtype, DTYPES, NAME))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result, as a recurrence."""
    data, axis = _data(workload), workload["axis"]
    made = running(data, axis, "sum", data.dtype, is_exclusive=False, name=NAME)
    if isinstance(made.op, ScanOp):
        return data, made
    return data, tensor(data.shape, lambda *i: made[i], NAME)


def define_for_cpu(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result: as a recurrence over whole rows, or in blocks."""
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    return (define_in_blocks if axis or is_row(shape, axis) else define)(workload)


def define_in_blocks(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result, through the sums of windows and of blocks."""
    data, axis = _data(workload), workload["axis"]
    most = ROW if is_row(data.static_shape, axis) else _COLUMN
    return data, in_blocks(data, axis, most, NAME)


def _data(workload: Workload) -> Tensor:
    return te.placeholder(shape_of(workload["shape"]), workload["dtype"], "data")


def is_row(shape: Sequence[int], axis: int) -> bool:
    """Tell whether the elements that are added are neighbours in memory."""
    return math.prod(shape[axis + 1 :]) == 1


def in_blocks(data: Tensor, axis: int, most: int, name: str) -> Tensor:
    """Define running sums through blocks of at most `most` elements.

    Parameters
    ----------
    data : Tensor
        Numbers.
    axis : int
        The dimension.
    most : int
        Elements of a block.
    name : str
        Name of the result; those of its stages begin with it.
    """
    shape, zero = data.static_shape, te.const(0, data.dtype)
    extent = shape[axis]
    count, size = blocks(extent, most)

    def at(i: Sequence[Any], *place: Any) -> tuple[Any, ...]:
        return (*i[:axis], *place, *i[axis + 1 :])

    def value(*i: Any) -> Any:
        place = i[axis] * size + i[axis + 1]
        read = data[(*i[:axis], place, *i[axis + 2 :])]
        return read if count * size == extent else te.if_then_else(place < extent, read, zero)

    windows = _windows(value, (*shape[:axis], count, size, *shape[axis + 1 :]), axis + 1, name)
    if count < 2:
        return tensor(shape, lambda *i: windows(*at(i, te.floordiv(i[axis], size), i[axis])), name)
    k = over(size, "k")
    totals = tensor(
        at(shape, count - 1),
        lambda *i: te.sum(data[at(i, i[axis] * size + k)], axis=k),
        f"{name}.totals",
    )
    before = _sums_before(totals, axis, count, name)

    def element(*i: Any) -> Any:
        block, place = te.floordiv(i[axis], size), te.floormod(i[axis], size)
        return windows(*at(i, block, place)) + before[at(i, block)]

    return tensor(shape, element, name)


def blocks(extent: int, most: int) -> tuple[int, int]:
    """Return the number of blocks of a dimension, and their size.

    Examples
    --------
    >>> blocks(50, 64), blocks(1000, 64), blocks(100, 16)
    ((1, 50), (16, 64), (7, 16))
    """
    if extent <= most:
        return 1, max(extent, 1)
    count = -(-extent // most)
    size = -(-extent // (16 * count)) * 16
    return -(-extent // size), size


def _windows(
    value: Callable[..., Any], shape: Sequence[int], n: int, name: str
) -> Callable[..., Any]:
    """Return a function for the sums of a block up to each element: of ever wider windows."""
    found, width = value, 1
    while width < shape[n]:

        def wider(*i: Any, narrow: Callable[..., Any] = found, width: int = width) -> Any:
            own, other = narrow(*i), narrow(*i[:n], i[n] - width, *i[n + 1 :])
            return te.if_then_else(i[n] >= width, own + other, own)

        width *= 2
        made = tensor(shape, wider, f"{name}.windows{width}")
        found = _reader(made)
    return found


def _reader(made: Tensor) -> Callable[..., Any]:
    return lambda *i: made[i]


def _sums_before(totals: Tensor, axis: int, count: int, name: str) -> Tensor:
    """Define the sums of all blocks before each block."""
    shape = (*totals.shape[:axis], count, *totals.shape[axis + 1 :])
    zero = te.const(0, totals.dtype)
    if count <= FEW:
        k = over(count - 1, "b")

        def element(*i: Any) -> Any:
            read = totals[(*i[:axis], k, *i[axis + 1 :])]
            return te.sum(te.select(k < i[axis], read, zero), axis=k)

        return tensor(shape, element, f"{name}.before")
    sums = in_blocks(totals, axis, FEW, f"{name}.blocks")

    def shifted(*i: Any) -> Any:
        place = i[axis] - 1
        return te.if_then_else(place >= 0, sums[(*i[:axis], place, *i[axis + 1 :])], zero)

    return tensor(shape, shifted, f"{name}.before")


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs, the sums, and their bounds: ``n·u·Σ|x|`` for floats, else 0."""
    shape, axis, dtype = shape_of(workload["shape"]), workload["axis"], workload["dtype"]
    generator, kind = np.random.default_rng(seed), dtypes.to_numpy(dtype)
    if not dtypes.is_float(dtype):
        data = generator.integers(-9, 9, shape).astype(kind)
        expected = as_expected(np.cumsum(data, axis=axis, dtype=kind), dtype)
        return Reference({"data": data}, {NAME: expected}, {NAME: np.zeros(shape)})
    data = generator.uniform(-1, 1, shape).astype(kind)
    wide = data.astype(np.float64)
    bound = sum_bound(np.cumsum(np.abs(wide), axis=axis), shape[axis], dtype)
    return Reference({"data": data}, {NAME: np.cumsum(wide, axis=axis)}, {NAME: bound})


CUMSUM = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": "dlcompiler.ops.cumsum_schedule:BLOCKS",
            "gpu": "dlcompiler.ops.gpu.cumsum:CUMSUM",
        }
    ),
)
