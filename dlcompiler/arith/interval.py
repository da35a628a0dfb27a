"""Intervals: all integers between two ends, either of which may be infinite."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler.ir.operations import CompareOp
from dlcompiler.records import slot_setters

INFINITY = math.inf
#: A longer number counts as infinite in a product, which would be too long to compute with.
LONGEST = 1 << 256


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; infinite ends are floats."""

    low: float
    high: float

    def __init__(self, low: float, high: float) -> None:
        _set_low(self, low)
        _set_high(self, high)

    @property
    def is_bounded(self) -> bool:
        """Tell whether both ends are numbers."""
        return self.low > -INFINITY and self.high < INFINITY

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def times(self, other: Interval) -> Interval:
        """Return an interval that contains all products ``a * b`` of their values."""
        ends = [_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def floordiv(self, divisor: int) -> Interval:
        """Return the interval of ``x // divisor`` for a positive number."""
        return Interval(_floordiv(self.low, divisor), _floordiv(self.high, divisor))

    def decide(self, op: CompareOp) -> bool | None:
        """Decide ``a op b``, given that ``a - b`` is in this interval; None if undecided."""
        low, high = self.low, self.high
        match op:
            case "lt":
                yes, no = high < 0, low >= 0
            case "le":
                yes, no = high <= 0, low > 0
            case "gt":
                yes, no = low > 0, high <= 0
            case "ge":
                yes, no = low >= 0, high < 0
            case "eq":
                yes, no = low == high == 0, low > 0 or high < 0
            case "ne":
                yes, no = low > 0 or high < 0, low == high == 0
        return True if yes else False if no else None


_set_low, _set_high = slot_setters(Interval)
EVERYTHING = Interval(-INFINITY, INFINITY)
NATURAL = Interval(0, INFINITY)


def _times(a: float, b: float) -> float:
    if a == 0 or b == 0:
        return 0
    if math.isinf(a) or math.isinf(b) or abs(a) > LONGEST or abs(b) > LONGEST:
        return INFINITY if (a > 0) == (b > 0) else -INFINITY
    return a * b


def _floordiv(value: float, divisor: int) -> float:
    return value if math.isinf(value) else value // divisor
