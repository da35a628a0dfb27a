"""Sort a buffer: short blocks by counting, then pairs of sorted runs by merging.

*Before*, then *after* a merge of runs of 4 elements::

    1 3 7 9 | 2 4 5 8        1 2 3 4 5 7 8 9

All runs have the same length, a block times a power of two. So both ends of a merged run are
written in the same loop, and neither end leaves its run. Equal elements stay in order. NaN is
larger than all numbers. No step branches on a comparison, whose result cannot be guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler import dtypes, te
from dlcompiler.ir import BufferView, Builder, Expr, compare

LONGEST_BLOCK = 32
"""Most elements that are sorted by counting; [1]."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How a buffer is divided."""

    block: int
    """Elements of a block; [1]."""
    merges: int
    """How often pairs of runs are merged."""

    @property
    def size(self) -> int:
        """Elements of the buffer; [1]."""
        return self.block << self.merges


def runs_of(count: int) -> Runs:
    """Divide a buffer for at least `count` elements.

    Examples
    --------
    >>> runs_of(20), runs_of(1000).size, runs_of(10000)
    (Runs(block=20, merges=0), 1024, Runs(block=20, merges=9))
    """
    merges = 0
    while -(-count >> merges) > LONGEST_BLOCK:
        merges += 1
    return Runs(-(-count >> merges), merges)


def comes_before(a: Expr, b: Expr, *, is_ascending: bool) -> Expr:
    """Tell whether a comes before b if b is the first of the two, so not if they are equal."""
    if not dtypes.is_float(a.dtype):
        return compare("lt", a, b) if is_ascending else compare("lt", b, a)
    is_not, number = (b <= a, a) if is_ascending else (a <= b, b)
    is_first: Expr = te.select(is_not, te.const(False, "bool"), number == number)
    return is_first


def last_value(dtype: str, *, is_ascending: bool) -> Expr:
    """Return a value that no value comes after."""
    if dtypes.is_float(dtype):
        return te.const(float("nan") if is_ascending else float("-inf"), dtype)
    return te.max_value(dtype) if is_ascending else te.min_value(dtype)


@dataclass(frozen=True, slots=True)
class Sorter:
    """Statements that sort a buffer of keys, and move other buffers with it."""

    ib: Builder
    """Gets the statements."""
    runs: Runs
    """How the buffers are divided."""
    keys: BufferView
    """Of shape ``(2, size)``: row 0 holds the elements, row 1 is free."""
    moved: tuple[BufferView, ...]
    """Of the same shape: they are put in the order of the keys."""
    is_ascending: bool
    """The smallest element comes first."""

    @property
    def result(self) -> int:
        """The row that holds the sorted elements."""
        return (1 + self.runs.merges) % 2

    def pad(self, count: int) -> None:
        """Emit a loop that fills row 0 from a place on with values that no value comes after."""
        with self.ib.for_range(count, self.runs.size, "i") as i:
            self.keys[0, i] = last_value(self.keys.dtype, is_ascending=self.is_ascending)
            for view in self.moved:
                view[0, i] = te.const(0, view.dtype)

    def sort(self) -> None:
        """Emit the statements that sort row 0."""
        ib, runs = self.ib, self.runs
        with ib.for_range(0, runs.size // runs.block, "run") as run:
            self._count(run * runs.block)
        if not runs.merges:
            return
        width = ib.allocate("int32", (1,), "width", "local")
        width[0] = te.const(runs.block, "int32")
        with ib.for_range(0, runs.merges, "merge") as merge:
            own = ib.let("own", width[0])
            pairs = te.floordiv(te.const(runs.size // 2, "int32"), own)
            with ib.for_range(0, pairs.astype("index"), "pair") as pair:
                self._merge(pair.astype("int32") * (own + own), own, (merge + 1) % 2)
            width[0] = own + own

    def _count(self, start: Expr) -> None:
        """Sort a block from row 0 to row 1: the rank of an element is its new place."""
        ib, block, keys = self.ib, self.runs.block, self.keys
        ranks = ib.allocate("int32", (block,), "ranks", "local")
        one, zero = te.const(1, "int32"), te.const(0, "int32")
        with ib.for_range(0, block, "i", kind="vectorize") as i:
            ranks[i] = zero
        with (
            ib.for_range(0, block, "other") as k,
            ib.for_range(0, block, "i", kind="vectorize") as i,
        ):
            a, b = keys[0, start + k], keys[0, start + i]
            is_less = comes_before(a, b, is_ascending=self.is_ascending)
            is_more = comes_before(b, a, is_ascending=self.is_ascending)
            is_first = te.select(is_more, te.const(False, "bool"), te.const(True, "bool"))
            ranks[i] = ranks[i] + te.select(te.select(k < i, is_first, is_less), one, zero)
        with ib.for_range(0, block, "i") as i:
            place = te.assume_bounds(start + ranks[i].astype("index"))
            for view in (keys, *self.moved):
                view[1, place] = view[0, start + i]

    def _merge(self, start: Expr, width: Expr, source: Expr) -> None:
        """Merge two runs of a row to the other row, from both ends."""
        ib, one = self.ib, te.const(1, "int32")
        middle, end = ib.let("middle", start + width), ib.let("end", start + width + width)
        i, j, p, q = (ib.allocate("int32", (1,), name, "local") for name in ("i", "j", "p", "q"))
        i[0], j[0], p[0], q[0] = start, middle, middle - one, end - one
        with ib.for_range(0, width.astype("index"), "step") as step:
            x, y = ib.let("x", i[0]), ib.let("y", j[0])
            is_right = self._is_right_first(x, y, source)
            moves = is_right.astype("int32")
            i[0], j[0] = x + (one - moves), y + moves
            self._move(te.select(is_right, y, x), source, start + step.astype("int32"))
            x, y = ib.let("x", p[0]), ib.let("y", q[0])
            is_right = self._is_right_first(x, y, source)
            moves = is_right.astype("int32")
            p[0], q[0] = x - moves, y - (one - moves)
            self._move(te.select(is_right, x, y), source, end - one - step.astype("int32"))

    def _is_right_first(self, left: Expr, right: Expr, source: Expr) -> Expr:
        """Compare an element of the left run with one of the right run."""
        keys = self.keys[source, _inside(left)], self.keys[source, _inside(right)]
        is_first = comes_before(keys[1], keys[0], is_ascending=self.is_ascending)
        return self.ib.let("is_right_first", is_first)

    def _move(self, place: Expr, source: Expr, target: Expr) -> None:
        place = self.ib.let("place", place)
        for view in (self.keys, *self.moved):
            view[1 - source, _inside(target)] = view[source, _inside(place)]


def _inside(place: Expr) -> Expr:
    return te.assume_bounds(place.astype("index"))
