"""Convolution by minimal filtering: Winograd F(2×2, 3×3) and F(4×4, 3×3), images in NCHW.

The result is cut into tiles of m×m; a tile reads (m+2)² elements of each channel, transforms them,
multiplies them by transformed weights, sums over channels, and transforms back. The sums of all
tiles for one of the (m+2)² positions are a matrix product: 4 (m = 4) or 2.25 (m = 2) times fewer
multiplications than the definition asks for.

====================  =========================================================================
``winograd.image``    the image in its frame of zeros, a few channels side by side
``winograd.rows``     a tile, its rows transformed
``winograd.input``    the tiles, transformed: position × tile × channel
``winograd.sums``     their products with the weights, summed over channels
``winograd.columns``  the same, transformed back along the columns
``winograd.output``   and along the rows: the result, channels side by side
====================  =========================================================================

Results differ from those of the definition: errors are larger, within `reference`'s bound, and a
NaN or an infinity reaches its whole tile, where it may also turn into a NaN. Who needs the exact
propagation takes the direct operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.conv2d.winograd_transforms import (
    Transforms,
    input_row,
    output_row,
    transforms,
    weight_row,
)
from dlcompiler.ops.defining import tensor
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.packing import GIVEN
from dlcompiler.ops.rounding import Array, Wide, unit
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Config, Knob, Space, Workload, divisors
from dlcompiler.target import Target
from dlcompiler.te import Tensor

NAME = "conv2d_winograd"
TILES = (2, 4)
TAPS = 3
PANEL = 16
"""Output channels that lie side by side in packed weights and in sums."""
_TILE_ROWS = (1, 2, 3, 4, 5, 6)
_SPARE_TILES = max(_TILE_ROWS) - 1
_BLOCK_BYTES = 4 * 1024 * 1024
"""What the transformed tiles of a block may take of the last cache [byte]."""
_SMALLEST_PARALLEL_FLOPS = 1e6


def winograd(
    data: Tensor,
    weight: Tensor,
    shape: Shape,
    tile: int,
    operands: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Define a 3×3 convolution of stride 1 by minimal filtering, with its epilogue.

    Parameters
    ----------
    data : Tensor
        Images, ``(n, c, h, w)``.
    weight : Tensor
        Transformed and packed by `pack`: ``(⌈o / 16⌉, tile + 2, tile + 2, c, 16)``.
    shape : Shape
        The shape of the convolution.
    tile : int
        Results of a tile along each dimension: 2 or 4.
    operands : mapping, optional
        Of the epilogue.

    Returns
    -------
    Tensor
        ``(n, o, oh, ow)``.
    """
    t = transforms(tile, TAPS)
    down, across = _tiles(shape, tile)
    spare_rows = -(-_SPARE_TILES // across)
    image = _framed(data, shape, t, down + spare_rows, across)
    channels = -(-shape.o // PANEL) * PANEL
    count = down * across + _SPARE_TILES

    def number(value: float) -> Any:
        return te.const(value, shape.dtype)

    def of_input(row: Any, values: Sequence[Any]) -> Any:
        return _chosen(row, [input_row(t, k, values, number) for k in range(t.size)])

    def of_output(row: Any, values: Sequence[Any]) -> Any:
        return _chosen(row, [output_row(t, k, values, number) for k in range(tile)])

    rows = tensor(
        (t.size, shape.n, count, t.size, shape.c),
        lambda i, n, s, b, c: of_input(
            i, [image[n, s // across * tile + a, s % across * tile + b, c] for a in range(t.size)]
        ),
        "winograd.rows",
    )
    transformed = tensor(
        (t.size, t.size, shape.n, count, shape.c),
        lambda i, j, n, s, c: of_input(j, [rows[i, n, s, b, c] for b in range(t.size)]),
        "winograd.input",
    )
    k = te.reduce_axis((0, shape.c), "k")
    sums = tensor(
        (t.size, t.size, shape.n, count, channels),
        lambda i, j, n, s, o: te.sum(
            transformed[i, j, n, s, k] * weight[o // PANEL, i, j, k, o % PANEL], axis=k
        ),
        "winograd.sums",
    )
    columns = tensor(
        (tile, t.size, shape.n, count, channels),
        lambda p, j, n, s, o: of_output(p, [sums[i, j, n, s, o] for i in range(t.size)]),
        "winograd.columns",
    )
    output = tensor(
        (shape.n, down * tile, across * tile, channels),
        lambda n, y, x, o: of_output(
            x % tile,
            [columns[y % tile, j, n, y // tile * across + x // tile, o] for j in range(t.size)],
        ),
        "winograd.output",
    )
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    return tensor(
        shape.result,
        lambda n, o, y, x: epilogue.element(output[n, y, x, o], (n, o, y, x), operands or {}),
        "result",
    )


def _chosen(number: Any, expressions: Sequence[Any]) -> Any:
    """Return the expression of a number; unrolled, nothing is left of the choice."""
    result = expressions[-1]
    for n, expression in reversed(list(enumerate(expressions[:-1]))):
        result = te.if_then_else(number == n, expression, result)
    return result


def _framed(data: Tensor, shape: Shape, t: Transforms, down: int, across: int) -> Tensor:
    """Define the image in its frame of zeros, as large as the tiles that read it."""

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row, column = y - shape.rows.before, x - shape.columns.before
        is_inside = te.all(
            row >= 0, row < shape.rows.size, column >= 0, column < shape.columns.size
        )
        return te.if_then_else(is_inside, data[n, c, row, column], te.const(0, shape.dtype))

    height, width = (tiles * t.outputs + t.taps - 1 for tiles in (down, across))
    return tensor((shape.n, height, width, shape.c), element, "winograd.image")


def _tiles(shape: Shape, tile: int) -> tuple[int, int]:
    """Return the numbers of tiles below and beside each other, at least one."""
    return max(-(-shape.rows.out // tile), 1), max(-(-shape.columns.out // tile), 1)


# -- workloads ----------------------------------------------------------------------------------


def workload(*, tile: int = 4, kernel: shapes.Sizes = TAPS, **others: Any) -> Workload:
    """Return the workload of a convolution; see `shapes.workload`.

    Parameters
    ----------
    tile : int
        Results of a tile along each dimension: 2 or 4.
    kernel : int
        Only 3.
    **others
        ``n``, ``c``, ``h``, ``w``, ``o``, ``padding``, ``dtype``, ``epilogue``.

    Raises
    ------
    TuningError
        A parameter is not what it should be.
    """
    if tile not in TILES or type(tile) is not int:
        raise TuningError(
            NAME, "no such tile", got=repr(tile), expected=" or ".join(map(str, TILES))
        )
    found = shapes.workload(NAME, kernel=kernel, tile=tile, **others)
    if why := why_not(shapes.shape_of(found)):
        raise TuningError(NAME, why, hint="the direct operator computes any convolution")
    return found


def why_not(shape: Shape) -> str | None:
    """Return why a convolution cannot be computed by minimal filtering, or None."""
    for window in (shape.rows, shape.columns):
        if window.kernel != TAPS:
            return "the kernel is not 3×3"
        if window.stride != 1 or window.dilation != 1:
            return "the stride or the dilation is not 1"
    return "there are groups" if shape.groups != 1 else None


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, the packed ``weight``, the operands of the epilogue, and ``result``."""
    shape, tile = shapes.shape_of(workload), workload["tile"]
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(_packed_shape(shape, tile), shape.dtype, "weight")
    operands = Epilogue.read(shape.epilogue, channel=1).placeholders(shape.result, shape.dtype)
    return data, weight, *operands.values(), winograd(data, weight, shape, tile, operands)


def _packed_shape(shape: Shape, tile: int) -> tuple[int, ...]:
    size = tile + TAPS - 1
    return -(-shape.o // PANEL), size, size, shape.c, PANEL


def pack(weight: Array, tile: int) -> Array:
    """Transform weights (o, c, 3, 3) by ``G g G^T`` and pack them into panels.

    Returns
    -------
    array
        ``(⌈o / 16⌉, tile + 2, tile + 2, c, 16)``, transformed in float64 and rounded once.
    """
    g = transforms(tile, TAPS).matrix("weight")
    return _in_panels(_both(g, weight.astype(np.float64))).astype(weight.dtype)


def _both(matrix: Wide, values: Wide) -> Wide:
    """Transform the last two dimensions."""
    result: Wide = matrix @ values @ matrix.T
    return result


def _in_panels(transformed: Wide) -> Wide:
    o, c, size, _ = transformed.shape
    panels = -(-o // PANEL)
    padded = np.zeros((panels * PANEL, c, size, size))
    padded[:o] = transformed
    result: Wide = padded.reshape(panels, PANEL, c, size, size).transpose(0, 3, 4, 2, 1)
    return np.ascontiguousarray(result)


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the kernel's inputs from a caller's, whose ``weight`` is ``(o, c, 3, 3)``."""
    return {**arrays, "weight": pack(arrays["weight"], workload["tile"])}


def packing(workload: Workload, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
    """Return a kernel that does what `pack` does, with the transforms in the workload's dtype.

    Returns
    -------
    tuple
        The schedule, and its parameters ``weight_given`` of shape ``(o, c, 9)`` and ``weight``.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    t = transforms(tile, TAPS)
    given = te.placeholder((shape.o, shape.c, TAPS**2), shape.dtype, "weight" + GIVEN)
    panels = -(-shape.o // PANEL)

    def number(value: float) -> Any:
        return te.const(value, shape.dtype)

    def of_weight(row: Any, values: Sequence[Any]) -> Any:
        return _chosen(row, [weight_row(t, k, values, number) for k in range(t.size)])

    def tap(p: Any, c: Any, a: Any, v: Any) -> Any:
        o = p * PANEL + v
        return te.if_then_else(o < shape.o, given[o, c, a], number(0))

    taps = tensor((panels, shape.c, TAPS**2, PANEL), tap, "taps")
    rows = tensor(
        (t.size, panels, shape.c, TAPS, PANEL),
        lambda i, p, c, b, v: of_weight(i, [taps[p, c, a * TAPS + b, v] for a in range(TAPS)]),
        "rows",
    )
    packed = tensor(
        _packed_shape(shape, tile),
        lambda p, i, j, c, v: of_weight(j, [rows[i, p, c, b, v] for b in range(TAPS)]),
        "weight",
    )
    s = create_schedule(packed)
    _schedule_packing(s, (taps, rows, packed), min(target.lanes(shape.dtype), PANEL))
    if target.cores > 1:
        s[packed].parallel(packed.op.axis[0])
    return s, (given, packed)


def _schedule_packing(s: Schedule, stages: Sequence[Tensor], lanes: int) -> None:
    taps, rows, packed = stages
    p, i, j, c, v = packed.op.axis
    v, lane = s[packed].split(v, lanes)
    s[packed].reorder(p, c, v, i, j, lane)
    s[packed].vectorize(lane)
    unrolled = [(packed, j)]
    for stage, which in ((rows, 0), (taps, 2)):
        s[stage].compute_at(s[packed], v)
        s[stage].set_scope("local")
        axes = list(stage.op.axis)
        s[stage].vectorize(axes[-1])
        if stage is rows:
            s[rows].reorder(*axes[1:-1], axes[0], axes[-1])
        unrolled.append((stage, axes[which]))
    for of, axis in unrolled:
        s[of].unroll(axis)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs, the result of the plain convolution, and how far this algorithm may be off.

    Notes
    -----
    With ``|·|`` element by element, an error is at most
    ``N·u·|A^T| (Σ_c (|G| |g| |G^T|) * (|B^T| |d| |B|)) |A|`` to first order, where N counts the
    roundings on the longest way: those of the sum over channels, and of two transforms each of the
    input, the output and the weights.
    **Source:** B. Barabasz, A. Anderson, K. M. Soodhalter, D. Gregg, "Error analysis and improving
    the accuracy of Winograd convolution for deep neural networks", ACM TOMS 46(4), 2020, theorems
    1 and 3; N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    plain = shapes.reference(workload, seed)
    data, weight = plain.inputs["data"], plain.inputs["weight"]
    expected, bound = Epilogue.read(shape.epilogue, channel=1).reference(
        shapes.convolve(shape, data, weight),
        error_bound(shape, tile, data, weight),
        plain.inputs,
        shape.dtype,
    )
    inputs = prepack(workload, plain.inputs)
    return Reference(inputs, {"result": expected}, {"result": bound}, plain=plain.inputs)


def error_bound(shape: Shape, tile: int, data: Array, weight: Array) -> Wide:
    """Return how far sums may be off, ``(n, o, oh, ow)``; see `reference`."""
    t = transforms(tile, TAPS)
    a, g, b = (np.abs(t.matrix(name)) for name in ("output", "weight", "input"))
    down, across = _tiles(shape, tile)
    n, c = shape.n, shape.c
    image = np.zeros((n, c, down * tile + TAPS - 1, across * tile + TAPS - 1))
    framed = np.abs(shapes.framed(shape, data))[..., : image.shape[2], : image.shape[3]]
    image[..., : framed.shape[2], : framed.shape[3]] = framed
    windows = np.lib.stride_tricks.sliding_window_view(image, (t.size, t.size), axis=(2, 3))
    tiles = _both(b, windows[:, :, ::tile, ::tile])  # n, c, down, across, size, size
    weights = _both(g, np.abs(weight.astype(np.float64)))  # o, c, size, size
    left = tiles.transpose(4, 5, 0, 2, 3, 1).reshape(t.size, t.size, n * down * across, c)
    sums = left @ weights.transpose(2, 3, 1, 0)  # size, size, tiles, o
    ends = _both(a, sums.transpose(2, 3, 0, 1))  # tiles, o, tile, tile
    whole = ends.reshape(n, down, across, shape.o, tile, tile).transpose(0, 3, 1, 4, 2, 5)
    magnitude = whole.reshape(n, shape.o, down * tile, across * tile)
    most = {name: max(sum(x != 0 for x in row) for row in getattr(t, name)) for name in
            ("input", "output")}  # fmt: skip
    of_weights = 2 * (TAPS + 1)  # where a kernel transforms them; numbers like 1/6 are rounded, too
    steps = max(c, 1) + 2 * most["input"] + 2 * most["output"] + of_weights + 2
    own = 2 if shape.dtype == "float64" else 1
    factor = 1.01 * own * steps * unit(shape.dtype)
    bound: Wide = factor * magnitude[:, :, : shape.rows.out, : shape.columns.out]
    return bound


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ============  ==============================================================================
    ``rows``      tiles in the register tile of the products
    ``unroll``    channels in one iteration of their loop
    ``block``     rows of tiles for which all stages run at a time; 0: all
    ``whole``     keep the sums of all output channels of a block, not of one panel
    ``parallel``  run input channels, then panels of output channels on several cores
    ============  ==============================================================================
    """
    shape = shapes.shape_of(workload)
    down, _ = _tiles(shape, workload["tile"])
    knobs = [
        Knob("rows", _TILE_ROWS),
        Knob("unroll", tuple(u for u in (1, 2, 4) if max(shape.c, 1) % u == 0)),
        Knob("block", (0, *(rows for rows in divisors(down, 8) if rows < down))),
        Knob("whole", (False, True)),
        Knob("parallel", (False, True) if target.cores > 1 else (False,)),
    ]
    return Space(workload, knobs)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    A step of the products takes a register tile of ``r`` tiles and two vectors ``r`` cycles, and no
    less than 5: fewer sums do not hide the latency of a multiply-add. Blocks are made where the
    transformed tiles of the whole image would not stay in the last cache.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    down, across = _tiles(shape, tile)
    choices = space(workload, target)
    values = {knob.name: [int(value) for value in knob.values] for knob in choices.knobs}
    row_bytes = across * (tile + TAPS - 1) ** 2 * shape.c * dtypes.bytes_of(shape.dtype)
    fitting = [rows for rows in values["block"] if rows and rows * row_bytes <= _BLOCK_BYTES]
    block = 0 if down * row_bytes <= _BLOCK_BYTES else max(fitting, default=1)
    count = (block or down) * across
    rows = min(values["rows"], key=lambda r: (-(-count // r) * max(r, 5), -r))
    return choices.config(
        rows=rows,
        unroll=max(values["unroll"]),
        block=block if 1 in values["block"] else 0,
        whole=False,
        parallel=target.cores > 1 and shape.flops >= _SMALLEST_PARALLEL_FLOPS,
    )


def estimate(workload: Workload, target: Target) -> float:
    """Return about how long the default config takes on one core [cycle].

    Notes
    -----
    The constants were measured on one x86-64 machine with AVX2 (Zen 3): a transform takes 4.6
    cycles for each position of a tile and vector of channels, and the last cache or memory brings
    10 bytes of weights in a cycle while others are used.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    cfg = default_config(workload, target)
    down, across = _tiles(shape, tile)
    positions = (tile + TAPS - 1) ** 2
    lanes = min(target.lanes(shape.dtype), PANEL)
    rows, block_rows = int(cfg["rows"]), int(cfg["block"]) or down
    steps = down // block_rows * -(-block_rows * across // rows) * max(rows, 5)
    vectors = -(-shape.o // PANEL) * -(-PANEL // (2 * lanes))
    products = shape.n * positions * steps * shape.c * vectors
    transformed = 4.6 * shape.n * down * across * positions * (shape.c + shape.o) / lanes
    weights = positions * shape.c * shape.o * dtypes.bytes_of(shape.dtype) / 10
    return products + transformed + weights


# -- the schedule -------------------------------------------------------------------------------

_Place = tuple[Tensor, Any]
"""A stage and one of its loops, to compute another at."""


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a convolution by minimal filtering on a CPU.

    The transforms work on vectors of channels, so that tiles of any number and place fill them;
    images are transposed to channels side by side, and back, in registers.

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
    lanes = min(target.lanes(result.dtype), PANEL)
    stages = {stage.name.rpartition(".")[2]: stage.tensor for stage in s.stages}
    tile = _extent(stages["columns"], 0)
    block, panel, unrolled = _schedule_result(s, result, cfg, lanes, tile)
    unrolled += _schedule_output(s, stages["output"], stages["columns"], lanes, (result, panel))
    at = result, block if cfg["whole"] else panel
    unrolled += _schedule_sums(s, stages["sums"], cfg, lanes, at)
    unrolled += _schedule_input(s, stages["input"], stages["rows"], lanes, (result, block))
    channels = s[stages["input"]].leaf_iter_vars[1]
    unrolled += _schedule_image(s, stages["image"], lanes, (stages["input"], channels))
    if cfg["parallel"]:
        s[result].parallel(panel)
        s[stages["input"]].parallel(channels)
    # Last, since the extents of unrolled loops are looked at with each step that follows.
    for of, axis in unrolled:
        s[of].unroll(axis)


def _extent(of: Tensor, dimension: int) -> int:
    extent = of.shape[dimension]
    assert isinstance(extent, int)
    return extent


def _schedule_result(
    s: Schedule, result: Tensor, cfg: Config, lanes: int, tile: int
) -> tuple[Any, Any, list[_Place]]:
    """Split the result; returns the loops over blocks of rows and over panels of channels."""
    n, o, y, x = result.op.axis
    order, block = [], n
    if cfg["block"]:
        block, y = s[result].split(y, cfg["block"] * tile)
        order.append(block)
    panel, o = s[result].split(o, PANEL)
    groups, o = s[result].split(o, lanes)
    x, lane = s[result].split(x, lanes)
    s[result].reorder(*order, panel, groups, y, x, o, lane)
    s[result].vectorize(lane)
    return block, panel, [(result, o)]


def _schedule_output(
    s: Schedule, output: Tensor, columns: Tensor, lanes: int, at: _Place
) -> list[_Place]:
    """Transform sums back, tile by tile, in vectors of output channels."""
    tile = _extent(columns, 0)
    s[output].compute_at(s[at[0]], at[1])
    n, y, x, o = output.op.axis
    for axis, factor in ((y, tile), (x, tile), (o, lanes)):
        s[output].align_extent(axis, factor)
    y, p = s[output].split(y, tile)
    x, q = s[output].split(x, tile)
    o, lane = s[output].split(o, lanes)
    s[output].reorder(n, y, x, o, p, q, lane)
    s[output].vectorize(lane)
    s[columns].compute_at(s[output], o)
    s[columns].set_scope("local")
    row, j, n, t, lane = columns.op.axis
    s[columns].reorder(n, t, j, row, lane)
    s[columns].vectorize(lane)
    return [(output, q), (columns, row)]


def _schedule_sums(s: Schedule, sums: Tensor, cfg: Config, lanes: int, at: _Place) -> list[_Place]:
    """Multiply matrices, tiles by channels; a register tile is two vectors of channels wide."""
    tile = s.cache_write(sums, "local")
    s[sums].compute_at(s[at[0]], at[1])
    i, j, n, t, o = sums.op.axis
    s[sums].align_extent(t, cfg["rows"])
    t, row = s[sums].split(t, cfg["rows"])
    o, column = s[sums].split(o, min(2 * lanes, PANEL))
    vector, lane = s[sums].split(column, lanes)
    s[sums].reorder(n, i, j, o, t, row, vector, lane)
    s[sums].vectorize(lane)
    unrolled = [(sums, row), (sums, vector)]

    s[tile].compute_at(s[sums], t)
    i, j, n, t, o = tile.op.axis
    (k,) = tile.op.reduce_axis
    k, step = s[tile].split(k, cfg["unroll"])
    vector, lane = s[tile].split(o, lanes)
    s[tile].reorder(i, j, n, k, step, t, vector, lane)
    s[tile].vectorize(lane)
    return [*unrolled, (tile, step), (tile, t), (tile, vector)]


def _schedule_input(
    s: Schedule, transformed: Tensor, rows: Tensor, lanes: int, at: _Place
) -> list[_Place]:
    """Transform tiles in vectors of input channels."""
    s[transformed].compute_at(s[at[0]], at[1])
    i, j, n, t, c = transformed.op.axis
    c, lane = s[transformed].split(c, lanes)
    s[transformed].reorder(n, c, t, i, j, lane)
    s[transformed].vectorize(lane)
    s[rows].compute_at(s[transformed], t)
    s[rows].set_scope("local")
    row, n, t, b, lane = rows.op.axis
    s[rows].reorder(n, t, b, row, lane)
    s[rows].vectorize(lane)
    return [(transformed, j), (rows, row)]


def _schedule_image(s: Schedule, image: Tensor, lanes: int, at: _Place) -> list[_Place]:
    """Copy the image to channels side by side: columns that are read together are transposed."""
    s[image].compute_at(s[at[0]], at[1])
    _, y, x, lane = image.op.axis
    x, column = s[image].split(x, lanes)
    s[image].vectorize(lane)
    s[image].pragma(y, "loop_partition_hint")
    s[image].pragma(x, "loop_partition_hint")
    return [(image, column)]


WINOGRAD = Operator(
    NAME, workload, define, reference, space, default_config, schedule, prepack, packing
)
