"""Numbers of about 106 bits: unevaluated sums of two float64.

The machine must round ``a*b + c`` once, in one instruction: see `Module.has_fma`.

**Source:** T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.codegen.llvm.functions.values import Operand, Value, choose, intrinsic


@dataclass(frozen=True)
class Pair:
    """The sum of two values, of which `high` is the sum rounded."""

    high: Value
    low: Value

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def plus(self, other: Pair) -> Pair:
        """Write a sum."""
        total = sum_of(self.high, other.high)
        return ordered_sum(total.high, total.low + (self.low + other.low))

    def times(self, other: Pair) -> Pair:
        """Write a product."""
        product = product_of(self.high, other.high)
        cross = exact_fma(self.high, other.low, self.low * other.high)
        return ordered_sum(product.high, product.low + cross)

    def over(self, other: Pair) -> Pair:
        """Write a quotient."""
        first = self.high / other.high
        rest = exact_fma(-first, other.high, self.high) + exact_fma(-first, other.low, self.low)
        return ordered_sum(first, rest / other.high)

    def root(self) -> Pair:
        """Write the square root of a number that is not negative."""
        first = intrinsic("sqrt", self.high)
        rest = exact_fma(-first, first, self.high) + self.low
        return ordered_sum(first, choose(first.equals(0.0), 0.0, rest / (first + first)))

    def total(self) -> Value:
        """Write the sum, rounded."""
        return self.high + self.low


def exact_fma(a: Value, b: Operand, c: Operand) -> Value:
    """Write ``a*b + c``, rounded once."""
    return intrinsic("fma", a, a.like(b), a.like(c))


def constant_pair(like: Value, high: float, low: float) -> Pair:
    """Return a number that is given as a sum of two."""
    return Pair(like.like(high), like.like(low))


def sum_of(a: Value, b: Operand) -> Pair:
    """Write the exact sum of two values."""
    b = a.like(b)
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def ordered_sum(a: Value, b: Value) -> Pair:
    """Write the exact sum of two values, of which the first is not the smaller one."""
    total = a + b
    return Pair(total, b - (total - a))


def product_of(a: Value, b: Operand) -> Pair:
    """Write the exact product of two values."""
    product = a * b
    return Pair(product, exact_fma(a, b, -product))
