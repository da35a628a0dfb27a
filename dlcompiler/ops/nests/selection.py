"""Select the smallest elements of a row without sorting it.

The largest key among them is found bit by bit: each step counts in vectors how many keys are at
most a bound. Then these elements are collected in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler import dtypes, te
from dlcompiler.ir import BufferView, Builder, Expr

CHUNK = 64
"""Keys that are compared at once; [1]."""


def key_of(value: Expr, *, is_ascending: bool) -> Expr | None:
    """Return a signed integer by which elements are sorted; None if there is none.

    The first element has the smallest key. NaN counts as the largest number.
    """
    dtype = value.dtype
    key: Expr
    if dtypes.is_float(dtype):
        if dtypes.bits(dtype) > 32:
            return None
        key = te.sort_key(value)
    elif dtypes.is_unsigned(dtype) and dtypes.bits(dtype) >= 32:
        kind = dtype.removeprefix("u")
        key = value.astype(kind) ^ te.min_value(kind)
    else:
        key = value if dtype == "int64" else value.astype("int32")
    if is_ascending:
        return key
    turned: Expr = ~key
    return turned


@dataclass(frozen=True, slots=True)
class Selection:
    """Statements that collect the elements with the smallest keys."""

    ib: Builder
    """Gets the statements."""
    keys: BufferView
    """Signed integers: a multiple of `CHUNK`."""
    count: int
    """How many elements are collected; [1]."""

    def emit(self, collect: Callable[[Expr, Expr, Expr], None]) -> None:
        """Emit the statements.

        Parameters
        ----------
        collect : callable
            ``collect(number, place, key)`` emits the store of an element. It is called for some
            elements that are not selected: the next one has the same number, at most `count`.
        """
        ib, dtype = self.ib, self.keys.dtype
        bound = ib.allocate(dtype, (1,), "bound", "local")
        ties = ib.allocate("int32", (1,), "ties", "local")
        self._search(bound, ties)
        filled = ib.allocate("int32", (1,), "filled", "local")
        filled[0] = te.const(0, "int32")
        last = ib.let("last", bound[0])
        with ib.for_range(0, self.keys.shape[0] // CHUNK, "chunk") as chunk:
            start = chunk * CHUNK
            found = self._counted(start, 1, last)
            with ib.if_scope(found > 0), ib.for_range(0, CHUNK, "i") as i:
                key, number = ib.let("key", self.keys[start + i]), ib.let("number", filled[0])
                is_tie = te.select(key == last, ties[0] > 0, te.const(False, "bool"))
                taken = te.select(key < last, te.const(True, "bool"), is_tie)
                moves = ib.let("moves", taken.astype("int32"))
                collect(te.assume_bounds(number.astype("index")), start + i, key)
                ties[0] = ties[0] - (key == last).astype("int32")
                filled[0] = number + moves

    def _search(self, bound: BufferView, ties: BufferView) -> None:
        """Find the largest key that is selected, and how many elements with it are."""
        ib, dtype = self.ib, self.keys.dtype
        bits = dtypes.bits(dtype)
        count, one = te.const(self.count, "int32"), te.const(1, dtype)
        step = ib.allocate(dtype, (1,), "step", "local")
        is_open = ib.allocate("int32", (1,), "is_open", "local")
        bound[0], ties[0] = te.min_value(dtype), count
        step[0], is_open[0] = te.max_value(dtype), te.const(1, "int32")
        with ib.for_range(0, bits, "bit"), ib.if_scope(is_open[0] > 0):
            middle = ib.let("middle", bound[0] + step[0])
            found = self._counted(0, self.keys.shape[0] // CHUNK, middle)
            with ib.if_scope(found < count):  # the bound is larger than the middle
                bound[0] = middle + one
                ties[0] = count - found
            with ib.if_scope(found == count):  # these are all
                bound[0], ties[0] = middle, count
                is_open[0] = te.const(0, "int32")
            step[0] = step[0] >> one

    def _counted(self, start: Expr | int, chunks: int, bound: Expr) -> Expr:
        """Count the keys of some chunks that are at most a bound."""
        ib = self.ib
        counts = ib.allocate("int32", (CHUNK,), "counts", "local")
        one, zero = te.const(1, "int32"), te.const(0, "int32")
        with ib.for_range(0, CHUNK, "lane", kind="vectorize") as lane:
            counts[lane] = zero
        with (
            ib.for_range(0, chunks, "chunk") as chunk,
            ib.for_range(0, CHUNK, "lane", kind="vectorize") as lane,
        ):
            key = self.keys[start + chunk * CHUNK + lane]
            counts[lane] = counts[lane] + te.select(key <= bound, one, zero)
        width = CHUNK
        while width > 1:
            width //= 2
            with ib.for_range(0, width, "lane", kind="vectorize") as lane:
                counts[lane] = counts[lane] + counts[width + lane]
        return ib.let("found", counts[0])
