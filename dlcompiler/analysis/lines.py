"""Count the cache lines that a region of a buffer touches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.analysis.index_sets import IndexSet
from dlcompiler.analysis.regions import Region, flattened
from dlcompiler.ir import Buffer

LONGEST_SPAN = 1 << 16
"""Longest region, from its first to its last element, whose addresses are enumerated."""


def lines_of(region: Region, buffer: Buffer, moved_by: int, line_bytes: int = 64) -> int:
    """Return the largest number of lines that a region touches, over all its positions.

    Parameters
    ----------
    region
        The region.
    buffer
        The buffer; its first element begins a line.
    moved_by
        The region may be shifted by any multiple of this many elements; 0: it is not shifted.
    line_bytes
        Size of a line; [byte].

    Returns
    -------
    int
        At most as many as there are elements. Where rows are not whole lines long, lines that two
        rows share may count twice.
    """
    size = max(line_bytes // dtypes.bytes_of(buffer.dtype), 1)
    shape, strides = buffer.static_shape, buffer.static_strides
    if region.is_flat:  # as if rows were not padded
        return _most_blocks(region.sets[0], size, moved_by)
    outer, inner = _rows(region.sets, shape, strides)
    rows = math.prod(item.count for item, _ in outer)
    apart = math.gcd(*(stride for _, stride in outer), moved_by)
    if rows > 1 and any(stride % size for _, stride in outer):
        span = inner.high - inner.low + sum(
            (item.high - item.low) * stride for item, stride in outer
        )  # fmt: skip
        if span <= LONGEST_SPAN:
            sets = [*(item for item, _ in outer), inner]
            whole = flattened(sets, [*(stride for _, stride in outer), 1])
            return min(_most_blocks(whole, size, moved_by), region.count)
    return min(rows * _most_blocks(inner, size, apart), region.count)


def lines_of_all(buffer: Buffer, line_bytes: int) -> int:
    """Return the number of cache lines of a whole buffer whose first element begins a line."""
    at = zip(buffer.static_shape, buffer.static_strides, strict=True)
    last = sum(max(extent - 1, 0) * stride for extent, stride in at)
    return -(-(last + 1) * dtypes.bytes_of(buffer.dtype) // line_bytes)


def _rows(
    sets: Sequence[IndexSet], shape: Sequence[int], strides: Sequence[int]
) -> tuple[list[tuple[IndexSet, int]], IndexSet]:
    """Return the outer sets with their strides, and the addresses within a contiguous row."""
    inner, length = IndexSet.single(0), 1
    left = list(zip(sets, shape, strides, strict=True))
    while left:
        item, extent, stride = left[-1]
        if extent == 1 and item.count == 1:
            left.pop()
            continue
        if not (inner.is_dense and inner.count == length and stride == length):
            break
        inner = inner.plus_set(item.scaled(stride))
        length *= extent
        left.pop()
    return [(item, stride) for item, _, stride in left], inner


def _most_blocks(addresses: IndexSet, size: int, moved_by: int) -> int:
    step = math.gcd(moved_by, size)
    return max(addresses.shifted(by).blocks(size) for by in range(0, size, step))
