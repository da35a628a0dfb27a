"""Compute the traffic of a loop nest between the caches.

If the lines touched in a loop fit a cache, they are still there when they are touched again. For
each cache, the outermost such loop is found, starting from the innermost. Cache conflicts count
where rows begin a power of two apart.
"""

from __future__ import annotations

from functools import cached_property

from dlcompiler.autotune.features.geometry import Access
from dlcompiler.autotune.features.nest import Nest
from dlcompiler.autotune.features.numbers import (
    Num,
    at_most,
    ceildiv,
    divide,
    equal,
    floordiv,
    gcd,
    least,
    most,
    product,
    select,
)
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.target import Target

LINE_BYTES = 64
PAGE_BYTES = 4096
LEVELS = ("L1", "L2", "L3")
_LINES_OF_PAGE = PAGE_BYTES // LINE_BYTES
_FULL = 0.75
"""Share of a cache that a working set may fill without being evicted."""


class WorkingSets:
    """Working sets of the loops of a nest, and the traffic into each cache from the next level.

    Parameters
    ----------
    nest : Nest
        The loops.
    warm : tuple of Num
        For each cache, 1 where it holds all data of the program: `warm_levels`.
    """

    def __init__(self, nest: Nest, warm: tuple[Num, ...]) -> None:
        self.nest = nest
        self._warm = warm
        self._depths = range(len(nest.loops) + 1)
        self._lines = [
            [_lines(access, depth) for depth in self._depths] for access in nest.statement.accesses
        ]
        self.footprints = [self._footprint(depth) for depth in self._depths]
        """For each depth, the cache space of the lines that the loops inside touch [byte]."""

    def _footprint(self, depth: int) -> Num:
        total: Num = 0
        for access, lines in zip(self.nest.statement.accesses, self._lines, strict=True):
            total = total + lines[depth] * _crowding(access, depth, lines[depth]) * LINE_BYTES
        return total

    def reuse(self, access: Access) -> tuple[Num, Num]:
        """Return the reuse distance of an access [byte], and its number of reuses.

        The reuse is along the innermost loop outside the straight-line code in which the address
        does not change; its iterations are the number of reuses.
        """
        distance: Num = 0
        count: Num = 1
        for depth in range(self.nest.body):
            extent = self.nest.loops[depth].extent
            is_reused = equal(access.strides[depth], 0) * at_most(2, extent)
            distance = select(is_reused, self.footprints[depth + 1], distance)
            count = select(is_reused, extent, count)
        return distance, count

    @cached_property
    def traffic(self) -> list[tuple[Num, ...]]:
        """For each access, the bytes loaded into L1, into L2 and into L3 from the next level."""
        levels = list(zip(_capacities(self.nest.target), self._warm, strict=True))
        return [
            tuple(self._traffic(lines, capacity, warm) for capacity, warm in levels)
            for lines in self._lines
        ]

    def _traffic(self, lines: list[Num], capacity: float, warm: Num) -> Num:
        """Return the traffic into a cache from the next level [byte].

        If the working set of the loops inside a loop fits, one run of that loop loads each line
        once, because lines shared by two iterations stay in the cache. If all data of the program
        fit, they are still there from the previous call.
        """
        trips = self.nest.trips
        result = lines[-1] * LINE_BYTES * trips[-1]
        for depth in reversed(self._depths):
            around = max(depth - 1, 0)
            fits = at_most(self.footprints[depth], capacity)
            result = select(fits, lines[around] * LINE_BYTES * trips[around], result)
        return select(warm, 0, result)


def _capacities(target: Target) -> tuple[float, ...]:
    return tuple(_FULL * target.cache_bytes(n) for n, _ in enumerate(LEVELS))


def warm_levels(statements: tuple[Statement, ...], target: Target) -> tuple[Num, ...]:
    """Return 1 for each cache that holds all buffers of a program, else 0."""
    buffers: dict[str, Num] = {}
    for statement in statements:
        for access in statement.accesses:
            size = product(access.shape) * access.itemsize
            buffers[access.name] = most(buffers.get(access.name, 0), size)
    total: Num = 0
    for size in buffers.values():
        total = total + size
    return tuple(at_most(total, capacity) for capacity in _capacities(target))


def _lines(access: Access, depth: int) -> Num:
    """Return an upper bound of the number of cache lines that the loops from `depth` on touch."""
    *outer, last = access.widths[depth] or (1,)
    rows = product(outer) * ceildiv(last * access.itemsize, LINE_BYTES)
    whole = ceildiv(product(access.shape) * access.itemsize, LINE_BYTES)
    return least(rows, whole + 1)


def _crowding(access: Access, depth: int, lines: Num) -> Num:
    """Return the factor by which cache conflicts increase the space that an access needs.

    Rows that begin a power of two apart begin at few offsets in a page, so they share few sets.
    """
    if len(access.shape) < 2:
        return 1
    rows, last = access.widths[depth][-2:]
    places = floordiv(PAGE_BYTES, gcd(access.shape[-1] * access.itemsize, PAGE_BYTES))
    along = ceildiv(last * access.itemsize, LINE_BYTES)
    used = least(along * least(rows, places), _LINES_OF_PAGE)
    return divide(most(least(lines, _LINES_OF_PAGE), used), most(used, 1))
