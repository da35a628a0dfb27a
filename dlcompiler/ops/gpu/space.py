"""The spaces of configs of a product on a GPU, one for each form of its schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler import dtypes
from dlcompiler.ops.gpu.definition import EXTRA
from dlcompiler.ops.gpu.tensor_cores import COLUMNS, ROWS, has_tensor_cores, step_of
from dlcompiler.ops.gpu.threads import Chip
from dlcompiler.ops.gpu.tiles import LANES, LOAD_BYTES, is_in_panels, loaded_lanes, pitch
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
    rows: tuple[int, int]
    """Elements beside each other in the memory of each operand [1]."""
    along_k: tuple[bool, bool]
    """Whether these lie along k."""

    def form(self, target: Target) -> str:
        """Return the form of the schedule: ``"tiles"``, ``"threads"`` or ``"warps"``."""
        if min(self.m, self.n) <= FEW:
            return "threads"
        is_large = self.m >= ROWS and self.n >= COLUMNS and self.depth > 0
        return "warps" if is_large and has_tensor_cores(target, self.dtype) else "tiles"


def space_of(workload: Workload, shape: Shape, target: Target) -> Space:
    """Return the configs of a product.

    ===============  ===========================================================================
    ``form``         ``tiles``, in shared memory and registers (`dlcompiler.ops.gpu.tiles`);
                     ``warps``, on tensor cores (`dlcompiler.ops.gpu.tensor_cores`); ``threads``,
                     which compute each sum together (`dlcompiler.ops.gpu.common_sums`)
    ``warps``        of a block: below and beside each other
    ``depth``        steps of the reduction whose tiles are in shared memory at once; of
                     ``threads``, those that a thread unrolls
    ``loads``        elements of A and of B that a thread loads at once to shared memory
    ``buffers``      with 2, the next tiles are copied while others are multiplied
    ``split``        parts of the reduction that different blocks compute
    ``raster``       blocks below each other before the next column of blocks
    ``lanes_m``      tiles: threads of a warp below each other; ``32 / lanes_m`` are beside each
                     other
    ``rows``         rows of a thread: groups, and neighbours in each
    ``columns``      columns of a thread, the same
    ``fragments``    warps: tiles of sums below and beside each other
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


def tile_of(v: Values) -> tuple[int, int]:
    """Return the rows and the columns of a block's tile, in the form of warps."""
    (warps_m, warps_n), (rows, columns) = v["warps"], v["fragments"]
    return warps_m * rows * ROWS, warps_n * columns * COLUMNS


def shared_bytes(shape: Shape, v: Values) -> int:
    """Return the shared memory of a block, in the forms of tiles and of warps [byte]."""
    item, depth = dtypes.bytes_of(shape.dtype), int(v["depth"])
    if v["form"] == "warps":
        rows, columns = tile_of(v)
        is_across = shape.along_k[1] or item == 1
        longer = LOAD_BYTES // item
        elements = rows * (depth + longer)
        elements += columns * (depth + longer) if is_across else depth * (columns + longer)
    else:
        elements = depth * sum(
            pitch(extent, item, is_scattered=along or is_in_panels(row, item, along_k=along))
            for extent, row, along in zip(block_of(v), shape.rows, shape.along_k, strict=True)
        )
    return elements * item * int(v["buffers"])


# -- tiles --------------------------------------------------------------------------------------


