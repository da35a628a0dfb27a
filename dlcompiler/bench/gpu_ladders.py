"""Schedules whose times on real GPUs were published, from slow to fast: ladders.

The predicted times of the simulated GPU stand beside the published ones in ``docs/GPU_TIME.md``.
Each rung is a schedule of ours that does what the published kernel does.

**Sources:** S. Boehm, "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance", 2022, and
its repository SGEMM_CUDA (n = 4092); Y. Hu, "Optimize Deep Learning GPU Operators with TVM: A
Depthwise Convolution Example", 2017; L. Zheng, "Optimizing Mobile Deep Learning on ARM GPU with
TVM", 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlcompiler import te
from dlcompiler.errors import UserError
from dlcompiler.ir import Axis
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_report import predicted_s
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import resolve
from dlcompiler.te import Tensor

Made = tuple[Schedule, list[Tensor]]
"""A schedule and its arguments."""
SIZE = 4096
"""Rows and columns of the matrices; the published ones have 4,092; [1]."""


@dataclass(frozen=True)
class Rung:
    """A kernel of a ladder."""

    name: str
    make: Callable[..., Made]
    """Makes the schedule and its arguments; of a product, for some size."""
    published_s: float
    """Its published time on the GPU of the ladder [s]."""
    step: str = ""
    """What it does differently from the rung before."""


@dataclass(frozen=True)
class Ladder:
    """Kernels that compute the same, or the same with other sizes, with published times."""

    name: str
    target: str
    """Name of the simulated GPU."""
    source: str
    rungs: tuple[Rung, ...]


# -- a product of matrices, from naive to warp tiles -----------------------------------------------


def _product(n: int) -> tuple[Tensor, Tensor, Tensor]:
    a, b = (te.placeholder((n, n), name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return a, b, c


def _bind(s: Schedule, tensor: Tensor, axes: Sequence[tuple[str, Axis]]) -> None:
    for tag, axis in axes:
        s[tensor].bind(axis, te.thread_axis(tag))


def _one_element(n: int, row: str, column: str) -> Made:
    """Return a product in which each thread computes one element of a block of 32 × 32."""
    a, b, c = _product(n)
    s = create_schedule(c.op)
    sums = s.cache_write(c, "local")
    i, j = s[c].op.axis
    (block_i, i), (block_j, j) = s[c].split(i, 32), s[c].split(j, 32)
    s[c].reorder(block_i, block_j, i, j)
    _bind(s, c, [(f"blockIdx.{row}", block_i), (f"blockIdx.{column}", block_j)])
    _bind(s, c, [(f"threadIdx.{row}", i), (f"threadIdx.{column}", j)])
    s[sums].compute_at(s[c], j)
    return s, [a, b, c]


def naive(n: int = SIZE) -> Made:
    """Return a product whose neighbouring threads compute elements of one column (kernel 1)."""
    return _one_element(n, "x", "y")


def coalesced(n: int = SIZE) -> Made:
    """Return a product whose neighbouring threads compute elements of one row (kernel 2)."""
    return _one_element(n, "y", "x")


def shared(n: int = SIZE) -> Made:
    """Return a product whose blocks copy tiles of 32 × 32 to shared memory (kernel 3)."""
    return _tiled(n, Tile((32, 32), 32, (1, 1)))


def tiles_1d(n: int = SIZE) -> Made:
    """Return a product in which each thread computes 8 elements of a column (kernel 4)."""
    return _tiled(n, Tile((64, 64), 8, (8, 1)))


def tiles_2d(n: int = SIZE) -> Made:
    """Return a product in which each thread computes 8 × 8 elements (kernel 5)."""
    return _tiled(n, Tile((128, 128), 8, (8, 8)))


def padded(n: int = SIZE) -> Made:
    """Return a product with vector loads of global memory, and padded rows of B (kernel 8)."""
    return _tiled(n, Tile((128, 128), 8, (8, 8), vector=4, padding=5))


def vectorized(n: int = SIZE) -> Made:
    """Return a product with vector loads of global and shared memory (kernel 6)."""
    return _tiled(n, Tile((128, 128), 8, (8, 8), vector=4))


def autotuned(n: int = SIZE) -> Made:
    """Return a product with the tiles that were found best on an RTX A6000 (kernel 9)."""
    return _tiled(n, Tile((128, 128), 16, (8, 8), vector=4))


def warp_tiles(n: int = SIZE) -> Made:
    """Return a product in which each warp computes a tile of 64 × 64 (kernel 10)."""
    return _tiled(n, Tile((128, 128), 16, (8, 4), vector=4, warp=(64, 64)))


@dataclass(frozen=True)
class Tile:
    """How blocks and threads share a product."""

    block: tuple[int, int]
    """Rows and columns of a block; [1]."""
    depth: int
    """Products that are added up from one copy to shared memory; [1]."""
    own: tuple[int, int]
    """Rows and columns of a thread that are neighbours; [1]."""
    vector: int = 1
    """Elements that a thread copies at once; if more than one, the tile of A is transposed; [1]."""
    padding: int = 0
    """Elements by which the rows of B are longer in shared memory; [1]."""
    warp: tuple[int, int] | None = None
    """Rows and columns of a warp: 8 × 4 threads in each of some parts beside each other; [1]."""


def _tiled(n: int, tile: Tile) -> Made:
    """Return a product with shared memory, and sums of a thread in registers."""
    a, b, c = _product(n)
    k = c.op.reduce_axis[0]
    if tile.vector > 1:
        across = te.compute((n, n), lambda x, i: a[i, x], name="A.across")
        c = te.compute((n, n), lambda i, j: te.sum(across[k, i] * b[k, j], axis=k), name="C")
    s = create_schedule(c.op)
    sums = s.cache_write(c, "local")
    if tile.vector > 1:
        s[across].set_scope("shared")
        tiles = [across, s.cache_read(b, "shared", [sums])]
    else:
        tiles = [s.cache_read(tensor, "shared", [sums]) for tensor in (a, b)]
    own = [s.cache_read(tensor, "local", [sums]) for tensor in tiles]
    thread, sizes, inner = _threads(s, c, tile)
    s[sums].compute_at(s[c], thread)
    outer, few = s[sums].split(s[sums].op.reduce_axis[0], tile.depth)
    s[sums].reorder(outer, few, *s[sums].op.axis)
    for number, (shared_tile, local) in enumerate(zip(tiles, own, strict=True)):
        s[local].compute_at(s[sums], few)
        s[shared_tile].compute_at(s[sums], outer)
        is_across = tile.vector > 1 and number == 0
        _copied(s, shared_tile, sizes, tile.vector, is_across=is_across)
        if number == 1 and tile.padding:
            s[shared_tile].storage_align(s[shared_tile].op.axis[0], tile.block[1], tile.padding)
        elif tile.vector > 1:
            _vectors(s, local, s[local].op.axis[1], tile.vector)
    _vectors(s, c, inner, tile.vector)
    return s, [a, b, c]


def _threads(s: Schedule, c: Tensor, tile: Tile) -> tuple[Axis, tuple[int, int], Axis]:
    """Bind blocks and threads.

    Returns the inner axis of threads, the threads along y and x, and the innermost axis.
    """
    i, j = s[c].op.axis
    (block_i, i), (block_j, j) = s[c].split(i, tile.block[0]), s[c].split(j, tile.block[1])
    _bind(s, c, [("blockIdx.y", block_i), ("blockIdx.x", block_j)])
    if tile.warp is None:
        (y, i), (x, j) = s[c].split(i, tile.own[0]), s[c].split(j, tile.own[1])
        s[c].reorder(block_i, block_j, y, x, i, j)
        _bind(s, c, [("threadIdx.y", y), ("threadIdx.x", x)])
        return x, (tile.block[0] // tile.own[0], tile.block[1] // tile.own[1]), j
    (warp_i, i), (warp_j, j) = s[c].split(i, tile.warp[0]), s[c].split(j, tile.warp[1])
    (part_i, i), (part_j, j) = s[c].split(i, 8 * tile.own[0]), s[c].split(j, 4 * tile.own[1])
    (lane_i, i), (lane_j, j) = s[c].split(i, tile.own[0]), s[c].split(j, tile.own[1])
    s[c].reorder(block_i, block_j, part_i, part_j, warp_i, warp_j, lane_i, lane_j, i, j)
    for part in (part_i, part_j):
        s[c].bind(part, te.thread_axis("vthread"))
    y, x = s[c].fuse(warp_i, warp_j), s[c].fuse(lane_i, lane_j)
    _bind(s, c, [("threadIdx.y", y), ("threadIdx.x", x)])
    warps = tile.block[0] // tile.warp[0] * (tile.block[1] // tile.warp[1])
    return x, (warps, 32), j


def _copied(
    s: Schedule, tensor: Tensor, threads: Sequence[int], vector: int, *, is_across: bool
) -> None:
    """Let all threads of a block copy a tile, neighbours along a row of the source."""
    first, second = s[tensor].op.axis
    row, along = (second, first) if is_across else (first, second)
    lanes = None
    if vector > 1:
        along, lanes = s[tensor].split(along, vector)
        s[tensor].reorder(row, along, lanes)
    elif is_across:
        s[tensor].reorder(row, along)
    all_, x = s[tensor].split(s[tensor].fuse(row, along), threads[1])
    _, y = s[tensor].split(all_, threads[0])
    _bind(s, tensor, [("threadIdx.y", y), ("threadIdx.x", x)])
    if lanes is not None:
        s[tensor].vectorize(lanes)


def _vectors(s: Schedule, tensor: Tensor, axis: Axis, lanes: int) -> None:
    if lanes > 1:
        _, inner = s[tensor].split(axis, lanes)
        s[tensor].vectorize(inner)


def _gflops(rate: float) -> float:
    """Return the time of a product of 4,092² at a rate in GFLOP/s, scaled to `SIZE`; [s]."""
    return 2 * SIZE**3 / rate / 1e9


SGEMM = Ladder(
    "product of matrices", "rtx-a6000", "S. Boehm, SGEMM_CUDA, README: GFLOP/s at n = 4092",
    (
        Rung("naive", naive, _gflops(309.0), "one thread for each element"),
        Rung("coalesced", coalesced, _gflops(1986.5), "neighbouring threads, neighbouring columns"),
        Rung("shared", shared, _gflops(2980.3), "tiles of 32 × 32 in shared memory"),
        Rung("tiles 1-D", tiles_1d, _gflops(8474.7), "8 elements of a column in registers"),
        Rung("tiles 2-D", tiles_2d, _gflops(15971.7), "8 × 8 elements in registers"),
        Rung("padded", padded, _gflops(16459.2), "vectors of global memory; padded rows"),
        Rung("vectorized", vectorized, _gflops(18237.3), "vectors of shared memory, too"),
        Rung("autotuned", autotuned, _gflops(19721.0), "16 products from one copy, not 8"),
        Rung("warp tiles", warp_tiles, _gflops(21779.3), "a warp computes 64 × 64 elements"),
    ),
)  # fmt: skip


# -- a depthwise convolution ----------------------------------------------------------------------

CHANNELS = 256


def depthwise(
    size: int, threads: tuple[int, int] = (8, 8), *, block: int = 0,
    virtual: tuple[int, int] = (1, 1),
) -> Made:  # fmt: skip
    """Return a depthwise convolution with filters of 3 × 3, whose blocks compute square tiles.

    Parameters
    ----------
    size
        Rows and columns of a channel. [1]
    threads
        Threads along y and x. [1]
    block
        Rows and columns of a tile; 0: a whole channel. [1]
    virtual
        Virtual threads along y and x. [1]
    """
    block = block or size
    data = te.placeholder((1, CHANNELS, size, size), name="data")
    weights = te.placeholder((CHANNELS, 3, 3), name="filter")
    around = te.compute(
        (1, CHANNELS, size + 2, size + 2),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= 1, y <= size, x >= 1, x <= size), data[n, c, y - 1, x - 1], 0.0
        ),
        name="padded",
    )  # fmt: skip
    i, j = (te.reduce_axis((0, 3), name=name) for name in "ij")
    out = te.compute(
        (1, CHANNELS, size, size),
        lambda n, c, y, x: te.sum(around[n, c, y + i, x + j] * weights[c, i, j], axis=[i, j]),
        name="out",
    )  # fmt: skip
    s = create_schedule(out.op)
    s[around].compute_inline()
    sums = s.cache_write(out, "local")
    window, filters = (s.cache_read(t, "shared", [sums]) for t in (around, weights))
    own = [s.cache_read(tensor, "local", [sums]) for tensor in (window, filters)]
    n, c, y, x = s[out].op.axis
    (block_y, y), (block_x, x) = s[out].split(y, block), s[out].split(x, block)
    s[out].reorder(n, c, block_y, block_x, y, x)
    tile = s[out].fuse(block_y, block_x)
    _bind(s, out, [("blockIdx.y", s[out].fuse(n, c)), ("blockIdx.x", tile)])
    (v_y, y), (v_x, x) = (s[out].split(axis, nparts=parts)
                          for axis, parts in zip((y, x), virtual, strict=True))  # fmt: skip
    (t_y, y), (t_x, x) = (s[out].split(axis, nparts=parts)
                          for axis, parts in zip((y, x), threads, strict=True))  # fmt: skip
    s[out].reorder(v_y, v_x, t_y, t_x, y, x)
    _bind(s, out, [("vthread", v_y), ("vthread", v_x), ("threadIdx.y", t_y), ("threadIdx.x", t_x)])
    for tensor in (*own, sums):
        s[tensor].compute_at(s[out], t_x)
    for tensor in (window, filters):
        s[tensor].compute_at(s[out], tile)
        *_, y, x = s[tensor].op.axis
        (t_y, y), (t_x, x) = (s[tensor].split(axis, nparts=parts)
                              for axis, parts in zip((y, x), threads, strict=True))  # fmt: skip
        s[tensor].reorder(t_y, t_x, y, x)
        _bind(s, tensor, [("threadIdx.y", t_y), ("threadIdx.x", t_x)])
    return s, [data, weights, out]


def _depthwise(us: float, *args: Any, **more: Any) -> Rung:
    size, threads = args[0], args[1] if len(args) > 1 else (8, 8)
    name = f"{size} × {size}, threads {threads[0]} × {threads[1]}"
    name += f", tiles of {more['block']}" if more.get("block") else ""
    if "virtual" in more:
        name += f", virtual threads {more['virtual'][0]} × {more['virtual'][1]}"
    return Rung(name, partial(depthwise, *args, **more), us * 1e-6)


DEPTHWISE = Ladder(
    "depthwise convolution, 256 channels", "gtx-1080",
    "Y. Hu, 'Optimize Deep Learning GPU Operators with TVM', 2017; means of 1,000 runs",
    (
        _depthwise(387.4, 96), _depthwise(132.5, 96, block=32),
        _depthwise(103.1, 96, (8, 8), block=32, virtual=(1, 4)),
        _depthwise(95.9, 96, (4, 32), block=32),
        _depthwise(90.9, 96, (8, 16), block=32, virtual=(1, 2)),
        _depthwise(98.9, 64), _depthwise(63.4, 64, block=32),
        _depthwise(32.5, 32, (32, 1)), _depthwise(17.7, 32, (1, 32)),
        _depthwise(14.5, 32), _depthwise(9.7, 32, (8, 32)), _depthwise(8.8, 32, (4, 32)),
        _depthwise(9.1, 21),
    ),
)  # fmt: skip


# -- a convolution on a GPU of Arm ----------------------------------------------------------------

IMAGE, DEPTH, VECTOR = 56, 256, 4


def packed_convolution(*, is_unrolled: bool = False, is_vectorized: bool = False) -> Made:
    """Return a convolution of 56 × 56 × 256 with filters of 3 × 3, on repacked arrays.

    The data is packed by 4 columns, the filters by 4 outputs; a thread computes 4 × 4 outputs,
    whose sums are in memory.

    Parameters
    ----------
    is_unrolled
        Whether the loops of the filter and of the outputs are unrolled.
    is_vectorized
        Whether the 4 outputs are a vector.
    """
    data = te.placeholder((DEPTH, IMAGE, IMAGE), name="data")
    weights = te.placeholder((DEPTH, DEPTH, 3, 3), name="filter")
    packed = te.compute(
        (IMAGE, IMAGE // VECTOR, DEPTH, 3, VECTOR + 2),
        lambda y, x, c, i, j: te.if_then_else(
            te.all(y + i >= 1, y + i <= IMAGE, x * VECTOR + j >= 1, x * VECTOR + j <= IMAGE),
            data[c, y + i - 1, x * VECTOR + j - 1], 0.0,
        ),
        name="data.packed",
    )  # fmt: skip
    filters = te.compute(
        (DEPTH // VECTOR, DEPTH, 3, 3, VECTOR),
        lambda f, c, i, j, v: weights[f * VECTOR + v, c, i, j], name="filter.packed",
    )  # fmt: skip
    c, i, j = (te.reduce_axis((0, extent), name=name)
               for extent, name in ((DEPTH, "c"), (3, "i"), (3, "j")))  # fmt: skip
    sums = te.compute(
        (DEPTH // VECTOR, IMAGE, IMAGE // VECTOR, VECTOR, VECTOR),
        lambda f, y, x, w, v: te.sum(
            packed[y, x, c, i, j + w] * filters[f, c, i, j, v], axis=[c, i, j]
        ),
        name="sums",
    )  # fmt: skip
    out = te.compute(
        (DEPTH, IMAGE, IMAGE),
        lambda f, y, x: sums[f // VECTOR, y, x // VECTOR, x % VECTOR, f % VECTOR], name="out",
    )  # fmt: skip
    s = create_schedule(out.op)
    _spread(s, packed, packed.op.axis[:3], (1, 1, 1))
    _spread(s, filters, filters.op.axis[:2], (1, 1))
    f, y, x, w, v = s[sums].op.axis
    c, i, j = s[sums].op.reduce_axis
    s[sums].reorder(f, y, x, c, i, j, w, v)
    _spread(s, sums, (f, y, x), (8, 1, 1))
    _spread(s, out, out.op.axis, (8, 1, 1))
    if not is_unrolled:
        s[sums].pragma(c, "auto_unroll_max_step", 0)
        return s, [data, weights, out]
    *_, v = s[filters].op.axis
    for axis in (i, j, w, *(() if is_vectorized else (s[sums].op.axis[4],))):
        s[sums].unroll(axis)
    if is_vectorized:
        s[sums].vectorize(s[sums].op.axis[4])
        s[filters].vectorize(v)
    return s, [data, weights, out]


def _spread(s: Schedule, tensor: Tensor, axes: Sequence[Axis], threads: Sequence[int]) -> None:
    """Bind axes to blocks and threads, the first ones to the outermost."""
    for axis, count, letter in zip(axes, threads, "zyx"[-len(axes) :], strict=True):
        block, thread = s[tensor].split(axis, count)
        _bind(s, tensor, [(f"blockIdx.{letter}", block), (f"threadIdx.{letter}", thread)])


MALI = Ladder(
    "convolution of 56 × 56 × 256, filters of 3 × 3", "mali-t860",
    "L. Zheng, 'Optimizing Mobile Deep Learning on ARM GPU with TVM', 2018",
    (
        Rung("bound", packed_convolution, 5.6154),
        Rung("unrolled", partial(packed_convolution, is_unrolled=True), 0.3707),
        Rung(
            "vectorized", partial(packed_convolution, is_unrolled=True, is_vectorized=True), 0.1304
        ),
    ),
)  # fmt: skip
LADDERS = (SGEMM, DEPTHWISE, MALI)


def ladder_times(ladder: Ladder) -> list[float]:
    """Return the predicted time of each rung of a ladder, all kernels of it together; [s].

    Parameters
    ----------
    ladder
        One of `LADDERS`.

    Raises
    ------
    UserError
        No block of a rung fits.
    """
    target = resolve(ladder.target)
    times = []
    for rung in ladder.rungs:
        seconds = predicted_s(lower_program(*rung.make(), target, verify_passes=False), target)
        if seconds is None:
            raise UserError(f"predict {rung.name}", "no block fits", got=target.name)
        times.append(seconds)
    return times
