"""Schedule a product in tiles: of a block in shared memory, of a thread in registers.

A stage ``sums[…, i, j] = sum over k of left[…, k, i] * right[…, k, j]`` is computed for tiles of
a result. A block copies a few steps of k of both operands to shared memory, and each thread
multiplies a tile of its own. *After* `multiply_in_tiles` with one step of k at a time::

    for block in blockIdx.x(…):
        for parts in vthread(…):
            for warp in threadIdx.y(warps_m*warps_n):
                for lane in threadIdx.x(32):
                    for k.outer in range(…):
                        left.shared[…] = …                      all threads together, in vectors
                        right.shared[…] = …
                        for k.inner in unrolled(depth):
                            left.local[…] = left.shared[…]      vectors of a thread's own rows
                            right.local[…] = right.shared[…]
                            for i, j in unrolled(…):
                                sums[i, j] += left.local[i]*right.local[j]
                    for i, j: C[…] = sums[…]

A warp computes a tile of ``lanes_m × lanes_n`` threads. The rows of a thread are ``parts`` groups
of neighbours, as many as a vector has; the groups of a warp's threads alternate, so that the
vectors that its lanes load lie side by side in shared memory: no bank conflicts. Groups are virtual
threads. Four neighbouring threads are a square: each pair of them loads the same rows or the same
columns, which takes half as many passes through shared memory.

**Source** of the order of the threads: A. Kerr and others, "CUTLASS: Fast linear algebra in CUDA
C++", 2017; NVIDIA's developer forum, "Unexpected shared memory bank conflict" (77228), 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Axis, Binary, Expr, TensorLoad, Var, free_vars, walk
from dlcompiler.ops.gpu.threads import bind, copy_together
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.te import ComputeOp, PlaceholderOp, Tensor

LANES = 32
"""Threads of a warp [1]."""
LOAD_BYTES = 16
"""Most bytes that a thread loads at once [byte]."""
_ALL_BANKS = 128
"""Bytes that all banks of shared memory hold [byte]."""
_SECTOR_BYTES = 32
_VECTOR = 4


@dataclass(frozen=True, slots=True)
class Operand:
    """A stage ``[…, k, x]`` whose tiles a block copies to shared memory."""

    stage: Tensor
    """What is copied, in the dtype of memory."""
    wide: Tensor | None
    """The stage that converts it to the dtype of the sums; None if it has that dtype."""
    runs_along_k: bool
    """Whether its source is contiguous along k, not along x."""
    row: int
    """Elements that are known to be beside each other in its source [1]."""

    @staticmethod
    def of(factor: Tensor) -> Operand:
        """Read from the definition of a factor of a product how its source lies in memory."""
        stage, wide = factor, None
        for read in factor.op.input_tensors:
            if isinstance(read.op, ComputeOp) and read.dtype != factor.dtype:
                stage, wide = read, factor
        op = stage.op
        assert isinstance(op, ComputeOp)
        *_, k, x = op.axis
        load = next(node for node in walk(op.bodies[0]) if isinstance(node, TensorLoad))
        places = [
            (index, extent)
            for index, extent in zip(load.indices, load.tensor.shape, strict=True)
            if free_vars(index)
        ]
        if not places:
            return Operand(stage, wide, runs_along_k=False, row=1)
        last, extent = places[-1]
        used = free_vars(last)
        along_k = k.var in used and x.var not in used
        is_alone = isinstance(load.tensor, Tensor) and isinstance(load.tensor.op, PlaceholderOp)
        row = int(extent)
        if not is_alone or not _is_contiguous(last, k.var if along_k else x.var, row):
            row = 1
        return Operand(stage, wide, along_k, row)

    @property
    def lanes(self) -> int:
        """Elements that a thread loads at once, as a vector of all languages [1]."""
        return loaded_lanes(self.row, self.stage.dtype, is_scattered=True)


def loaded_lanes(row: int, dtype: str, *, is_scattered: bool) -> int:
    """Return how many elements of a row a thread can load at once.

    If they are scattered, they are stored one by one: then at most a vector of the languages.

    Examples
    --------
    >>> [loaded_lanes(row, "float16", is_scattered=False) for row in (1, 6, 64)]
    [1, 2, 8]
    >>> loaded_lanes(64, "float16", is_scattered=True)
    4
    """
    most = LOAD_BYTES // dtypes.bytes_of(dtype)
    return math.gcd(row, min(most, _VECTOR) if is_scattered else most)


def _is_contiguous(index: Expr, var: Var, row: int) -> bool:
    """Tell whether an index is a variable, or its remainder by the length of a row."""
    match index:
        case Binary("floormod", a, b):
            return a is var and str(b) == str(row)
    return index is var


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a result that a product is computed in."""

    stack: tuple[Axis, ...]
    """Loops around the product: batches, or parts of a reduction."""
    rows: Axis
    columns: Axis
    lanes: int
    """Most neighbouring columns that a thread may store at once [1]."""