def _tiles(shape: Shape, target: Target) -> tuple[list[Knob], list[Filter]]:
    chip = Chip.of(target)
    most_warps = min(chip.most_threads // LANES, _MOST_WARPS)
    pairs = ((a, b) for a in _SIDES for b in _SIDES)
    knobs = [
        Knob("warps", tuple(pair for pair in pairs if pair[0] * pair[1] <= most_warps)),
        Knob("lanes_m", (2, 4, 8, 16)),
        Knob("rows", tuple(_sums_of_thread(shape))),
        Knob("columns", tuple(_sums_of_thread(shape))),
        Knob("depth", _depths(shape)),
        *_common_knobs(shape, _DEPTHS[0], shape.along_k),
    ]
    return knobs, list(_limits(shape, target, chip))


def _common_knobs(shape: Shape, least: int, scattered: tuple[bool, bool]) -> list[Knob]:
    return [
        Knob("loads", tuple(_loads(shape, scattered))),
        Knob("buffers", (1, 2)),
        Knob("split", tuple(p for p in _SPLITS if shape.depth % (p * least) == 0) or (1,)),
        Knob("raster", tuple(r for r in _SIDES if r == 1 or r * _SMALL <= shape.m)),
    ]


def _sums_of_thread(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the rows or columns of a thread, as groups of as many as a vector has."""
    item = max(map(dtypes.bytes_of, (shape.dtype, shape.sums_dtype)))
    most = min(4, LOAD_BYTES // item)
    yield from ((1, vector) for vector in (1, 2, 4) if vector <= most)
    yield from ((groups, most) for groups in _PARTS[1:])


def _loads(shape: Shape, scattered: tuple[bool, bool]) -> Iterator[tuple[int, int]]:
    """Yield the longest loads, and shorter ones, with which small tiles are shared by all threads.

    `scattered` tells for each operand whether rows of its tile are not those of its source.
    """
    left, right = (
        loaded_lanes(row, shape.dtype, is_scattered=is_scattered)
        for row, is_scattered in zip(shape.rows, scattered, strict=True)
    )
    while True:
        yield left, right
        if left == right == 1:
            return
        left, right = max(left // 2, 1), max(right // 2, 1)


def _depths(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in _DEPTHS if shape.depth % d == 0) or _DEPTHS[:1]


def _limits(shape: Shape, target: Target, chip: Chip) -> Iterator[Filter]:
    wide = max(dtypes.bytes_of(shape.sums_dtype) // 4, 1)
    virtual = target.limit("max_vthreads")

    def registers(v: Values) -> int:
        rows, columns = rows_of(v), columns_of(v)
        return wide * (rows * columns + rows + columns) + _OTHER_REGISTERS

    yield Filter(
        f"at most {_MOST_SUMS} sums of a thread",
        lambda v: rows_of(v) * columns_of(v) <= _MOST_SUMS,
    )
    yield Filter(
        f"at most {virtual} virtual threads", lambda v: v["rows"][0] * v["columns"][0] <= virtual
    )
    yield from _common_limits(shape, chip, block_of, registers, lambda v: shared_bytes(shape, v))


def _common_limits(
    shape: Shape, chip: Chip, tile: Callable[[Values], tuple[int, int]],
    registers: Callable[[Values], int], shared: Callable[[Values], int],
) -> Iterator[Filter]:  # fmt: skip
    """Yield the rules on the tile of a block: its size, and what it needs of a multiprocessor."""
    yield Filter(
        f"a block has at most {_MOST_TILE} rows, fewer than twice those of C",
        lambda v: _fits(tile(v)[0], shape.m),
    )
    yield Filter(
        f"a block has at most {_MOST_TILE} columns, fewer than twice those of C",
        lambda v: _fits(tile(v)[1], shape.n),
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
        "blocks below each other come in whole groups",
        lambda v: -(-shape.m // tile(v)[0]) % v["raster"] == 0,
    )
    yield Filter(
        "the parts of the reduction are whole tiles",
        lambda v: v["split"] == 1 or shape.depth % (v["split"] * v["depth"]) == 0,
    )


def _fits(tile: int, extent: int) -> bool:
    return tile <= _MOST_TILE and tile < 2 * max(extent, _SMALL)


# -- warps on tensor cores -----------------------------------------------------------------------


def _warps(shape: Shape, target: Target) -> tuple[list[Knob], list[Filter]]:
    chip = Chip.of(target)
    step, item = step_of(shape.dtype), dtypes.bytes_of(shape.dtype)
    left_along, right_along = shape.along_k
    is_narrow = item == 1
    pairs = [(a, b) for a in _SIDES for b in _SIDES]
    depths = tuple(d for d in (step, 2 * step, 4 * step) if shape.depth % d == 0)
    knobs = [
        Knob("warps", tuple(pair for pair in pairs if pair[0] * pair[1] <= _MOST_WARPS)),
        Knob("fragments", tuple(pair for pair in pairs if pair[0] <= pair[1])),
        Knob("depth", depths),
        *_common_knobs(shape, step, (not left_along, is_narrow and not right_along)),
    ]

    def registers(v: Values) -> int:
        rows, columns = v["fragments"]
        return int(4 * rows * columns + 4 * rows + 2 * columns) + _OTHER_REGISTERS

    return knobs, [
        Filter(f"at most {_MOST_SUMS} sums of a thread",
               lambda v: 4 * v["fragments"][0] * v["fragments"][1] <= _MOST_SUMS),
        *_common_limits(shape, chip, tile_of, registers, lambda v: shared_bytes(shape, v)),
    ]  # fmt: skip


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
            "no more columns of a thread than C has",
            lambda v: v["columns"][1] < 2 * max(shape.n, 1),
        ),
    ]  # fmt: skip


_Form: TypeAlias = Callable[[Shape, Target], tuple[list[Knob], list[Filter]]]
_FORMS: Mapping[str, _Form] = {"tiles": _tiles, "warps": _warps, "threads": _threads}
