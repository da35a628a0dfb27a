"""The CPU schedule of the convolution as a matrix product: space, default config, schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis
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
    TILE_CYCLES,
    Machine,
    far_cycles,
    shares_evenly,
)
from dlcompiler.ops.gemm.default import FROM_L2
from dlcompiler.ops.sharing import is_worth_sharing, product_cycles
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob
from dlcompiler.space.knob import divisors
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, PlaceholderOp, Tensor

_TILE_VECTORS = (1, 2, 3, 4)
_MOST_ACCUMULATORS = 28
_NEARLY = 1.03
_PAGE_BYTES = 4096
"""Size of a page of memory; each channel of a larger image lies on pages of its own [byte]."""
_MOST_TILES = 32
"""Most tiles in a block of a result that is a single row."""
_EXTRA_PIXELS = 63
"""Additional pixels of the stages beyond the last one: the widest tile has four vectors of 16."""


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule` for a workload.

    ================  ==========================================================================
    ``tile_pixels``   pixels of the register tile: 1 to 4 vectors; its channels are the block of
                      the packed weights
    ``unroll_c``      input channels in one iteration of the reduction, where the kernel is 1x1
    ``block_rows``    rows of the result whose columns are copied together
    ``block_tiles``   tiles whose columns are copied together, where the result is a single row; 0:
                      all
    ``order``         outermost loop: blocks of ``rows`` (tiles of pixels, where no columns are
                      copied) or of ``channels``
    ``parallel``      run the outermost loop on several cores
    ================  ==========================================================================
    """
    shape = shape_of(workload)
    lanes = target.lanes(shape.dtype)
    height, width = max(shape.rows.out, 1), max(shape.columns.out, 1)
    channels = max(shape.weight[1], 1)
    is_point = shape.rows.kernel == shape.columns.kernel == 1
    block = workload["block"]
    knobs = [
        Knob("tile_pixels", tuple(lanes * vectors for vectors in _TILE_VECTORS)),
        Knob("unroll_c", tuple(u for u in (1, 2, 4) if is_point and channels % u == 0) or (1,)),
        Knob("block_rows", divisors(height)),
        *([Knob("block_tiles", tuple(range(_MOST_TILES + 1)))] if _is_signal(shape) else []),
        Knob("order", ("rows", "channels"), is_by_cores=True),
        parallel_knob(target.cores),
    ]
    filters = [
        Filter(
            f"at most {_MOST_ACCUMULATORS} accumulators",
            lambda v: v["tile_pixels"] // lanes * block <= _MOST_ACCUMULATORS,
        ),
        Filter(
            "blocks are whole tiles, or all rows",
            lambda v: v["block_rows"] == height or v["block_rows"] * width % v["tile_pixels"] == 0,
        ),
    ]
    if _is_signal(shape):
        widest = width + extra_pixels(shape)
        filters.append(Filter(
            "blocks of a row do not go beyond the stages",
            lambda v: _in_blocks(width, v["block_tiles"] * v["tile_pixels"]) <= widest,
        ))  # fmt: skip
    return Space(workload, knobs, filters)


