"""Generate a matrix product whose tile of C stays in registers: an outer product for each k.

``C[i, j] += A[i, k] * B[k, j]``; without i, C is one row. For each k a vector of B is multiplied
by each element of a column of A, which is copied to all lanes, and added to the tile in one
instruction where the machine has it (``vfmadd231ps`` of x86 with FMA, ``fmla`` of AArch64), else in
two.

**Source:** K. Goto and R. A. van de Geijn, "Anatomy of high-performance matrix multiplication",
ACM TOMS 34 (3), 2008, section 4 (the inner kernel).
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.addresses import splat
from dlcompiler.codegen.llvm.intrinsics.box import Box, lanes_for, require
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import IntrinsicMode

MAX_COPIES = 8
"""Greatest number of values of k whose code is unrolled; more are computed in a loop."""


def emit(w: Function, mode: IntrinsicMode, write: Box, *reads: Box) -> None:
    """Write the instructions of a tile; `reads` are A and B, and empty for a reset."""
    require(_fits(write, *reads), "tiles of products of float32 or float64", write, *reads)
    tile = _Tile.of(w, write)
    zero = constant(0, dtypes.with_lanes(write.dtype, tile.lanes))
    sums = [zero] * len(tile.places)
    if mode == "update":
        sums = [write.load(w, tile.lanes, *place) for place in tile.places]
    if mode != "reset":
        sums = _products(w, tile, sums, *reads)
    for place, total in zip(tile.places, sums, strict=True):
        write.store(w, total, tile.lanes, *place)


def _fits(write: Box, *reads: Box) -> bool:
    if write.dtype not in ("float32", "float64") or len(write.shape) not in (1, 2):
        return False
    if not reads:
        return True
    count = reads[-1].shape[0]
    shapes = [(*write.shape[:-1], count), (count, write.shape[-1])]
    return [(r.dtype, r.shape) for r in reads] == [(write.dtype, shape) for shape in shapes]


@dataclass(frozen=True)
class _Tile:
    """The vectors of a tile, row by row."""

    dtype: str
    lanes: int
    places: tuple[tuple[int, ...], ...]
    """The indices in the tile of the first element of each vector."""

    @staticmethod
    def of(w: Function, write: Box) -> _Tile:
        *rows, columns = write.shape
        lanes = lanes_for(w, write.dtype, columns)
        starts = range(0, columns, lanes)
        if not rows:
            return _Tile(write.dtype, lanes, tuple((j,) for j in starts))
        return _Tile(write.dtype, lanes, tuple((i, j) for i in range(rows[0]) for j in starts))

    @property
    def type(self) -> str:
        return value_type(dtypes.with_lanes(self.dtype, self.lanes))


def _products(w: Function, tile: _Tile, sums: list[str], a: Box, b: Box) -> list[str]:
    """Write the outer products of all k; return the new sums."""
    count = b.shape[0]
    copies = next(n for n in range(MAX_COPIES, 0, -1) if count % n == 0)
    if copies == count:
        return _steps(w, tile, sums, a, b, "0", count)
    # The sums are phi nodes, not a stack buffer, so that they stay in registers. Their slots are
    # filled last, when the values of the next iteration have names.
    head, done, before = w.name("tile.loop"), w.name("tile.end"), w.block
    w.jump(head)
    w.open(head)
    variable = f"%{w.name('tile.k')}"
    slots = [(w.reserve(), f"%{w.name('tile.sum')}") for _ in sums]
    counter = w.reserve()
    new = _steps(w, tile, [name for _, name in slots], a, b, variable, copies)
    following = w.value(f"add nuw nsw i64 {variable}, {copies}")
    w.fill(counter, f"{variable} = phi i64 [ 0, %{before} ], [ {following}, %{w.block} ]")
    for (slot, name), old, result in zip(slots, sums, new, strict=True):
        incoming = f"[ {old}, %{before} ], [ {result}, %{w.block} ]"
        w.fill(slot, f"{name} = phi {tile.type} {incoming}")
    w.branch(w.pure(f"icmp slt i64 {following}, {count}"), head, done)
    w.open(done)
    return new


def _steps(
    w: Function, tile: _Tile, sums: list[str], a: Box, b: Box, first: str, copies: int
) -> list[str]:
    """Write the outer products of `copies` values of k, from `first` on; return the new sums."""
    for n in range(copies):
        k: int | str = n if first == "0" else w.pure(f"add nuw nsw i64 {first}, {n}")
        columns: dict[int, str] = {}
        rows: dict[tuple[int, ...], str] = {}
        new = []
        for (*row, column), total in zip(tile.places, sums, strict=True):
            if column not in columns:
                columns[column] = b.load(w, tile.lanes, k, column)
            key = tuple(row)
            if key not in rows:
                element = a.load(w, 1, *key, k)
                rows[key] = splat(w, element, tile.dtype, tile.lanes)
            product = w.value(f"fmul contract {tile.type} {rows[key]}, {columns[column]}")
            new.append(w.value(f"fadd contract {tile.type} {total}, {product}"))
        sums = new
    return sums
