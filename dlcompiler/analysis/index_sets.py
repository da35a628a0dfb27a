"""Sets of integers that indices take, as arithmetic progressions if possible, else as bit sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

MOST_BITS = 1 << 23
"""Longest bit set; a set that would need more is replaced by a progression around it."""
MOST_SHIFTS = 4096
"""Most members of the smaller of two bit sets that are added."""


@dataclass(frozen=True, slots=True)
class IndexSet:
    """The numbers ``low + step*n`` for n below `count`, or those n whose bit is set.

    Examples
    --------
    >>> tile = IndexSet.single(0).plus(1, 4).plus(8, 3)  # 8*i + j for i < 3, j < 4
    >>> len(list(tile)), tile.low, tile.high
    (12, 0, 19)
    >>> list(tile.clipped(3, 9))
    [3, 8, 9]
    """

    low: int
    step: int
    count: int
    """Members."""
    bits: int | None = None
    """None: a progression."""
    is_exact: bool = True
    """Whether the set is exact; otherwise it contains the exact set."""

    @staticmethod
    def single(value: int) -> IndexSet:
        """Return a set of one number."""
        return IndexSet(value, 1, 1)

    @staticmethod
    def between(low: int, high: int) -> IndexSet:
        """Return the numbers from `low` to `high`, both included."""
        return IndexSet(low, 1, max(high - low + 1, 0))

    @property
    def high(self) -> int:
        """The largest member; less than `low` if the set is empty."""
        last = self.count if self.bits is None else self.bits.bit_length()
        return self.low + self.step * (last - 1)

    @property
    def is_dense(self) -> bool:
        """Tell whether there is no gap between the members."""
        return self.bits is None and (self.step == 1 or self.count <= 1)

    def __iter__(self) -> Iterator[int]:
        """Yield the members, smallest first."""
        if self.bits is None:
            yield from range(self.low, self.high + 1, self.step)
            return
        for n, digit in enumerate(reversed(format(self.bits, "b"))):
            if digit == "1":
                yield self.low + self.step * n

    def shifted(self, by: int) -> IndexSet:
        """Return the set with a number added to each member."""
        return IndexSet(self.low + by, self.step, self.count, self.bits, self.is_exact)

    def scaled(self, by: int) -> IndexSet:
        """Return the set with each member multiplied by a nonzero number."""
        if by < 0:
            return self.scaled(-by).mirrored()
        return IndexSet(self.low * by, self.step * by, self.count, self.bits, self.is_exact)

    def mirrored(self) -> IndexSet:
        """Return the negatives of the members."""
        bits = self.bits
        if bits is not None:
            bits = int(format(bits, "b")[::-1], 2)
        return IndexSet(-self.high, self.step, self.count, bits, self.is_exact)

    def plus(self, factor: int, extent: int) -> IndexSet:
        """Return the set of all ``x + factor*n`` for members x and for n in [0, extent)."""
        if extent <= 0 or not self.count:
            return IndexSet(self.low, 1, 0, None, self.is_exact)
        if extent == 1 or factor == 0:
            return self
        if factor < 0:
            return self.shifted(factor * (extent - 1)).plus(-factor, extent)
        if self.bits is None and (sum_ := self._progression(factor, extent)):
            return sum_
        step = math.gcd(self.step, factor)
        if (self.high - self.low + factor * (extent - 1)) // step >= MOST_BITS:
            last = self.high + factor * (extent - 1)
            return IndexSet(self.low, step, (last - self.low) // step + 1, None, False)
        bits, done = self._bits_by(step), 1
        while done < extent:  # all sums of the first `done` multiples, twice as many at a time
            more = min(done, extent - done)
            bits |= bits << (factor // step * more)
            done += more
        return IndexSet(self.low, step, bits.bit_count(), bits, self.is_exact).normal()

    def _progression(self, factor: int, extent: int) -> IndexSet | None:
        """Return the result of `plus` if it is an arithmetic progression, else None."""
        step, count = self.step, self.count
        if count == 1:
            return IndexSet(self.low, factor, extent, None, self.is_exact)
        if factor % step == 0 and factor <= step * count:
            total = count + factor // step * (extent - 1)
            return IndexSet(self.low, step, total, None, self.is_exact)
        if step % factor == 0 and step <= factor * extent:
            total = extent + step // factor * (count - 1)
            return IndexSet(self.low, factor, total, None, self.is_exact)
        return None

    def plus_set(self, other: IndexSet) -> IndexSet:
        """Return the set of all sums of a member of this set and a member of the other."""
        for a, b in ((self, other), (other, self)):
            if b.bits is None:
                sums = a.shifted(b.low).plus(b.step, b.count)
                exact = sums.is_exact and b.is_exact
                return IndexSet(sums.low, sums.step, sums.count, sums.bits, exact)
        few, many = sorted((self, other), key=lambda item: item.count)
        step = math.gcd(few.step, many.step)
        low, high = few.low + many.low, few.high + many.high
        if few.count > MOST_SHIFTS or (high - low) // step >= MOST_BITS:
            return IndexSet(low, step, (high - low) // step + 1, None, False)
        bits, base = 0, many._bits_by(step)
        for member in few:
            bits |= base << ((member - few.low) // step)
        exact = few.is_exact and many.is_exact
        return IndexSet(low, step, bits.bit_count(), bits, exact).normal()

    def clipped(self, low: float, high: float) -> IndexSet:
        """Return the members from `low` to `high`, both included."""
        if low <= self.low and self.high <= high:
            return self
        first = 0 if low <= self.low else -(-(int(low) - self.low) // self.step)
        end = int(high) if high < self.high else self.high
        last = (end - self.low) // self.step
        if last < first:
            return IndexSet(self.low, 1, 0, None, self.is_exact)
        start, length = self.low + self.step * first, last - first + 1
        if self.bits is None:
            return IndexSet(start, self.step, length, None, self.is_exact)
        bits = (self.bits >> first) & ((1 << length) - 1)
        return IndexSet(start, self.step, bits.bit_count(), bits, self.is_exact).normal()

    def normal(self) -> IndexSet:
        """Return the same set, as a progression if it is one, beginning at its first member."""
        bits = self.bits
        if bits is None:
            return self
        if not bits:
            return IndexSet(self.low, 1, 0, None, self.is_exact)
        first = (bits & -bits).bit_length() - 1
        bits >>= first
        low = self.low + self.step * first
        if bits.bit_length() == self.count:
            return IndexSet(low, self.step, self.count, None, self.is_exact)
        return IndexSet(low, self.step, self.count, bits, self.is_exact)

    def union(self, other: IndexSet) -> IndexSet:
        """Return the union of two sets."""
        if not self.count or not other.count:
            return self if self.count else other
        if self.contains(other) or other.contains(self):
            return self if self.count >= other.count else other
        step = math.gcd(self.step, other.step, self.low - other.low)
        low, high = min(self.low, other.low), max(self.high, other.high)
        exact = self.is_exact and other.is_exact
        if (high - low) // step >= MOST_BITS:
            if self.is_dense and other.is_dense and max(self.low, other.low) <= min(
                self.high, other.high
            ) + 1:  # fmt: skip
                return IndexSet(low, 1, high - low + 1, None, exact)
            return IndexSet(low, step, (high - low) // step + 1, None, False)
        bits = self._bits_from(low, step) | other._bits_from(low, step)
        return IndexSet(low, step, bits.bit_count(), bits, exact).normal()

    def common(self, other: IndexSet) -> IndexSet:
        """Return the intersection of two sets."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        a, b = self.clipped(low, high), other.clipped(low, high)
        if not a.count or not b.count:
            return IndexSet(low, 1, 0)
        if a.is_dense or b.is_dense:
            return b.clipped(a.low, a.high) if a.is_dense else a.clipped(b.low, b.high)
        step = math.gcd(a.step, b.step, a.low - b.low)
        low = min(a.low, b.low)
        if (high - low) // step >= MOST_BITS:
            few = a if a.count < b.count else b
            return IndexSet(few.low, few.step, few.count, few.bits, False)
        bits = a._bits_from(low, step) & b._bits_from(low, step)
        return IndexSet(low, step, bits.bit_count(), bits).normal()

    def contains(self, other: IndexSet) -> bool:
        """Tell whether another set is known to be a subset; only quick tests are made."""
        if self is other or not other.count:
            return True
        if other.low < self.low or other.high > self.high:
            return False
        return self.is_dense or (
            (self.low, self.step, self.count, self.bits)
            == (other.low, other.step, other.count, other.bits)
        )

    def blocks(self, size: int) -> int:
        """Return how many of the ranges ``[size*n, size*n + size)`` contain a member."""
        if not self.count:
            return 0
        if self.bits is None:
            if self.step >= size:
                return self.count
            return self.high // size - self.low // size + 1
        bits = self._bits_by(1) << (self.low % size)
        done = 1
        while done < size:  # at the first bit of a block: whether any bit of it is set
            more = min(done, size - done)
            bits |= bits >> more
            done += more
        number = -(-bits.bit_length() // size)
        return (bits & IndexSet(0, size, number)._bits_by(1)).bit_count()

    def _bits_by(self, step: int) -> int:
        """Return the members as bits: bit k stands for ``low + k*step``."""
        width = self.step // step
        if self.bits is None:
            bits, done = 1, 1
            while done < self.count:
                more = min(done, self.count - done)
                bits |= bits << (width * more)
                done += more
            return bits
        return self.bits if width == 1 else _spread(self.bits, width)

    def _bits_from(self, low: int, step: int) -> int:
        return self._bits_by(step) << ((self.low - low) // step)


def _spread(bits: int, width: int) -> int:
    """Return `bits` with `width` - 1 zeros inserted between neighbouring bits."""
    return int(("0" * (width - 1)).join(format(bits, "b")), 2)
