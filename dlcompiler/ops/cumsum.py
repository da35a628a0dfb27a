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
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, as_expected, by_device
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.ordering import running
from dlcompiler.ops.rounding import sum_bound
from dlcompiler.ops.rows import width_knob
from dlcompiler.ops.shapes import checked_dimension, checked_dtype, shape_of, shape_text
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ScanOp, Tensor

Stages: TypeAlias = "tuple[Sequence[Tensor], Sequence[Tensor]]"
"""The windows of the elements, and the sums of blocks."""
NAME = "cumsum"
DTYPES = ("float32", "float64", "int32", "int64")
_ROW, _COLUMN = 64, 8
"""Most elements of a block along the last dimension, and along another. The loops over a block of
a row are written out; rows of a block are in the nearest cache."""
_FEW = 16
"""Blocks whose sums are added without blocks of blocks."""
_CYCLES = 1.0
"""Time of an element on one core [cycle]."""


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
    return (define_in_blocks if axis or _is_row(shape, axis) else define)(workload)


def define_in_blocks(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result, through the sums of windows and of blocks."""
    data, axis = _data(workload), workload["axis"]
    most = _ROW if _is_row(data.static_shape, axis) else _COLUMN
    return data, in_blocks(data, axis, most, NAME)


def _data(workload: Workload) -> Tensor:
    return te.placeholder(shape_of(workload["shape"]), workload["dtype"], "data")


def _is_row(shape: Sequence[int], axis: int) -> bool:
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
    if count <= _FEW:
        k = over(count - 1, "b")

        def element(*i: Any) -> Any:
            read = totals[(*i[:axis], k, *i[axis + 1 :])]
            return te.sum(te.select(k < i[axis], read, zero), axis=k)

        return tensor(shape, element, f"{name}.before")
    sums = in_blocks(totals, axis, _FEW, f"{name}.blocks")

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


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``width``       neighbouring elements that are computed side by side
    ``strip``       such groups of columns whose blocks are in the nearest cache together
    ``parallel``    run rows, or columns, on several cores
    ==============  ============================================================================
    """
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    lanes = target.lanes(workload["dtype"])
    is_row = _is_row(shape, axis)
    along = blocks(shape[axis], _ROW)[1] if is_row else shape[-1]
    widths = width_knob("width", along, lanes, (1, 2, 4) if is_row else (1, 2, 4, 8))
    strip = Knob("strip", (1,) if is_row else (1, 2, 4, 8, 16))
    return Space(workload, [widths, strip, parallel_knob(target.cores)])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with one vector of a row, or four vectors of neighbouring columns."""
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    choices = space(workload, target)
    widths = choices.knobs[0].values
    most = target.lanes(workload["dtype"]) * (1 if _is_row(shape, axis) else 4)
    width = max((n for n in widths if n <= most), default=widths[0])
    rows = math.prod(shape) // max(shape[axis], 1)
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * math.prod(shape), target)
    strip = max(n for n in choices.knobs[1].values if n == 1 or n * width <= shape[-1])
    return choices.config(width=width, strip=min(strip, 4), parallel=is_parallel)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule running sums on a CPU: block after block, each in vectors; see the module."""
    (out,) = outs
    if isinstance(out.op, ScanOp):
        _schedule_scan(s, out.op, cfg)
        return
    stages = {stage.name: stage.tensor for stage in s.stages if stage.name.startswith(f"{NAME}.")}
    windows = [t for name, t in stages.items() if name.startswith(f"{NAME}.windows")]
    sums = [t for name, t in stages.items() if t not in windows]
    axis, size = _cut_of(out, windows)
    if _is_row(out.static_shape, axis):
        _schedule_rows(s, out, axis, size, (windows, sums), cfg, target.lanes(out.dtype))
    else:
        _schedule_columns(s, out, axis, size, (windows, sums), cfg)


def _schedule_rows(
    s: Schedule, out: Tensor, axis: int, size: int, stages: Stages, cfg: Config, lanes: int
) -> None:
    """Schedule sums of neighbours: a block is written out, so that all its conditions are known."""
    windows, sums = stages
    axes = list(out.op.axis)
    block, place = s[out].split(axes[axis], size)
    vectors, vector = s[out].split(place, cfg["width"])
    s[out].vectorize(vector)
    s[out].unroll(vectors)
    outer = _outer(s, out, axes[:axis], is_parallel=cfg["parallel"])
    for each in windows:
        s[each].compute_at(s[out], block)
        s[each].unroll(s[each].op.axis[axis + 1])
    for each in sums:
        parts = []
        if each.name == f"{NAME}.totals":
            parts = reduce_in_lanes(s, each, widest_power(size, 4 * lanes))
        elif ".windows" in each.name:
            s[each].unroll(s[each].op.axis[axis + 1])
        for part in (each, *parts) if outer is not None else ():
            s[part].compute_at(s[out], outer)
        for part in parts if outer is None else ():
            s[part].compute_at(s[each], s[each].op.axis[axis])


def _schedule_columns(
    s: Schedule, out: Tensor, axis: int, size: int, stages: Stages, cfg: Config
) -> None:
    """Schedule sums of elements that are apart: vectors of neighbouring columns."""
    windows, sums = stages
    axes = list(out.op.axis)
    block, place = s[out].split(axes[axis], size)
    strips, columns = s[out].split(axes[-1], cfg["strip"] * cfg["width"])
    columns, vector = s[out].split(columns, cfg["width"])
    around = [*axes[:axis], *axes[axis + 1 : -1], strips]
    s[out].reorder(*around, block, place, columns, vector)
    s[out].vectorize(vector)
    outer = _outer(s, out, around, is_parallel=cfg["parallel"])
    for each in windows:
        s[each].compute_at(s[out], block)
        _vectorized(s, each, cfg["width"])
    for each in sums:
        s[each].compute_at(s[out], outer)
        _vectorized(s, each, cfg["width"])


def _outer(s: Schedule, out: Tensor, around: Sequence[Axis], *, is_parallel: bool) -> Any:
    """Return the loop around all blocks of some sums; None if there is no such loop."""
    if not around:
        return None
    outer = s[out].fuse(*around) if len(around) > 1 else around[0]
    if is_parallel:
        s[out].parallel(outer)
    return outer


def _schedule_scan(s: Schedule, op: ScanOp, cfg: Config) -> None:
    """Add whole rows: each is stored, and read as the sums before the next one."""
    for stage in (s[op.inits[0]], s[op.updates[0]]):
        _, vector = stage.split(stage.op.axis[-1], cfg["width"])
        stage.vectorize(vector)


def _vectorized(s: Schedule, each: Tensor, width: int) -> None:
    """Compute vectors of a stage along its last dimension, inside all of its other loops."""
    stage = s[each]
    *others, last = stage.op.axis
    outer, vector = stage.split(last, width)
    stage.reorder(*others, outer, *stage.op.reduce_axis, vector)
    stage.vectorize(vector)


def _cut_of(out: Tensor, windows: Sequence[Tensor]) -> tuple[int, int]:
    """Return the dimension of the sums and the size of a block, from the shape of a window."""
    if not windows:
        return next((n for n, extent in enumerate(out.static_shape) if extent < 2), 0), 1
    shape, whole = windows[0].static_shape, out.static_shape
    axis = next(
        n for n in range(len(whole))
        if shape[:n] == whole[:n] and shape[n + 2 :] == whole[n + 1 :]
        and shape[n] == -(-whole[n] // shape[n + 1]) and shape[n + 1] > 1
    )  # fmt: skip
    return axis, shape[axis + 1]


CUMSUM = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": DeviceSchedule(space, default_config, schedule, define=define_for_cpu),
            "gpu": "dlcompiler.ops.gpu.cumsum:CUMSUM",
        }
    ),
)
