"""The spaces of configs of a product on a GPU, one for each form of its schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler import dtypes
from dlcompiler.ops.gpu.definition import EXTRA
from dlcompiler.ops.gpu.threads import Chip
from dlcompiler.ops.gpu.tiles import LANES, LOAD_BYTES
from dlcompiler.space import Filter, Knob, Space, Workload
from dlcompiler.target import Target

Values: TypeAlias = Mapping[str, Any]
FEW = 4
"""Rows or columns of C up to which threads compute each sum together [1]."""
_SIDES = (1, 2, 4, 8)
_DEPTHS = (4, 8, 16, 32, 64)
_SPLITS = (1, 2, 4, 8, 16, 32)
_PARTS = (1, 2, 4)
_MOST_WARPS = 16
_MOST_SUMS = 128
_MOST_TILE = EXTRA + 1
_SMALL = 16
"""Rows and columns of the smallest matrix that all shapes of blocks are tried for [1]."""
_OTHER_REGISTERS = 24
"""Registers of a thread besides sums and operands: addresses, counters (as ptxas needs them)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a product that its space depends on."""

    m: int
    n: int
    depth: int
    """Steps of the reduction, filled up: `definition.padded_depth`."""
    stack: int
    """Number of products."""
    dtype: str
    """Dtype of the operands."""
    sums_dtype: str
    """Dtype of the sums."""
    loads: tuple[int, int]
    """Most elements of each operand that a thread can load at once: `tiles.loaded_lanes` [1]."""

    def form(self, target: Target) -> str:
        """Return the form of the schedule: ``"tiles"`` or ``"threads"``."""
        del target
        return "threads" if min(self.m, self.n) <= FEW else "tiles"


def space_of(workload: Workload, shape: Shape, target: Target) -> Space:
    """Return the configs of a product.

    ===============  ===========================================================================
    ``form``         ``tiles``: of shared memory and registers (`dlcompiler.ops.gpu.tiles`);
                     ``threads``, for few rows or columns: threads compute each sum together
    ``rows``         rows of a thread: groups, and neighbours in each
    ``columns``      columns of a thread, the same
    ``depth``        steps of the reduction whose tiles are in shared memory at once; of
                     ``threads``, those that a thread unrolls
    ``warps``        tiles: warps of a block below and beside each other
    ``lanes_m``      tiles: threads of a warp below each other; ``32 / lanes_m`` are beside each
                     other
    ``loads``        tiles: elements of A and of B that a thread loads at once to shared memory
    ``buffers``      tiles: with 2, the next tile is copied while one is multiplied
    ``split``        tiles: parts of the reduction that different blocks compute
    ``raster``       tiles: blocks below each other before the next column of blocks
    ``lanes_k``      threads: those that compute a sum together
    ``groups``       threads: sums beside each other that a block computes at once
    ===============  ===========================================================================
    """
    knobs, filters = _FORMS[shape.form(target)](shape, target)
    return Space(workload, [Knob("form", (shape.form(target),)), *knobs], filters)


def rows_of(v: Values) -> int:
    """Return the rows of a thread."""
    groups, neighbours = v["rows"]
    return int(groups * neighbours)


def columns_of(v: Values) -> int:
    """Return the columns of a thread."""
    groups, neighbours = v["columns"]
    return int(groups * neighbours)


def block_of(v: Values) -> tuple[int, int]:
    """Return the rows and the columns of a block's tile, in the form of tiles."""
    (warps_m, warps_n), lanes_m = v["warps"], v["lanes_m"]
    return warps_m * lanes_m * rows_of(v), warps_n * (LANES // lanes_m) * columns_of(v)


# -- tiles --------------------------------------------------------------------------------------


def _tiles(shape: Shape, target: Target) -> tuple[list[Knob], list[Filter]]:
    chip = Chip.of(target)
    most_warps = min(chip.most_threads // LANES, _MOST_WARPS)
    pairs = ((a, b) for a in _SIDES for b in _SIDES)
    knobs = [
        Knob("warps", tuple(pair for pair in pairs if pair[0] * pair[1] <= most_warps)),
        Knob("lanes_m", (1, 2, 4, 8, 16, 32)),
        Knob("rows", tuple(_sums_of_thread(shape))),
        Knob("columns", tuple(_sums_of_thread(shape))),
        Knob("depth", _depths(shape)),
        Knob("loads", tuple(_loads(shape))),
        Knob("buffers", (1, 2)),
        Knob("split", tuple(p for p in _SPLITS if shape.depth % (p * _DEPTHS[0]) == 0) or (1,)),
        Knob("raster", tuple(r for r in _SIDES if r == 1 or r * _SMALL <= shape.m)),
    ]
    return knobs, list(_limits(shape, target, chip))


def _sums_of_thread(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the rows or columns of a thread, as groups of as many as a vector has."""
    item = max(map(dtypes.bytes_of, (shape.dtype, shape.sums_dtype)))
    most = min(4, LOAD_BYTES // item)
    yield from ((1, vector) for vector in (1, 2, 4) if vector <= most)
    yield from ((groups, most) for groups in _PARTS[1:])


def _loads(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the longest loads, and shorter ones, with which small tiles are shared by all threads."""
    left, right = shape.loads
    while True:
        yield left, right
        if left == right == 1:
            return
        left, right = max(left // 2, 1), max(right // 2, 1)


def _depths(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in _DEPTHS if shape.depth % d == 0) or _DEPTHS[:1]


def _limits(shape: Shape, target: Target, chip: Chip) -> Iterator[Filter]:
    item = dtypes.bytes_of(shape.dtype)
    wide = max(dtypes.bytes_of(shape.sums_dtype) // 4, 1)
    virtual = target.limit("max_vthreads")

    def registers(v: Values) -> int:
        rows, columns = rows_of(v), columns_of(v)
        return wide * (rows * columns + rows + columns) + _OTHER_REGISTERS

    def shared(v: Values) -> int:
        rows, columns = block_of(v)
        longer = 2 * LOAD_BYTES // item
        return int((rows + columns + longer) * v["depth"] * v["buffers"] * item)

    yield Filter(
        f"at most {_MOST_SUMS} sums of a thread",
        lambda v: rows_of(v) * columns_of(v) <= _MOST_SUMS,
    )
    yield Filter(
        f"at most {virtual} virtual threads", lambda v: v["rows"][0] * v["columns"][0] <= virtual
    )
    yield Filter(
        f"a block has at most {_MOST_TILE} rows, fewer than twice those of C",
        lambda v: _fits(block_of(v)[0], shape.m),
    )
    yield Filter(
        f"a block has at most {_MOST_TILE} columns, fewer than twice those of C",
        lambda v: _fits(block_of(v)[1], shape.n),
    )
    yield Filter(
        f"{chip.registers} registers hold a block",
        lambda v: registers(v) * v["warps"][0] * v["warps"][1] * LANES <= chip.registers,
    )
    yield Filter(
        f"{chip.shared_bytes} bytes of shared memory hold the tiles",
        lambda v: shared(v) <= chip.shared_bytes,
    )
    yield Filter(
        "the parts of the reduction are whole tiles",
        lambda v: v["split"] == 1 or shape.depth % (v["split"] * v["depth"]) == 0,
    )


def _fits(tile: int, extent: int) -> bool:
    return tile <= _MOST_TILE and tile < 2 * max(extent, _SMALL)


# -- threads that compute sums together ---------------------------------------------------------


def _threads(shape: Shape, target: Target) -> tuple[list[Knob], list[Filter]]:
    most = Chip.of(target).most_threads
    tiles = tuple((1, count) for count in (1, 2, 4))
    knobs = [
        Knob("rows", tiles),
        Knob("columns", tiles),
        Knob("depth", _DEPTHS[:4]),
        Knob("lanes_k", (1, 4, 8, 16, 32, 64, 128, 256)),
        Knob("groups", (1, 2, 4, 8, 16, 32, 64, 128)),
    ]
    return knobs, [
        Filter(
            f"at most {most} threads, and at least a warp",
            lambda v: LANES <= v["lanes_k"] * v["groups"] <= most,
        ),
        Filter(
            "no more rows of a thread than C has", lambda v: v["rows"][1] < 2 * max(shape.m, 1)
        ),
        Filter(
            "no more columns of a thread than C has", lambda v: v["columns"][1] < 2 * max(shape.n, 1)
        ),
    ]  # fmt: skip


_Form: TypeAlias = Callable[[Shape, Target], tuple[list[Knob], list[Filter]]]
_FORMS: Mapping[str, _Form] = {"tiles": _tiles, "threads": _threads}
