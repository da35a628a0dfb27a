"""Depthwise convolution: each output channel reads one input channel.

Images are NCHW. The definition has two stages before the result: ``depthwise.padded``, a copy of
the image with its frame of zeros, and ``depthwise.sums``. Both reach beyond the result, so that a
tile at an edge is computed as any other and only what is stored is guarded: a schedule copies a few
rows at a time, and reads whole vectors of them without conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.shapes import Shape, Window
from dlcompiler.ops.defining import tensor
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, split_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

NAME = "depthwise_conv2d"
_TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8)
_TILE_VECTORS = (1, 2, 4)
_EXTRA_ROWS = max(_TILE_ROWS) - 1
_EXTRA_COLUMNS = 63  # of the widest tile: four vectors of 16 lanes, less one
_MOST_COPIES = 160
"""Multiply-adds that are unrolled; beyond them the rows of the kernel are a loop."""
_MOST_COPIED_VECTORS = 16
"""Vectors of a padded row that are copied without a loop."""
_STRIP_BYTES = 16 * 1024
"""What the copied rows may take: half of the nearest cache [byte]."""
_SMALLEST_PARALLEL_FLOPS = 1e6


def depthwise(
    data: Tensor, weight: Tensor, shape: Shape, operands: Mapping[str, Tensor] | None = None
) -> Tensor:
    """Define a depthwise convolution with its epilogue.

    Parameters
    ----------
    data : Tensor
        Images, ``(n, c, h, w)``.
    weight : Tensor
        ``(c * multiplier, 1, kh, kw)``: the output channel ``o`` reads channel ``o // multiplier``.
    shape : Shape
        The shape of the convolution, with ``groups == c``.
    operands : mapping, optional
        Of the epilogue.

    Returns
    -------
    Tensor
        ``(n, c * multiplier, oh, ow)``.
    """
    rows, columns = shape.rows, shape.columns
    padded = _padded(data, shape)
    multiplier = shape.o // max(shape.c, 1)
    p, q = te.reduce_axis((0, rows.kernel), "p"), te.reduce_axis((0, columns.kernel), "q")

    def total(n: Any, o: Any, y: Any, x: Any) -> Any:
        row, column = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
        return te.sum(padded[n, o // multiplier, row, column] * weight[o, 0, p, q], axis=[p, q])

    n, o, height, width = shape.result
    extents = (n, o, height + _EXTRA_ROWS, width + _EXTRA_COLUMNS)
    sums = tensor(extents, total, "depthwise.sums")
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    return tensor(shape.result, lambda *i: epilogue.element(sums[i], i, operands or {}), "result")


def _padded(data: Tensor, shape: Shape) -> Tensor:
    """Define the image between zeros, as wide as the widest tile may read."""

    def element(n: Any, c: Any, y: Any, x: Any) -> Any:
        row, column = y - shape.rows.before, x - shape.columns.before
        is_inside = te.all(row >= 0, row < data.shape[2], column >= 0, column < data.shape[3])
        return te.if_then_else(is_inside, data[n, c, row, column], te.const(0, data.dtype))

    height = _reach(shape.rows, shape.rows.out + _EXTRA_ROWS)
    width = _reach(shape.columns, shape.columns.out + _EXTRA_COLUMNS) + _EXTRA_COLUMNS
    return tensor((shape.n, shape.c, height, width), element, "depthwise.padded")


def _reach(window: Window, places: int) -> int:
    """Return the extent that a number of places reads."""
    return (max(places, 1) - 1) * window.stride + window.reach


def workload(
    *, c: int, h: int, w: int, kernel: shapes.Sizes, multiplier: int = 1, **others: Any
) -> Workload:
    """Return the workload of a depthwise convolution; see `shapes.workload`.

    Parameters
    ----------
    c, h, w : int
        Channels, height and width of the images.
    kernel : int or tuple of int
        Its extents.
    multiplier : int
        Output channels for each input channel.
    **others
        ``n``, ``stride``, ``padding``, ``dilation``, ``dtype``, ``epilogue``.

    Raises
    ------
    TuningError
        A parameter is not what it should be.
    """
    for name, number, least in (("c", c, 0), ("multiplier", multiplier, 1)):
        if type(number) is not int or number < least:
            raise TuningError(
                NAME, f"{name} is not a number that it may be", got=repr(number),
                expected=f"an int from {least}",
            )  # fmt: skip
    return shapes.workload(
        NAME, c=c, h=h, w=w, o=c * multiplier, kernel=kernel, groups=max(c, 1), **others
    )


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``weight``, the operands of the epilogue, and ``result``."""
    shape = shapes.shape_of(workload)
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(shape.weight, shape.dtype, "weight")
    operands = Epilogue.read(shape.epilogue, channel=1).placeholders(shape.result, shape.dtype)
    return data, weight, *operands.values(), depthwise(data, weight, shape, operands)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-1, 1), the right result, and its bound ``K·u·Σ|a||b|``."""
    return shapes.reference(workload, seed)


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ============  ==============================================================================
    ``rows``      of the register tile
    ``vectors``   side by side in a row of it
    ``strip``     rows of tiles for which the padded image is copied at a time; 0: all
    ``parallel``  run the channels on several cores
    ============  ==============================================================================
    """
    shape = shapes.shape_of(workload)
    knobs = [
        split_knob("rows", shape.rows.out, _TILE_ROWS),
        Knob("vectors", _TILE_VECTORS),
        Knob("strip", (0, 1, 2, 4, 8)),
        Knob("parallel", (False, True) if target.cores > 1 else (False,)),
    ]
    lanes = _lanes(shape.columns.out, shape.dtype, target)
    vectors = Filter(
        "a tile is not wider than twice the result",
        lambda v: v["vectors"] == 1 or v["vectors"] * lanes < 2 * shape.columns.out,
    )
    registers = Filter("at most 16 accumulators", lambda v: v["rows"] * v["vectors"] <= 16)
    return Space(workload, knobs, (vectors, registers))


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    A tile takes half a cycle for each multiply-add or load, whichever are more; a row of the image
    is loaded once for all rows of the result that read it. Loads a stride apart take two loads and
    three shuffles. Of tiles that are equally good the smaller is taken.
    """
    shape = shapes.shape_of(workload)
    choices = space(workload, target)
    values = {knob.name: [int(value) for value in knob.values] for knob in choices.knobs}
    rows = min(values["rows"], key=lambda r: (_cycles(shape, r), r))
    lanes = _lanes(shape.columns.out, shape.dtype, target)
    vectors = 1
    while (
        not _is_unrolled(shape, rows, vectors)
        and rows * vectors < 8
        and vectors * lanes < shape.columns.out
    ):
        vectors *= 2
    pitch = _reach(shape.columns, shape.columns.out) * dtypes.bytes_of(shape.dtype)
    strips = [
        strip
        for strip in values["strip"]
        if strip and pitch * _reach(shape.rows, rows * strip) <= _STRIP_BYTES
    ]
    is_whole = pitch * _reach(shape.rows, shape.rows.out) <= _STRIP_BYTES
    return choices.config(
        rows=rows,
        vectors=vectors,
        strip=0 if is_whole else max(strips, default=1),
        parallel=target.cores > 1
        and shape.n * shape.o >= target.cores
        and shape.flops >= _SMALLEST_PARALLEL_FLOPS,
    )


def _cycles(shape: Shape, rows: int) -> float:
    """Return what a column of tiles takes of one vector [cycles]."""
    tiles = -(-shape.rows.out // rows)
    loads = _reach(shape.rows, rows) * shape.columns.kernel
    products = rows * shape.rows.kernel * shape.columns.kernel
    if not _is_unrolled(shape, rows, 1):
        loads = products
    load_cycles = 0.5 if shape.columns.stride == 1 else 2.0
    return tiles * (max(products / 2, loads * load_cycles) + rows + 4)


def _is_unrolled(shape: Shape, rows: int, vectors: int) -> bool:
    return rows * vectors * shape.rows.kernel * shape.columns.kernel <= _MOST_COPIES


def _lanes(width: int, dtype: str, target: Target) -> int:
    """Return the lanes of a vector: of the target, or fewer for a narrow result."""
    return min(target.lanes(dtype), 1 << (max(width, 1) - 1).bit_length())


def _extents(of: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor, whose extents are numbers here."""
    return tuple(extent for extent in of.shape if isinstance(extent, int))


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a depthwise convolution on a CPU.

    A strip of rows of a channel is copied between zeros; a tile of its sums stays in registers.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The result.
    cfg : Config
        Of `space`.
    target : Target
        A CPU.
    """
    (result,) = outs
    (sums,) = (t for t in result.op.input_tensors if t.name == "depthwise.sums")
    padded, weight = sums.op.input_tensors
    lanes = _lanes(_extents(result)[3], result.dtype, target)
    tile = s.cache_write(sums, "local")
    s[sums].compute_inline()

    strips, tiles = _schedule_result(s, result, cfg, lanes)
    s[tile].compute_at(s[result], tiles)
    _schedule_sums(s, tile, cfg, lanes, math.prod(_extents(weight)[2:]))
    s[padded].compute_at(s[result], strips)
    _schedule_copy(s, padded, lanes)


def _schedule_result(s: Schedule, result: Tensor, cfg: Config, lanes: int) -> tuple[Any, Any]:
    """Split the result into tiles; returns the loops over strips of rows and over tiles."""
    n, o, y, x = result.op.axis
    y, row = s[result].split(y, cfg["rows"])
    x, columns = s[result].split(x, cfg["vectors"] * lanes)
    vector, lane = s[result].split(columns, lanes)
    channel = s[result].fuse(n, o)
    strips = channel
    if cfg["strip"]:
        strips, y = s[result].split(y, cfg["strip"])
    s[result].reorder(y, x, row, vector, lane)
    s[result].unroll(row)
    s[result].unroll(vector)
    s[result].vectorize(lane)
    if cfg["parallel"]:
        s[result].parallel(channel)
    return strips, x


def _schedule_sums(s: Schedule, tile: Tensor, cfg: Config, lanes: int, taps: int) -> None:
    """Order the loops of a tile: rows innermost, which read the same rows of the image."""
    _, _, y, x = tile.op.axis
    p, q = tile.op.reduce_axis
    s[tile].align_extent(x, lanes)
    vector, lane = s[tile].split(x, lanes)
    is_unrolled = cfg["rows"] * cfg["vectors"] * taps <= _MOST_COPIES
    s[tile].reorder(*((q, p) if is_unrolled else (p, q)), y, vector, lane)
    for axis in (p, q) if is_unrolled else (q,):
        s[tile].unroll(axis)
    s[tile].unroll(y)
    s[tile].unroll(vector)
    s[tile].vectorize(lane)


def _schedule_copy(s: Schedule, padded: Tensor, lanes: int) -> None:
    """Copy rows by vectors, those at the edges apart, and those at the ends under masks."""
    _, _, y, x = padded.op.axis
    s[padded].align_extent(x, lanes)
    vectors, lane = s[padded].split(x, lanes)
    s[padded].vectorize(lane)
    s[padded].pragma(y, "loop_partition_hint")
    (data,) = padded.op.input_tensors
    if _extents(data)[3] // lanes <= _MOST_COPIED_VECTORS:
        s[padded].unroll(vectors)
    else:
        s[padded].pragma(vectors, "loop_partition_hint")


DEPTHWISE = Operator(NAME, workload, define, reference, space, default_config, schedule)
