"""Schedules of kernels whose search spaces were measured on real GPUs, by their parameters.

**Source** of the kernels and their parameters: the image convolution and CLBlast's GEMM of the
benchmark hub of the AutoTuningAssociation, DOI 10.5281/zenodo.15364124.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dlcompiler import te
from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor

IMAGE, FILTER = 4096, 15
"""Rows and columns of the image, and of the filter; [1]."""
PRODUCT = 4096
"""Rows, columns and depth of the product; [1]."""

Row = Mapping[str, int]
"""Values of the parameters by their names in the file."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with parameters."""

    parameters: tuple[str, ...]
    """Columns of its files that decide the schedule; others change nothing here."""
    make: Callable[[Row], tuple[Schedule, list[Tensor]]]
    """Returns the schedule and its arguments."""
    is_judged: Callable[[Row], bool] = lambda row: True
    """Tells whether the parameters of a row can be made a schedule."""
    constant: tuple[str, ...] = ()
    """Arrays that the measured kernel keeps in constant memory."""
    is_merged: bool = True
    """Whether its compiler merges neighbouring loads of shared memory, as that of CUDA C does."""


def convolution(row: Row) -> tuple[Schedule, list[Tensor]]:
    """Return an image convolution whose blocks read their part of the image from shared memory.

    A thread computes ``tile`` outputs that lie a block apart. Their sums have an index for the
    block, one for the place in the tile and one for the thread. The image is as long as all blocks
    together; only the store of results is guarded where blocks reach beyond the image. The rows of
    a block's window are copied by a loop that the compiler leaves as it is.
    """
    threads = row["block_size_y"], row["block_size_x"]
    tile = row["tile_size_y"], row["tile_size_x"]
    size = threads[0] * tile[0], threads[1] * tile[1]
    blocks = [-(-IMAGE // each) for each in size]
    image = te.placeholder(
        tuple(count * each + FILTER - 1 for count, each in zip(blocks, size, strict=True)),
        name="image",
    )  # fmt: skip
    weights = te.placeholder((FILTER, FILTER), name="filter")
    i, j = (te.reduce_axis((0, FILTER), name=name) for name in "ij")
    sums = te.compute(
        (*blocks, *threads, *tile),
        lambda block_y, block_x, y, x, tile_y, tile_x: te.sum(
            image[(block_y * tile[0] + tile_y) * threads[0] + y + i,
                  (block_x * tile[1] + tile_x) * threads[1] + x + j] * weights[i, j],
            axis=[i, j],
        ),
        name="sums",
    )  # fmt: skip
    out = te.compute(
        (IMAGE, IMAGE),
        lambda y, x: sums[
            y // size[0], x // size[1], y % threads[0], x % threads[1],
            y // threads[0] % tile[0], x // threads[1] % tile[1],
        ],
        name="out",
    )  # fmt: skip
    s = create_schedule(out.op)
    s[sums].set_scope("local")
    window = s.cache_read(image, "shared", [sums])
    y, x = s[out].op.axis
    (block_y, y), (block_x, x) = s[out].split(y, size[0]), s[out].split(x, size[1])
    (tile_y, y), (tile_x, x) = s[out].split(y, threads[0]), s[out].split(x, threads[1])
    s[out].reorder(block_y, block_x, y, x, tile_y, tile_x)
    _bind(s, out, {"blockIdx.y": block_y, "blockIdx.x": block_x})
    _bind(s, out, {"threadIdx.y": y, "threadIdx.x": x})
    s[out].unroll(tile_y)
    s[out].unroll(tile_x)
    s[sums].compute_at(s[out], x)
    axes = s[sums].op.axis
    i, j = s[sums].op.reduce_axis
    s[sums].reorder(i, j, *axes)  # the compiler unrolls the few outputs inside, too
    _unrolled(s, sums, (i, j))
    s[window].compute_at(s[out], block_x)
    if row["use_padding"]:
        stride = FILTER - 1 + size[1] + (32 - (FILTER - 1 + size[1] - threads[1])) % 32
        s[window].storage_align(s[window].op.axis[0], 32, stride % 32)
    y, x = s[window].op.axis
    (outer_y, y), (outer_x, x) = s[window].split(y, threads[0]), s[window].split(x, threads[1])
    s[window].reorder(outer_y, outer_x, y, x)
    _bind(s, window, {"threadIdx.y": y, "threadIdx.x": x})
    s[window].pragma(outer_y, "auto_unroll_max_step", 0)
    _unrolled(s, window, (outer_x,))
    return s, [image, weights, out]


def product(row: Row) -> tuple[Schedule, list[Tensor]]:
    """Return a matrix product in tiles of a block and of a thread, from shared memory or not.

    Rows with equal tiles are branches of one history: steps that they have in common are checked
    once. So the steps that depend on fewer parameters come first.
    """
    root, a, b, c = _products(*(row[name] for name in ("MWG", "NWG", "MDIMC", "NDIMC")))
    s = root.fork("row")
    sums = s.cache_write(c, "local")
    m_threads, n_threads = row["MDIMC"], row["NDIMC"]
    tiles = []  # of A along m, of B along n
    for tensor, name in ((a, "SA"), (b, "SB")):
        shared = s.cache_read(tensor, "shared", [sums]) if row[name] else None
        tiles.append((shared, s.cache_read(tensor if shared is None else shared, "local", [sums])))
    j, i = s[c].op.axis
    (block_j, j), (block_i, i) = s[c].split(j, row["NWG"]), s[c].split(i, row["MWG"])
    (thread_j, j), (thread_i, i) = (
        s[c].split(j, row["NWG"] // n_threads), s[c].split(i, row["MWG"] // m_threads)
    )  # fmt: skip
    s[c].reorder(block_j, block_i, thread_j, thread_i, j, i)
    _bind(s, c, {"blockIdx.y": block_j, "blockIdx.x": block_i})
    _bind(s, c, {"threadIdx.y": thread_j, "threadIdx.x": thread_i})
    s[sums].compute_at(s[c], thread_i)
    (k,) = s[sums].op.reduce_axis
    outer, inner = s[sums].split(k, row["KWG"])
    inner, few = s[sums].split(inner, row["KWI"])
    s[sums].reorder(outer, inner, few, *s[sums].op.axis)
    _unrolled(s, sums, (few, *s[sums].op.axis))
    for shared, local in tiles:
        s[local].compute_at(s[sums], few)
        if shared is not None:
            s[shared].compute_at(s[sums], outer)
    vectors = (row["VWM"], row["VWN"])
    for (shared, local), vector, width in zip(
        tiles, vectors, (row["MDIMA"], row["NDIMB"]), strict=True
    ):
        _vectors(s, local, s[local].op.axis[1], vector)
        if shared is not None:
            _copied(s, shared, (m_threads, n_threads), width, vector)
    _vectors(s, c, i, row["VWM"])
    return s, [a, b, c]


@lru_cache(maxsize=1)  # the history of one tile: it grows with each row
def _products(*_tile: int) -> tuple[Schedule, Tensor, Tensor, Tensor]:
    """Return a product without any step, and its arguments."""
    n = PRODUCT
    a, b = (te.placeholder((n, n), name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda j, i: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    return create_schedule(c.op), a, b, c


def _copied(s: Schedule, shared: Tensor, threads: tuple[int, int], width: int, vector: int) -> None:
    """Let the threads of a block, as `width` columns, copy a tile to shared memory in vectors."""
    k, i = s[shared].op.axis
    rows = threads[0] * threads[1] // width
    (thread_k, k), (thread_i, i) = s[shared].split(k, nparts=rows), s[shared].split(i, nparts=width)
    s[shared].reorder(thread_k, thread_i, k, i)
    y, x = s[shared].split(s[shared].fuse(thread_k, thread_i), threads[0])
    _bind(s, shared, {"threadIdx.y": y, "threadIdx.x": x})
    _vectors(s, shared, i, vector)


def _vectors(s: Schedule, tensor: Tensor, axis: Axis, lanes: int) -> None:
    """Access vectors of a loop at once; 8 numbers are two vectors of 4, the longest of GPUs."""
    if lanes > 1:
        _, inner = s[tensor].split(axis, min(lanes, 4))
        s[tensor].vectorize(inner)


def _bind(s: Schedule, tensor: Tensor, axes: Mapping[str, Axis]) -> None:
    for tag, axis in axes.items():
        s[tensor].bind(axis, te.thread_axis(tag))


def _unrolled(s: Schedule, tensor: Tensor, axes: tuple[Axis, ...]) -> None:
    """Let the compiler of the GPU unroll loops, which keeps the program short."""
    s[tensor].pragma(axes[0], "unroll_explicit", 0)
    for axis in axes:
        s[tensor].unroll(axis)


KERNELS: Mapping[str, Kernel] = {
    "convolution": Kernel(
        ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "use_padding", "use_shmem"),
        convolution, lambda row: row["use_shmem"] == 1, ("filter",),
    ),
    "gemm": Kernel(
        ("MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN", "SA", "SB"),
        product, is_merged=False,  # OpenCL: rows with VWN = 1 take longer than those with VWN = 4
    ),
}  # fmt: skip
"""Kernels by the first part of the names of their files."""
