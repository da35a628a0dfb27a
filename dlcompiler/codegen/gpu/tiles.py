"""Tiles of products on tensor cores: the registers of a lane, and the places in memory of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu.lanes import is_multiple
from dlcompiler.ir import Buffer, Expr, IntrinsicCall, Region, binary, index_const, place_in
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.fragments import Tiles, operands_of
from dlcompiler.target.fragments import WARP, Fragment

Place = tuple[Expr, ...]
"""The indices of an element."""
ROW_BYTES = 16
"""Row of a matrix that ``ldmatrix`` loads; [byte]."""


class Copy(NamedTuple):
    """A copy between memory and the registers of a fragment."""

    fragment: Region
    tiles: Tiles
    memory: Region
    rows_and_columns: tuple[int, ...]
    """The dimensions in memory along which the rows and columns of the tile run."""


def loaded(call: IntrinsicCall) -> Copy:
    """Return what a load of a tile copies."""
    (region, dims, tiles), (source, along, _) = operands_of(call)
    assert tiles is not None
    is_transposed = dims != call.dims[0]
    return Copy(region, tiles, source, (along[1], along[0]) if is_transposed else along)


def stored(call: IntrinsicCall) -> Copy:
    """Return what a store of a tile copies."""
    (target, along, _), (region, _, tiles) = operands_of(call)
    assert tiles is not None
    return Copy(region, tiles, target, along)


def first_register(region: Region, tiles: Tiles) -> Expr:
    """Return the number of the first register of a tile."""
    tile: Expr = index_const(0)
    for dim, count in enumerate(tiles.counts(region.buffer)):
        index = _quotient(region.indices[dim], tiles.size(dim))
        tile = binary("add", binary("mul", tile, index_const(count)), index)
    return binary("mul", tile, index_const(tiles.fragment.registers))


def _quotient(index: Expr, size: int) -> Expr:
    return index if size == 1 else binary("floordiv", index, index_const(size))


def places(copy: Copy, lane: Expr) -> list[list[Place]]:
    """Return the places in memory of the elements that a lane holds, register by register."""
    packed = copy.tiles.fragment.packed
    found = list(_places(copy, lane))
    return [found[start : start + packed] for start in range(0, len(found), packed)]


def _places(copy: Copy, lane: Expr) -> Iterator[Place]:
    fragment, four = copy.tiles.fragment, index_const(4)
    group, within = binary("floordiv", lane, four), binary("floormod", lane, four)
    step = 2 if fragment.matrix == "c" else fragment.packed
    along_row, along_column = (group, binary("mul", within, index_const(step)))
    if fragment.matrix == "b":
        along_row, along_column = along_column, along_row
    for element in range(fragment.elements):
        row, column = fragment.offset(element)
        place = (
            binary("add", along_row, index_const(row)),
            binary("add", along_column, index_const(column)),
        )
        yield place_in(copy.memory, copy.rows_and_columns, place)


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """A load by ``ldmatrix``: of matrices of 8 rows of 16 bytes, one for each register."""

    row: Place
    """Where the row begins whose address a lane gives."""
    count: int
    """Number of matrices; lanes from ``8 * count`` on give addresses that are not used."""
    is_transposed: bool
    """Whether rows in memory are columns of the registers' matrices, of 2 bytes an element."""


def matrices(copy: Copy, lane: Expr, analyzer: Analyzer) -> Matrices | None:
    """Return how ``ldmatrix`` loads a tile; None where it cannot.

    The tile has to be in shared memory, with rows of neighbouring elements, each at a multiple of
    16 bytes.

    Notes
    -----
    **Source:** PTX ISA 8.8, "ldmatrix".
    """
    fragment, buffer = copy.tiles.fragment, copy.memory.buffer
    if buffer.scope != "shared" or fragment.matrix == "c":
        return None
    rows, columns = copy.rows_and_columns
    along, across = (columns, rows) if fragment.matrix == "a" else (rows, columns)
    is_transposed = fragment.matrix == "b" and buffer.strides[along] != 1
    if is_transposed and fragment.packed != 2:
        return None
    if buffer.strides[across if is_transposed else along] != 1:
        return None
    outer, inner = _row_of(lane, fragment, is_transposed=is_transposed)
    place = (outer, inner) if fragment.matrix == "a" else (inner, outer)
    row = place_in(copy.memory, copy.rows_and_columns, place)
    if not is_multiple(buffer, row, ROW_BYTES // dtypes.bytes_of(buffer.dtype), analyzer):
        return None
    return Matrices(row, fragment.registers, is_transposed)


def _row_of(lane: Expr, fragment: Fragment, *, is_transposed: bool) -> tuple[Expr, Expr]:
    """Return the first element of a lane's row: across and along the elements of registers."""

    def part(divisor: int, modulus: int, factor: int = 1) -> Expr:
        """Return some bits of the lane's number, times a factor."""
        end = index_const(divisor * modulus)
        rest = lane if divisor * modulus == WARP else binary("floormod", lane, end)
        return binary("mul", binary("floordiv", rest, index_const(divisor)), index_const(factor))

    step = 4 * fragment.packed
    if fragment.matrix == "a":
        return part(1, 16), part(16, 2, step)
    if is_transposed:
        return index_const(0), part(1, 16)
    return part(1, 8), part(8, 2, step)


def are_one_word(buffer: Buffer, elements: Sequence[Place], analyzer: Analyzer) -> bool:
    """Tell whether elements are proved to be neighbours, at a multiple of their number."""
    first = analyzer.affine(flat_index(buffer, elements[0]))
    distances = [analyzer.affine(flat_index(buffer, each)).plus(first, -1) for each in elements]
    are_neighbours = all(d.is_constant and d.constant == n for n, d in enumerate(distances))
    return are_neighbours and is_multiple(buffer, elements[0], len(elements), analyzer)
