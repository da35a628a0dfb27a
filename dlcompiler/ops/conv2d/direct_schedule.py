"""The CPU schedule of the direct convolution: space, default config and schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.ops.conv2d.fours import goes_by_fours
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.nest import (
    parallelize_outermost,
    place_copy,
    split_channels,
    split_reduction,
    sums_and_operands,
)
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.conv2d.tiles import (
    COPY_CYCLES,
    LINE_CYCLES,
    PAGE_LINE_CYCLES,
    TILE_CYCLES,
    Machine,
    far_cycles,
    pieces,
    shares_evenly,
)
from dlcompiler.ops.fours import schedule_dots, schedule_offsets, tile_fits
from dlcompiler.ops.prefetching import prefetch_weights
from dlcompiler.ops.sharing import is_worth_sharing, product_cycles
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob
from dlcompiler.space.knob import divisors
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

MAX_BLOCK_ROWS = 32
EXTRA_ROWS = MAX_BLOCK_ROWS - 1
"""Additional rows of the stages beyond the last row of the result."""

_TILE_ROWS = (1, 2, 3, 4)
_TILE_COLUMNS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14)
_UNROLLED = (1, 2, 4)
_MOST_ACCUMULATORS = 28
_LINE_BYTES = 64
_CUT_SHORT = 2.5
"""How much longer a block takes that ends within a vector, such as 24 in vectors of 16; [1]."""
_AHEAD_BYTES = 4096
"""Weights between those that are read and those that are prefetched; measured [byte]."""
_INTEGER_STEP = 2
"""Steps of float32 in the time of one of int32, which multiplies half as fast; [1]."""


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule` for a workload.

    ===============  ===========================================================================
    ``tile_rows``    rows of the register tile
    ``tile_columns`` its columns; its channels are the block of the packed weights
    ``unroll_c``     input channels in one iteration of the reduction, where the kernel is 1x1
    ``split_c``      input channels whose weights are used for all tiles of a block of rows before
                     the next; 0 for all
    ``block_rows``   rows that are computed for one block of output channels before the next
    ``order``        outermost loop: ``rows``, whose blocks are padded one by one, or
                     ``channels``, whose weights are then read once
    ``parallel``     run the outermost loop on several cores
    ===============  ===========================================================================
    """
    shape = shape_of(workload)
    vectors = max(workload["block"] // target.lanes(shape.sums_dtype), 1)
    most = max(_MOST_ACCUMULATORS, vectors)  # the smallest tile is always allowed
    channels = max(_steps(shape, workload["block"]), 1)
    taps = shape.rows.kernel * shape.columns.kernel
    is_unrolled = taps == 1 and not goes_by_fours(shape, workload["block"])
    height = max(shape.rows.out, 1)
    knobs = [
        Knob("tile_rows", tuple(r for r in _TILE_ROWS if r <= height)),
        Knob("tile_columns", tuple(c for c in _TILE_COLUMNS if c <= max(shape.columns.out, 1))),
        Knob("unroll_c", tuple(u for u in _UNROLLED if is_unrolled and channels % u == 0) or (1,)),
        Knob("split_c", (0, *(d for d in divisors(channels) if d < channels and d * taps >= 8))),
        Knob("block_rows", tuple(range(1, min(height, MAX_BLOCK_ROWS) + 1))),
        Knob("order", ("rows", "channels"), is_by_cores=True),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs, [
        Filter(
            f"at most {most} accumulators",
            lambda v: v["tile_rows"] * v["tile_columns"] * vectors <= most,
        ),
        Filter("a tile is no taller than its block", lambda v: v["tile_rows"] <= v["block_rows"]),
        Filter(
            "whole steps of the reduction",
            lambda v: not v["split_c"] or v["split_c"] % v["unroll_c"] == 0,
        ),
    ])  # fmt: skip


# -- the default --------------------------------------------------------------------------------


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    The tile needs the fewest cycles (`tiles.Machine`) for a block of rows, with the smaller tiles
    at its edges. A block of rows of the image fits half of the L2 cache, and a block of weights,
    for a part of the input channels, half of L1, since each tile reads all of them. For a 1x1
    kernel the weights fit L1 together with the rows of the image.
    """
    shape = shape_of(workload)
    choices = space(workload, target)
    values: dict[str, list[Any]] = {knob.name: list(knob.values) for knob in choices.knobs}
    block_rows = _block_rows(shape, workload["block"], target)
    tile = _best_tile(shape, workload["block"], block_rows, target, values)
    is_parallel = is_worth_sharing(product_cycles(shape.flops, shape.sums_dtype, target), target)
    row_blocks = shape.n * -(-shape.rows.out // block_rows)
    by_channels = is_parallel and not shares_evenly(row_blocks, target.cores)
    split_c = _split_c(shape, workload["block"], target, values["split_c"])
    return choices.config(
        tile_rows=tile[0],
        tile_columns=tile[1],
        unroll_c=max(steps for steps in values["unroll_c"] if split_c % steps == 0),
        split_c=split_c,
        block_rows=block_rows,
        order="channels" if by_channels else "rows",
        parallel=is_parallel,
    )


def _steps(shape: Shape, block: int) -> int:
    """Return the steps of the reduction over the channels of a group.

    A step of int8 takes four channels: as many bytes as the channel of another dtype has, once it
    is converted to that of the sums.
    """
    return -(-shape.weight[1] // 4) if goes_by_fours(shape, block) else shape.weight[1]


def _block_rows(shape: Shape, block: int, target: Target) -> int:
    """Return a number of result rows whose part of the image fits half of the L2 cache."""
    height = max(shape.rows.out, 1)
    width = max(shape.columns.span, 1)
    item = dtypes.bytes_of(shape.sums_dtype)
    room = target.cache_bytes(1) // 2
    channels = shape.groups * _steps(shape, block)
    rows_of_image = max(room // max(channels * width * item, 1), shape.rows.reach)
    fitting = (rows_of_image - shape.rows.reach) // shape.rows.stride + 1
    most = min(max(fitting, 1), height, MAX_BLOCK_ROWS)
    if shape.is_copied:
        return -(-height // -(-height // most))
    # Without a padded copy, a shorter last block would need a comparison at each load: the number
    # of rows must divide the height.
    dividing = divisors(height, MAX_BLOCK_ROWS)
    near = [rows for rows in dividing if 2 * rows >= most]
    return min(near, key=lambda rows: abs(rows - most)) if near else max(dividing)


def _split_c(shape: Shape, block: int, target: Target, values: Sequence[Any]) -> int:
    item = dtypes.bytes_of(shape.sums_dtype)
    taps = shape.rows.kernel * shape.columns.kernel
    of_channel, room = taps * block * item, target.cache_bytes(0) // 2
    if taps == 1:  # each step also reads another row of the image, which must come from L1
        of_channel += max(shape.columns.size * item, _LINE_BYTES)
        room = target.cache_bytes(0)
    if _steps(shape, block) * of_channel <= room:
        return 0
    parts = [value for value in values if value]
    fitting = [value for value in parts if value * of_channel <= room]
    return max(fitting) if fitting else min(parts, default=0)


def _best_tile(
    shape: Shape, block: int, block_rows: int, target: Target, values: Mapping[str, list[Any]]
) -> tuple[int, int]:
    """Return the rows and columns of the register tile with the lowest modelled cost."""
    machine, vectors = Machine.of(target), -(-block // target.lanes(shape.sums_dtype))
    width = max(shape.columns.out, 1)

    def fits(elements: int) -> bool:
        if goes_by_fours(shape, block):
            return tile_fits(elements, vectors, target)
        return machine.fits(elements, vectors)

    def is_simple(rows: int, columns: int) -> bool:
        # With remainders in both directions, loads from the image itself need comparisons.
        return shape.is_copied or rows == 1 or not (block_rows % rows and width % columns)

    tiles = [
        (rows, columns)
        for rows in values["tile_rows"]
        for columns in values["tile_columns"]
        if rows <= block_rows and fits(rows * columns) and is_simple(rows, columns)
    ] or [(1, 1)]

    def cost(tile: tuple[int, int]) -> tuple[float, int, int]:
        return _step_cycles(shape, block, block_rows, tile, target), tile[0], -tile[1]

    return min(tiles, key=cost)


def _step_cycles(
    shape: Shape, block: int, block_rows: int, tile: tuple[int, int], target: Target
) -> float:
    """Return the time of one reduction step for a block of rows and channels [cycle]."""
    machine, vectors = Machine.of(target), -(-block // target.lanes(shape.sums_dtype))

    def cycles(rows: int, columns: int) -> float:
        far = _far_cycles(shape, block, rows * columns, target)
        return max(machine.cycles(rows * columns, vectors), far)

    return sum(
        count * other * cycles(rows, columns)
        for rows, count in pieces(block_rows, tile[0])
        for columns, other in pieces(max(shape.columns.out, 1), tile[1])
    )


def _far_cycles(shape: Shape, block: int, pixels: int, target: Target) -> float:
    """Return the time to load what a reduction step reads from beyond the nearest cache [cycle]."""
    near = target.cache_bytes(0) // 2
    item, taps = dtypes.bytes_of(shape.sums_dtype), shape.rows.kernel * shape.columns.kernel
    weights = block * item
    cycles = 0.0
    if weights * taps * _steps(shape, block) > near:
        cycles += LINE_CYCLES * weights
    if math.prod(shape.image[1:]) * item > near:
        cycles += PAGE_LINE_CYCLES * pixels * shape.columns.stride * item / taps
    return cycles


def estimate(workload: Workload, target: Target) -> float:
    """Estimate the time of the default config on one core [cycle]."""
    shape, block = shape_of(workload), workload["block"]
    cfg = default_config(workload, target)
    tile = int(cfg["tile_rows"]), int(cfg["tile_columns"])
    rows = int(cfg["block_rows"])
    step = _step_cycles(shape, block, rows, tile, target)
    if block % min(target.lanes(shape.sums_dtype), block):
        step *= _CUT_SHORT
    per_group = -(-(shape.o // shape.groups) // block)
    row_blocks = -(-shape.rows.out // rows)
    blocks = shape.n * shape.groups * per_group * row_blocks
    tiles = -(-rows // tile[0]) * -(-shape.columns.out // tile[1])
    image = math.prod(shape.image) if shape.is_copied else 0
    copies: float = COPY_CYCLES * (image + 2 * math.prod(shape.result))
    # All that a block of channels reads and sums up, where it does not stay in the own caches.
    item, height = dtypes.bytes_of(shape.sums_dtype), (rows - 1) * shape.rows.stride
    read = shape.weight[1] * (height + shape.rows.reach) * shape.columns.span * item
    summed = block * rows * shape.columns.out * item
    copies += blocks * (far_cycles(read, target) / 2 + far_cycles(summed, target))
    terms = _steps(shape, block) * shape.rows.kernel * shape.columns.kernel
    if shape.dtype == "int8" and not goes_by_fours(shape, block):
        terms *= _INTEGER_STEP
    return float(blocks * (step * terms + tiles * TILE_CYCLES) + copies)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a direct convolution on a CPU.

    For each block of rows, and in it for each block of output channels, the sums are computed tile
    by tile in registers, and stored in a small buffer. Then the epilogue copies them to the result.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The result.
    cfg : Config
        A config of `space`.
    target : Target
        A CPU.
    """
    (result,) = outs
    sums, image, weight = sums_and_operands(result)
    lanes = target.lanes(sums.dtype)
    local = s.cache_write(sums, "local")
    s[sums].compute_inline()
    rows, inner = _schedule_result(s, result, weight, cfg, lanes)
    s[local].compute_at(s[result], inner)
    offsets = next((t for t in result.op.input_tensors if t.name == "conv2d.offsets"), None)
    _schedule_sums(s, local, weight, cfg, lanes, target)
    if offsets is None:
        place_copy(s, image, result, rows, cfg, lanes=lanes)
        return
    schedule_offsets(s, offsets, weight.static_shape[4], lanes, target)
    column = image.op.axis[-3 if _tagged(result)[0].name == "NHWC" else -2]
    _, neighbour = s[image].split(column, 4)
    s[image].unroll(neighbour)
    place_copy(s, image, result, rows, cfg, lanes=4)


def _schedule_result(
    s: Schedule, result: Tensor, weight: Tensor, cfg: Config, lanes: int
) -> tuple[Axis, Axis]:
    """Split the result into blocks.

    Returns
    -------
    tuple of Axis
        The loop over blocks of rows (fused with that over images where it is parallel), and the
        loop at which sums are computed.
    """
    stage, (layout, groups) = s[result], _tagged(result)
    n, *_, y, x = _axes(result, layout)
    blocks, channels = _split_channels(s, result, layout, groups, weight.static_shape[4])
    rows, row = stage.split(y, cfg["block_rows"])
    is_by_rows = cfg["order"] == "rows"
    outermost = [n, rows, *blocks] if is_by_rows else [n, *blocks, rows]
    if layout.name == "NCHW":
        vectors, vector = stage.split(channels[0], lanes)
        columns, column = stage.split(x, lanes)
        stage.reorder(*outermost, row, vectors, columns, vector, column)
        stage.unroll(vector)
        stage.vectorize(column)
    else:
        stage.reorder(*outermost, row, x, *channels)
        stage.vectorize(channels[-1])
    return parallelize_outermost(stage, n, [rows], blocks, cfg), outermost[-1]


def _tagged(result: Tensor) -> tuple[Layout, int]:
    """Return the layout and the number of groups, which the definition stores in the tag."""
    assert isinstance(result.op, ComputeOp)
    _, layout, groups = result.op.tag.split(":")
    return Layout(layout), int(groups)


def _axes(result: Tensor, layout: Layout) -> tuple[Axis, ...]:
    """Return the axes of the result: image, channels (one or two), row and column."""
    axes = result.op.axis
    if layout.name == "NHWC":
        n, y, x, c = axes
        return n, c, y, x
    n, c, y, x, *rest = axes
    return n, c, *rest, y, x


def _split_channels(
    s: Schedule, result: Tensor, layout: Layout, groups: int, block: int
) -> tuple[list[Axis], list[Axis]]:
    """Split the channels; return the loops over groups and blocks, and those inside a block."""
    _, channel, *rest, _, _ = _axes(result, layout)
    together = layout.channels or 1
    extent = layout.element(*result.static_shape)[1] // together
    outer, inside = split_channels(s[result], channel, extent, groups, block // together)
    return outer, [inside, *rest]


def _schedule_sums(
    s: Schedule, sums: Tensor, weight: Tensor, cfg: Config, lanes: int, target: Target
) -> None:
    """Order the loops of the register tile: the reduction outside, pixels and vectors inside."""
    stage = s[sums]
    n, b, y, x, v = stage.op.axis
    c, p, q, *four = stage.op.reduce_axis
    y, row = stage.split(y, cfg["tile_rows"])
    x, column = stage.split(x, cfg["tile_columns"])
    vectors, vector = stage.split(v, lanes)
    parts = []
    if cfg["split_c"]:
        part, c = stage.split(c, cfg["split_c"])
        parts = [part]
    steps = split_reduction(stage, c, (p, q), cfg["unroll_c"])
    stage.reorder(n, b, *parts, y, x, *steps, row, column, vectors, *four, vector)
    if four:
        schedule_dots(stage, vector, steps, [row, column, vectors], target)
    else:
        stage.vectorize(vector)
        taps = p.extent * q.extent
        channels = max(_UNROLLED) if taps == 1 else 1  # of an iteration, in the default config
        of_step = channels * taps * weight.static_shape[4] * dtypes.bytes_of(weight.dtype)
        prefetch_weights(stage, weight, steps[0], target, max(_AHEAD_BYTES // of_step, 1))
        for tap in (p, q):
            if tap.extent == 2:  # LLVM spills registers where it makes a condition of such a loop
                stage.unroll(tap)
    for loop in (row, column, vectors):
        stage.unroll(loop)