def extra_pixels(shape: Shape) -> int:
    """Return how many pixels the stages have beyond the last one, so that all tiles are whole."""
    return max(_EXTRA_PIXELS, shape.columns.out // 8 if _is_signal(shape) else 0)


def _is_signal(shape: Shape) -> bool:
    """Tell whether the result is a single row, as along time, whose im2col columns are copied."""
    return shape.rows.out == 1 and not shape.reads_in_place


def _tiles_of(cfg: Config) -> int:
    """Return the knob ``block_tiles``; 0, which is one block, where the space has none."""
    return int(cfg["block_tiles"]) if "block_tiles" in cfg.values else 0


def _in_blocks(width: int, block: int) -> int:
    """Round a width up to whole blocks [pixel]; with 0 the whole row is one block."""
    return -(-width // block) * block if block else width


# -- the default --------------------------------------------------------------------------------


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    As in `direct_schedule.default_config`. The columns of a block of rows, or of a block of tiles
    of a single row, fit half of the L2 cache, or the block is the smallest one. If no columns are
    copied, all rows are one block.
    """
    shape = shape_of(workload)
    choices = space(workload, target)
    values: dict[str, list[Any]] = {knob.name: list(knob.values) for knob in choices.knobs}
    machine, lanes = Machine.of(target), target.lanes(shape.dtype)
    block = workload["block"]
    tiles = [t for t in values["tile_pixels"] if machine.fits(block, t // lanes)]
    tiles = tiles or values["tile_pixels"][:1]
    tile, rows = _best_tile(shape, block, tiles, values["block_rows"], target)
    is_parallel = is_worth_sharing(product_cycles(shape.flops, shape.dtype, target), target)
    of_row = {"block_tiles": _block_tiles(shape, tile, target)} if _is_signal(shape) else {}
    pieces = _pieces(shape, tile, rows, of_row.get("block_tiles", 0))
    by_channels = is_parallel and not shares_evenly(shape.n * pieces, target.cores)
    return choices.config(
        tile_pixels=tile,
        unroll_c=_unrolled(shape, values["unroll_c"]),
        block_rows=rows,
        **of_row,
        order="channels" if by_channels else "rows",
        parallel=is_parallel,
    )


def _pieces(shape: Shape, tile: int, rows: int, tiles: int) -> int:
    """Return how many blocks an image has, which the cores may share; see `space`."""
    if shape.reads_in_place:
        return -(-shape.rows.out * shape.columns.out // tile)
    return -(-shape.columns.out // (tiles * tile)) if tiles else -(-shape.rows.out // rows)


def _block_tiles(shape: Shape, tile: int, target: Target) -> int:
    """Return the tiles whose columns together fit half of the L2 cache; 0 if those of a row do.

    Of the numbers above half of the most, it is the one that wastes the fewest pixels.
    """
    width = shape.columns.out
    fitting = max(target.cache_bytes(1) // 2 // _column_bytes(shape, tile), 1)
    if fitting * tile >= width:
        return 0
    most = min(fitting, _MOST_TILES)
    counts = range(most, most // 2, -1)
    allowed = [n for n in counts if _in_blocks(width, n * tile) <= width + extra_pixels(shape)]
    return min(allowed, key=lambda n: _in_blocks(width, n * tile), default=0)


def _column_bytes(shape: Shape, pixels: int) -> int:
    """Return the size of the im2col columns of some pixels, at least 1 [byte]."""
    terms = shape.c * shape.rows.kernel * shape.columns.kernel
    return max(terms * pixels * dtypes.bytes_of(shape.dtype), 1)


def _unrolled(shape: Shape, choices: Sequence[int]) -> int:
    """Return how many input channels an iteration goes through.

    In an image that is read in place and whose channels are larger than a page, four are up to
    15 % slower than two on an Emerald Rapids; elsewhere they are up to 13 % faster.
    """
    plane = shape.rows.size * shape.columns.size * dtypes.bytes_of(shape.dtype)
    most = 2 if shape.reads_in_place and plane > _PAGE_BYTES else max(choices)
    return max(steps for steps in choices if steps <= most)


def _best_tile(
    shape: Shape, block: int, tiles: Sequence[int], heights: Sequence[int], target: Target
) -> tuple[int, int]:
    """Return the pixels of the register tile, and the rows of a block.

    Of the tiles that need nearly as few cycles as the best, it is the one with the fewest loads for
    each multiply-add, as in `dlcompiler.ops.gemm.default`; those whose blocks fit are preferred.
    """
    lanes = target.lanes(shape.dtype)
    cycles = {tile: _step_cycles(shape, block, tile, target) for tile in tiles}
    good = [tile for tile in tiles if cycles[tile] <= _NEARLY * min(cycles.values())]
    found = [(tile, *_block_rows(shape, tile, target, heights)) for tile in good]

    def cost(choice: tuple[int, int, bool]) -> tuple[bool, float]:
        tile, _, fits = choice
        return not fits, (block + FROM_L2 * tile // lanes) / (block * tile // lanes)

    tile, rows, _ = min(found, key=cost)
    return tile, rows


def _step_cycles(shape: Shape, block: int, tile: int, target: Target) -> float:
    """Return the time of one reduction step for all pixels and one block of channels [cycle]."""
    machine, tile_bytes = Machine.of(target), tile * dtypes.bytes_of(shape.dtype)
    cycles = machine.cycles(block, tile // target.lanes(shape.dtype))
    if shape.terms * tile_bytes > target.cache_bytes(0) // 2:
        cycles = max(cycles, LINE_CYCLES * tile_bytes)
    return -(-shape.rows.out * shape.columns.out // tile) * cycles


def estimate(workload: Workload, target: Target) -> float:
    """Estimate the time of the default config on one core [cycle]."""
    shape, block = shape_of(workload), int(workload["block"])
    cfg = default_config(workload, target)
    tile, rows = int(cfg["tile_pixels"]), int(cfg["block_rows"])
    blocks = shape.n * shape.groups * -(-(shape.o // shape.groups) // block)
    pixels = shape.rows.out * shape.columns.out
    step = _step_cycles(shape, block, tile, target)
    steps = blocks * (step * shape.terms + -(-pixels // tile) * TILE_CYCLES)
    if shape.reads_in_place:
        return steps
    by_element = COPY_CYCLES * (2 if shape.columns.stride == 1 else 4)
    elements = shape.n * shape.groups * shape.terms * pixels
    pieces = max(_pieces(shape, tile, rows, _tiles_of(cfg)), 1)
    far = far_cycles(elements / pieces * dtypes.bytes_of(shape.dtype), target)
    return steps + by_element * elements + far * pieces


def _block_rows(shape: Shape, tile: int, target: Target, values: Sequence[int]) -> tuple[int, bool]:
    """Return the rows whose columns are copied together, and whether these fit half of L2."""
    width = max(shape.columns.out, 1)
    height = max(values)
    if shape.reads_in_place:
        return height, True
    room = target.cache_bytes(1) // 2
    size = _column_bytes(shape, width)
    whole = [rows for rows in values if rows == height or rows * width % tile == 0]
    fitting = [rows for rows in whole if rows * size <= room]
    return (max(fitting), True) if fitting else (min(whole), False)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a convolution as a matrix product on a CPU.

    The sums of a tile stay in registers over the whole reduction; the epilogue stores them.

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
    sums, columns, weight = sums_and_operands(result)
    lanes = target.lanes(result.dtype)
    local = s.cache_write(sums, "local")
    s[sums].compute_inline()
    is_copied = not isinstance(columns.op, PlaceholderOp)
    blocks, inner = _schedule_result(
        s, result, weight.static_shape[4], cfg, lanes, is_copied=is_copied
    )
    s[local].compute_at(s[result], inner)
    _schedule_sums(s, local, cfg, lanes)
    width = max(result.static_shape[3], 1)
    place_copy(s, columns, result, blocks, cfg, lanes=lanes, row=width)


def _schedule_result(
    s: Schedule, result: Tensor, block: int, cfg: Config, lanes: int, *, is_copied: bool
) -> tuple[Axis, Axis]:
    """Split the result into tiles.

    Returns
    -------
    tuple of Axis
        The loop over blocks of rows (fused with that over images where it is parallel), and the
        innermost loop over tiles.
    """
    stage = s[result]
    n, o, y, x = result.op.axis
    assert isinstance(result.op, ComputeOp)
    groups = int(result.op.tag.partition(":")[2])
    channels, channel = split_channels(stage, o, result.static_shape[1], groups, block)
    rows, y = stage.split(y, cfg["block_rows"])
    if block_tiles := _tiles_of(cfg):
        blocks, x = stage.split(x, block_tiles * cfg["tile_pixels"])
        stage.reorder(rows, blocks, y, x)
        rows = stage.fuse(rows, blocks)
    tiles, pixels = stage.split(stage.fuse(y, x), cfg["tile_pixels"])
    vectors, vector = stage.split(pixels, lanes)
    is_by_rows = cfg["order"] == "rows"
    outermost = [n, rows, tiles, *channels] if is_by_rows else [n, *channels, rows, tiles]
    stage.reorder(*outermost, channel, vectors, vector)
    stage.vectorize(vector)
    stage.unroll(vectors)
    stage.unroll(channel)
    # If the last block of a group is shorter, only groups run in parallel: the proof that
    # iterations are independent does not cover blocks of different sizes.
    is_cut = groups > 1 and result.static_shape[1] // groups % block != 0
    shared = channels[:1] if is_cut else channels
    by_rows = [rows] if is_copied else [rows, tiles]
    outermost_rows = parallelize_outermost(stage, n, by_rows, shared, cfg)
    return outermost_rows, outermost[-1]


def _schedule_sums(s: Schedule, sums: Tensor, cfg: Config, lanes: int) -> None:
    """Order the loops of the register tile: the reduction outside, channels and vectors inside."""
    stage = s[sums]
    n, b, v, f = stage.op.axis
    c, p, q = stage.op.reduce_axis
    vectors, vector = stage.split(f, lanes)
    steps = split_reduction(stage, c, (p, q), cfg["unroll_c"])
    stage.reorder(n, b, *steps, v, vectors, vector)
    stage.vectorize(vector)
    stage.unroll(vectors)
    stage.unroll(v)
