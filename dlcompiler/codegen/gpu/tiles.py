"""Tiles of products on tensor cores: the registers of a lane, and the places in memory of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu.lanes import is_multiple
from dlcompiler.ir import Buffer, Expr, IntrinsicCall, Region, binary, index_const, place_in
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.fragments import Tiles, operands_of
from dlcompiler.target.fragments import Fragment

Place = tuple[Expr, ...]
"""The indices of an element."""


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


def places(copy: Copy, group: Expr, within: Expr) -> list[list[Place]]:
    """Return the places in memory of a lane's elements, register by register.

    Parameters
    ----------
    copy
        What is copied.
    group, within
        The number of the lane divided by 4, and what that leaves.
    """
    packed = copy.tiles.fragment.packed
    found = list(_places(copy.tiles.fragment, copy.memory, copy.rows_and_columns, group, within))
    return [found[start : start + packed] for start in range(0, len(found), packed)]


def _places(
    fragment: Fragment, region: Region, along: Sequence[int], group: Expr, within: Expr
) -> Iterator[Place]:
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
        yield place_in(region, along, place)


def are_one_word(buffer: Buffer, elements: Sequence[Place], analyzer: Analyzer) -> bool:
    """Tell whether elements are proved to be neighbours, at a multiple of their number."""
    first = analyzer.affine(flat_index(buffer, elements[0]))
    distances = [analyzer.affine(flat_index(buffer, each)).plus(first, -1) for each in elements]
    are_neighbours = all(d.is_constant and d.constant == n for n, d in enumerate(distances))
    return are_neighbours and is_multiple(buffer, elements[0], len(elements), analyzer)
