"""The CPU schedule of the convolution by minimal filtering: space, default config, schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.conv2d.tiles import Machine, far_cycles
from dlcompiler.ops.conv2d.winograd_transforms import TAPS
from dlcompiler.ops.conv2d.winograd_weights import PANEL
from dlcompiler.ops.gemm.predict import step_cycles
from dlcompiler.ops.prefetching import prefetch_weights
from dlcompiler.ops.sharing import product_cycles
from dlcompiler.ops.stages import Loop, stages_by_role, unroll
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, divisors, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

MOST_ROWS = 14
"""Tiles in the largest register tile of the products: one vector wide, with 32 registers."""
_UNROLLED = (1, 2, 4)
_BLOCK_BYTES = 2 * 1024 * 1024
"""Most memory for the transformed tiles of a block, of images and of results; more if the weights
take more: each block loads them anew [byte]."""
_MOVED_BYTES = 10
"""Transformed values that a core loads in a cycle if another one stored them [byte]; this and the
next measured on an Emerald Rapids."""
_LEAST_SAVED = 4e4
"""What two loops on several cores must save to be worth starting the threads [cycle]."""
_LEAST_CYCLES = 4.4
"""Least time of a step of a register tile: a nearly hidden latency of a multiply-add [cycle]."""
_AHEAD_BYTES = 8192
"""Weights between those that are read and those that are prefetched; measured [byte]."""
_TRANSFORM_CYCLES = {2: 9, 4: 18}
"""Time to transform a vector of a position, by the size of a tile [cycle]; this and the next
measured on a Sapphire Rapids with AVX-512."""
_WEIGHT_BYTES = 6
"""Weights that are loaded in a cycle [byte]."""


def tiles_of(shape: Shape, tile: int) -> tuple[int, int]:
    """Return the numbers of tiles along the height and the width, at least one."""
    return max(-(-shape.rows.out // tile), 1), max(-(-shape.columns.out // tile), 1)


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ============  ==============================================================================
    ``rows``      tiles in the register tile of the products
    ``unroll``    channels in one iteration of their loop
    ``block``     rows of tiles for which all stages run at a time; 0: all
    ``group``     panels of output channels whose sums are kept at a time; 0: all
    ``parallel``  run input channels, then groups of panels on several cores
    ============  ==============================================================================
    """
    shape = shapes.shape_of(workload)
    down, _ = tiles_of(shape, workload["tile"])
    knobs = [
        Knob("rows", tuple(range(1, MOST_ROWS + 1))),
        Knob("unroll", tuple(u for u in _UNROLLED if max(shape.c, 1) % u == 0)),
        Knob("block", (0, *(rows for rows in divisors(down, 8) if rows < down))),
        Knob("group", (0, *(n for n in (1, 2, 4, 8) if n < -(-shape.o // PANEL)))),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    Of the register tiles that fit, the one with the fewest `_step_cycles` is taken. The image is
    split into blocks if its transformed tiles would not fit the nearer caches.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    down, across = tiles_of(shape, tile)
    choices = space(workload, target)
    values = {knob.name: [int(value) for value in knob.values] for knob in choices.knobs}
    position_bytes = (tile + TAPS - 1) ** 2 * dtypes.bytes_of(shape.dtype)
    row_bytes = position_bytes * across * (shape.c + shape.o)
    room = max(_BLOCK_BYTES, position_bytes * shape.c * shape.o)
    fitting = [rows for rows in values["block"] if rows and rows * row_bytes <= room]
    block = 0 if down * row_bytes <= room else max(fitting, default=1)
    count = (block or down) * across
    vectors = _tile_vectors(shape, target)
    rows = min(
        (r for r in values["rows"] if r == 1 or Machine.of(target).fits(r, vectors)),
        key=lambda r: (-(-count // r) * _step_cycles(r, vectors), -r),
    )
    return choices.config(
        rows=rows,
        unroll=max(values["unroll"]),
        block=block if 1 in values["block"] else 0,
        group=values["group"][min(1, len(values["group"]) - 1)],
        parallel=_saved_by_cores(shape, tile, target) > _LEAST_SAVED,
    )


def _saved_by_cores(shape: Shape, tile: int, target: Target) -> float:
    """Estimate what several cores save: a part of the products, less what they read anew [cycle].

    The image is transformed by channels, and the products are shared by channels of the result.
    """
    down, across = tiles_of(shape, tile)
    elements = shape.n * down * across * (tile + TAPS - 1) ** 2
    products = product_cycles(2 * elements * shape.c * shape.o, shape.dtype, target)
    moved = elements * (shape.c + shape.o) * dtypes.bytes_of(shape.dtype)
    return products * (1 - 1 / target.cores) - moved / _MOVED_BYTES


def _tile_vectors(shape: Shape, target: Target) -> int:
    """Return the vectors of output channels in a register tile."""
    lanes = target.lanes(shape.dtype)
    return max(min(2 * lanes, PANEL) // lanes, 1)


def _step_cycles(rows: int, vectors: int) -> float:
    """Return the time of a step of the products for a register tile [cycle]."""
    return max(step_cycles(rows, vectors), _LEAST_CYCLES)


def estimate(workload: Workload, target: Target) -> float:
    """Estimate the time of the default config on one core [cycle].

    Notes
    -----
    A transform takes `_TRANSFORM_CYCLES` for each position of a tile and vector of channels. The
    weights come from the last cache or memory, during other work.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    cfg = default_config(workload, target)
    down, across = tiles_of(shape, tile)
    positions = (tile + TAPS - 1) ** 2
    lanes = min(target.lanes(shape.dtype), PANEL)
    rows, block_rows = int(cfg["rows"]), int(cfg["block"]) or down
    cycles = _step_cycles(rows, _tile_vectors(shape, target))
    steps = down // block_rows * -(-block_rows * across // rows) * cycles
    beside = -(-shape.o // PANEL) * -(-PANEL // (2 * lanes))
    products = shape.n * positions * steps * shape.c * beside
    elements = shape.n * down * across * positions * (shape.c + shape.o)
    transformed = _TRANSFORM_CYCLES[tile] * elements / lanes
    item = dtypes.bytes_of(shape.dtype)
    weights = positions * shape.c * shape.o * item / _WEIGHT_BYTES
    kept = shape.n * block_rows * across * positions * item
    far = sum(far_cycles(kept * channels, target) for channels in (shape.c, shape.o))
    return float(products + transformed + weights + far * (down // block_rows))


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a convolution by minimal filtering on a CPU.

    The transforms work on vectors of channels, which are full for any number of tiles. Images are
    transposed in registers, to a layout with channels innermost and back.

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
    lanes = min(target.lanes(result.dtype), PANEL)
    stages = stages_by_role(s)
    tile = _extent(stages["columns"], 0)
    block, group, panel, unrolled = _schedule_result(s, result, cfg, lanes, tile)
    unrolled += _schedule_output(s, stages["output"], stages["columns"], lanes, (result, panel))
    at = result, group if cfg["group"] else block
    unrolled += _schedule_sums(s, stages["sums"], cfg, lanes, at, target)
    unrolled += _schedule_input(s, stages["input"], stages["rows"], lanes, (result, block))
    channels = s[stages["input"]].leaf_iter_vars[1]
    unrolled += _schedule_image(s, stages["image"], lanes, (stages["input"], channels))
    if cfg["parallel"]:
        s[result].parallel(group)
        s[stages["input"]].parallel(channels)
    unroll(s, unrolled)


def _extent(of: Tensor, dimension: int) -> int:
    extent = of.shape[dimension]
    assert isinstance(extent, int)
    return extent


def _schedule_result(
    s: Schedule, result: Tensor, cfg: Config, lanes: int, tile: int
) -> tuple[Any, Any, Any, list[Loop]]:
    """Split the result; return the loops over blocks of rows, groups of panels, and panels."""
    n, o, y, x = result.op.axis
    order, block = [], n
    if cfg["block"]:
        block, y = s[result].split(y, cfg["block"] * tile)
        order.append(block)
    panel, o = s[result].split(o, PANEL)
    group = panel
    if cfg["group"] > 1:
        group, panel = s[result].split(panel, cfg["group"])
        order.append(group)
    vectors, o = s[result].split(o, lanes)
    x, lane = s[result].split(x, lanes)
    s[result].reorder(*order, panel, vectors, y, x, o, lane)
    s[result].vectorize(lane)
    return block, group, panel, [(result, o)]


def _schedule_output(
    s: Schedule, output: Tensor, columns: Tensor, lanes: int, at: Loop
) -> list[Loop]:
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


def _schedule_sums(
    s: Schedule, sums: Tensor, cfg: Config, lanes: int, at: Loop, target: Target
) -> list[Loop]:
    """Schedule the matrix products; a register tile is two vectors of output channels wide."""
    tile = s.cache_write(sums, "local")
    s[sums].compute_at(s[at[0]], at[1])
    i, j, n, t, o = sums.op.axis
    s[sums].align_extent(t, cfg["rows"])
    t, row = s[sums].split(t, cfg["rows"])
    o, column = s[sums].split(o, min(2 * lanes, PANEL))
    vector, lane = s[sums].split(column, lanes)
    s[sums].reorder(n, i, j, o, t, row, vector, lane)
    s[sums].vectorize(lane)
    if cfg["parallel"] and not cfg["group"]:
        s[sums].parallel(s[sums].fuse(i, j))
    unrolled = [(sums, row), (sums, vector)]

    s[tile].compute_at(s[sums], t)
    i, j, n, t, o = tile.op.axis
    (k,) = tile.op.reduce_axis
    k, step = s[tile].split(k, cfg["unroll"])
    weight = next(t for t in tile.op.input_tensors if t.name == "weight")
    of_step = PANEL * max(_UNROLLED) * dtypes.bytes_of(weight.dtype)  # in the default config
    prefetch_weights(s[tile], weight, k, target, _AHEAD_BYTES // of_step)
    vector, lane = s[tile].split(o, lanes)
    s[tile].reorder(i, j, n, k, step, t, vector, lane)
    s[tile].vectorize(lane)
    return [*unrolled, (tile, step), (tile, t), (tile, vector)]


def _schedule_input(
    s: Schedule, transformed: Tensor, rows: Tensor, lanes: int, at: Loop
) -> list[Loop]:
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


def _schedule_image(s: Schedule, image: Tensor, lanes: int, at: Loop) -> list[Loop]:
    """Copy the image so that channels are contiguous; columns read together are transposed."""
    s[image].compute_at(s[at[0]], at[1])
    _, y, x, lane = image.op.axis
    x, column = s[image].split(x, lanes)
    s[image].vectorize(lane)
    s[image].pragma(y, "loop_partition_hint")
    s[image].pragma(x, "loop_partition_hint")
    return [(image, column)]
