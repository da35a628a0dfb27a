"""Schedule a product on tensor cores: a warp multiplies tiles that its threads hold together.

*After* `multiply_by_warps` with a depth of two products::

    for block in blockIdx.x(…):
        for warp in threadIdx.y(…):
            for k.outer in range(…):
                left.shared[…] = …                          by all threads, asynchronously
                right.shared[…] = …
                for k.inner in unrolled(2):
                    left.local[…] = mma_load_a(left.shared[…])
                    right.local[…] = mma_load_b(right.shared[…])
                    for i, j in unrolled(…):
                        sums[i, j] += mma(left.local[i], right.local[j])
            for tiles i, j in unrolled(…):
                for ii, jj: C[…] = sums[…]                  each thread its own elements

Nothing is bound to ``threadIdx.x`` but the copies: see `docs/adr/0027-intrinsics-of-a-warp.md`.
Rows of a tile in shared memory are 16 bytes longer than a multiple of 32, so that the eight rows
which ``ldmatrix`` loads lie in different banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.ops.gpu.threads import bind, copy_together
from dlcompiler.ops.gpu.tiles import LANES, LOAD_BYTES, Loops, Operand
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.target import Target
from dlcompiler.te import Tensor

KINDS = {"float16": "f16", "bfloat16": "bf16", "int8": "s8"}
"""Dtype of the operands -> its name in the intrinsics."""
ROWS, COLUMNS = 16, 8
"""Rows and columns of the tile of sums that one instruction adds to [1]."""
_REGISTER_BYTES = 32
"""Bytes along k of the tile of an operand that one instruction multiplies [byte]."""


def step_of(dtype: str) -> int:
    """Return the depth of one instruction.

    Examples
    --------
    >>> step_of("float16"), step_of("int8")
    (16, 32)
    """
    return _REGISTER_BYTES // dtypes.bytes_of(dtype)


def has_tensor_cores(target: Target, dtype: str) -> bool:
    """Tell whether the tensor cores of a target multiply a dtype without changing its rounding."""
    return "mma" in target.emits and dtype in KINDS


def multiply_by_warps(
    s: Schedule,
    result: Tensor,
    loops: Loops,
    sums: Tensor,
    operands: Sequence[Operand],
    cfg: Config,
) -> None:
    """Compute a product on tensor cores. The parameters are those of `tiles.multiply_in_tiles`."""
    left, right = operands
    kind, step = KINDS[left.stage.dtype], step_of(left.stage.dtype)
    for operand in operands:
        if operand.wide is not None:
            s[operand.wide].compute_inline()
    warp = _tiles_of_warps(s, result, loops, cfg)
    s[sums].set_scope("local")
    s[sums].compute_at(s[result], warp)
    *stack, i, j = s[sums].op.axis
    (i, row), (j, column) = s[sums].split(i, ROWS), s[sums].split(j, COLUMNS)
    (k,) = s[sums].op.reduce_axis
    steps, k = s[sums].split(k, cfg["depth"])
    k, inner = s[sums].split(k, step)
    s[sums].reorder(*stack, steps, k, i, j, row, column, inner)
    # Of 8-bit numbers, only rows along k are loaded as they are.
    is_across = right.runs_along_k or kind == "s8"
    for operand, name, lanes, is_turned in (
        (left, "a", cfg["loads"][0], True),
        (right, "bt" if is_across else "b", cfg["loads"][1], is_across),
    ):
        reader = sums if operand.wide is None else operand.wide
        own = s.cache_read(operand.stage, "local", [reader])
        if is_turned:
            for stage in (operand.stage, own):
                _turn(s, stage)
        is_as_read = operand.runs_along_k == is_turned
        _share(s, operand.stage, (sums, steps), lanes, cfg, is_as_read=is_as_read)
        _load(s, own, (sums, k), f"mma_load_{name}_{kind}", step)
    s[sums].pragma(steps, "async_copy")
    s[sums].pragma(steps, "unroll_explicit", 0)
    s[sums].tensorize(row, f"mma{'_bt' * is_across}_{kind}_{ROWS}x{COLUMNS}x{step}")
    for axis in (k, i, j):
        s[sums].unroll(axis)


def _tiles_of_warps(s: Schedule, result: Tensor, loops: Loops, cfg: Config) -> Axis:
    """Split a result into blocks, warps and tiles of an instruction; return the loop over warps."""
    stage = s[result]
    tiles = []
    for axis, warps, count, size in (
        (loops.rows, cfg["warps"][0], cfg["fragments"][0], ROWS),
        (loops.columns, cfg["warps"][1], cfg["fragments"][1], COLUMNS),
    ):
        block, axis = stage.split(axis, warps * count * size)
        warp, axis = stage.split(axis, count * size)
        tile, axis = stage.split(axis, size)
        tiles.append((block, warp, tile, axis))
    (block_i, warp_i, tile_i, i), (block_j, warp_j, tile_j, j) = tiles
    group, block_i = stage.split(block_i, cfg["raster"])
    blocks = (*loops.stack, group, block_j, block_i)
    stage.reorder(*blocks, warp_i, warp_j, tile_i, tile_j, i, j)
    block, warp = stage.fuse(*blocks), stage.fuse(warp_i, warp_j)
    bind(stage, {"blockIdx.x": block, "threadIdx.y": warp})
    stage.pragma(tile_i, "unroll_explicit", 0)
    stage.unroll(tile_i)
    stage.unroll(tile_j)
    return warp


def _turn(s: Schedule, stage: Tensor) -> None:
    """Store a stage ``[…, k, x]`` with k innermost."""
    if len(stage.shape) == 2:
        s[stage].transform_layout(lambda k, x: [x, k])
    else:
        s[stage].transform_layout(lambda b, k, x: [b, x, k])


def _share(
    s: Schedule, operand: Tensor, at: tuple[Tensor, Axis], lanes: Any, cfg: Config, *,
    is_as_read: bool,
) -> None:  # fmt: skip
    """Let all threads of a block copy the tiles of an operand to shared memory.

    If its rows there are not those of its source, neighbouring threads go along columns.
    """
    stage, item = s[operand], dtypes.bytes_of(operand.dtype)
    stage.set_scope("shared")
    stage.compute_at(s[at[0]], at[1])
    outer, inner = stage.leaf_iter_vars[-2:]
    stage.storage_align(outer, 2 * LOAD_BYTES // item, LOAD_BYTES // item)
    order = (outer, inner) if is_as_read else (inner, outer)
    stage.reorder(*order)
    warps_m, warps_n = cfg["warps"]
    threads = {"threadIdx.y": warps_m * warps_n, "threadIdx.x": LANES}
    rest = copy_together(stage, threads, vector=lanes, axes=order)
    # One loop over the threads, with all copies of a thread inside: no barriers are between them.
    _, y, x, lane = stage.leaf_iter_vars[-4:]
    stage.reorder(y, x, rest, lane)
    stage.pragma(rest, "unroll_explicit", 0)
    stage.unroll(rest)
    if cfg["buffers"] > 1:
        stage.double_buffer()


def _load(s: Schedule, own: Tensor, at: tuple[Tensor, Axis], name: str, step: int) -> None:
    """Load the tiles of a warp from shared memory to registers."""
    stage = s[own]
    stage.compute_at(s[at[0]], at[1])
    outer, inner = stage.leaf_iter_vars[-2:]
    across = ROWS if "_a_" in name else COLUMNS
    shape = (step, across) if "_b_" in name else (across, step)
    (outer, rows), (inner, columns) = stage.split(outer, shape[0]), stage.split(inner, shape[1])
    stage.reorder(outer, inner, rows, columns)
    stage.tensorize(rows, f"{name}_{shape[0]}x{shape[1]}")
    stage.pragma(outer, "unroll_explicit", 0)
    stage.unroll(outer)
    stage.unroll(inner)