def multiply_in_tiles(
    s: Schedule,
    result: Tensor,
    loops: Loops,
    sums: Tensor,
    operands: Sequence[Operand],
    cfg: Config,
) -> None:
    """Compute a product in tiles of threads, inside the loops of its result.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    result : Tensor
        What reads the sums; what stands between is inlined already.
    loops : Loops
        Its loops.
    sums : Tensor
        The product. It has to reach far enough for whole tiles.
    operands : sequence of Operand
        Left and right.
    cfg : Config
        A config with the knobs of `dlcompiler.ops.gpu.space`.
    """
    innermost = _tiles_of_threads(s, result, loops, cfg)
    (k,) = s[sums].op.reduce_axis
    steps, step = s[sums].split(k, cfg["depth"])
    s[sums].reorder(*s[sums].op.axis[:-2], steps, step, *s[sums].op.axis[-2:])
    copies = []
    for operand, lanes in zip(operands, cfg["loads"], strict=True):
        own = operand.wide
        if own is None:
            own = s.cache_read(operand.stage, "local", [sums])
        copies.append(share(s, operand, (sums, steps), lanes, cfg))
        s[own].set_scope("local")
        s[own].compute_at(s[sums], step)
        s[own].vectorize(s[own].op.axis[-1])
    s[sums].pragma(steps, "async_copy")
    s[sums].pragma(step, "unroll_explicit", 0)
    # Late: the bounds of all copies follow from it, and most steps would infer them again.
    s[sums].set_scope("local")
    s[sums].compute_at(s[result], innermost)
    for axis in (step, *s[sums].op.axis[-2:]):
        s[sums].unroll(axis)
    for operand, rest in zip(operands, copies, strict=True):
        s[operand.stage].unroll(rest)


def _tiles_of_threads(s: Schedule, result: Tensor, loops: Loops, cfg: Config) -> Axis:
    """Split a result into blocks, warps and the tiles of threads; return the innermost loop."""
    stage, lanes_m = s[result], cfg["lanes_m"]
    tiles = []
    for axis, warps, lanes, (parts, vector) in (
        (loops.rows, cfg["warps"][0], lanes_m, cfg["rows"]),
        (loops.columns, cfg["warps"][1], LANES // lanes_m, cfg["columns"]),
    ):
        block, axis = stage.split(axis, warps * lanes * parts * vector)
        warp, axis = stage.split(axis, lanes * parts * vector)
        part, axis = stage.split(axis, lanes * vector)
        lanes, axis = stage.split(axis, vector)
        tiles.append((block, part, warp, *stage.split(lanes, 2), axis))
    (block_i, part_i, warp_i, lanes_i, pair_i, i), right = tiles
    block_j, part_j, warp_j, lanes_j, pair_j, j = right
    group, block_i = stage.split(block_i, cfg["raster"])
    blocks = (*loops.stack, group, block_j, block_i)
    threads = (lanes_i, lanes_j, pair_i, pair_j)
    stage.reorder(*blocks, part_i, part_j, warp_i, warp_j, *threads, i, j)
    block, warp = stage.fuse(*blocks), stage.fuse(warp_i, warp_j)
    lane = stage.fuse(*threads)
    bind(stage, {"blockIdx.x": block, "threadIdx.y": warp, "threadIdx.x": lane})
    for part in (part_i, part_j):
        stage.bind(part, te.thread_axis("vthread"))
    store(s, result, i, j, loops.lanes)
    return lane


def store(s: Schedule, result: Tensor, i: Axis, j: Axis, lanes: int) -> None:
    """Store the tile of a thread in vectors, if these begin at multiples of their length."""
    s[result].pragma(i, "unroll_explicit", 0)
    s[result].unroll(i)
    if lanes % _VECTOR == 0:
        s[result].vectorize(j)
    else:
        s[result].unroll(j)


def share(s: Schedule, operand: Operand, at: tuple[Tensor, Axis], lanes: Any, cfg: Config) -> Axis:
    """Let the threads of a block copy the tiles of an operand to shared memory, in vectors.

    Neighbouring threads copy neighbouring elements. If these lie along k, they are stored in
    columns of the tile; rows then are a vector longer, so that columns lie in different banks.
    Return the loop over the copies of a thread, to be unrolled.
    """
    stage = s[operand.stage]
    stage.set_scope("shared")
    stage.compute_at(s[at[0]], at[1])
    *_, k, x = stage.op.axis
    item = dtypes.bytes_of(operand.stage.dtype)
    order: tuple[Axis, ...] = (k, x)
    is_packed = is_in_panels(operand.row, item, along_k=operand.runs_along_k)
    if operand.runs_along_k or is_packed:
        stage.storage_align(k, _ALL_BANKS // item, LOAD_BYTES // item)
    if operand.runs_along_k:
        order = (x, k)
    elif is_packed:  # the weights of the next step are beside those of this one
        row, x = stage.split(x, lanes)
        order = (row, k, x)
    stage.reorder(*order)
    warps_m, warps_n = cfg["warps"]
    threads = {"threadIdx.y": warps_m * warps_n, "threadIdx.x": LANES}
    rest = copy_together(stage, threads, vector=lanes, axes=order)
    stage.pragma(rest, "unroll_explicit", 0)
    if cfg["buffers"] > 1:
        stage.double_buffer()
    return rest


def is_in_panels(row: int, item: int, *, along_k: bool) -> bool:
    """Tell whether an operand has short rows, as packed weights, with the next step beside them."""
    return not along_k and 1 < row < _SECTOR_BYTES // item


def pitch(rows: int, item: int, *, is_scattered: bool) -> int:
    """Return the length of a row of a tile in shared memory, as `share` aligns it [element].

    Examples
    --------
    >>> pitch(128, 4, is_scattered=False), pitch(128, 4, is_scattered=True)
    (128, 132)
    """
    if not is_scattered:
        return rows
    unit, offset = _ALL_BANKS // item, LOAD_BYTES // item
    return max(-(-(rows - offset) // unit), 0) * unit + offset
