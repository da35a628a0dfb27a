"""Bound index operations by the bounds of their operands: one rule and one law per operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dlcompiler.arith.interval import EVERYTHING, Interval
from dlcompiler.arith.laws import c, d, law, x, y, z
from dlcompiler.ir import Logical, binary, compare
from dlcompiler.ir.operations import BinaryOp

Rule: TypeAlias = Callable[[Interval, Interval], Interval]


def bounds_of_operation(op: BinaryOp, a: Interval, b: Interval) -> Interval:
    """Return an interval that holds ``a op b`` for all values of the operands."""
    rule = BOUNDS.get(op)
    return EVERYTHING if rule is None else rule(a, b)


@law(x + y <= z + c, when=(x <= z, y <= c))
def total(a: Interval, b: Interval) -> Interval:
    """Bound ``+``: add the lower ends, and add the upper ends."""
    return Interval(a.low + b.low, a.high + b.high)


@law(x - y <= z - c, when=(x <= z, y >= c))
def difference(a: Interval, b: Interval) -> Interval:
    """Bound ``a - b`` by ``low(a) - high(b)`` and ``high(a) - low(b)``."""
    return Interval(a.low - b.high, a.high - b.low)


@law(
    Logical("and", binary("min", x * c, y * c) <= z * c, z * c <= binary("max", x * c, y * c)),
    when=(x <= z, z <= y),
)
def product(a: Interval, b: Interval) -> Interval:
    """Bound ``*`` by the smallest and the largest of the four products of ends."""
    return a.times(b)


@law(x // d <= y // d, when=(x <= y, d > 0))
@law(x // d >= 0, x // d <= x, when=(x >= 0, d >= 0))
@law(x // d <= binary("max", x, 0 - x), x // d >= binary("min", x, 0 - x))
def quotient(a: Interval, b: Interval) -> Interval:
    """Bound ``//``: divide the ends by a constant; else ``abs(a // b) <= abs(a)``."""
    if b.low == b.high > 0:
        return a.floordiv(int(b.low))
    if a.low >= 0 and b.low >= 0:
        return Interval(0, a.high)
    size = max(abs(a.low), abs(a.high))
    return Interval(-size, size)


@law(x % d >= 0, x % d <= binary("max", d - 1, 0), when=(d >= 0,))
@law(x % d <= x, when=(d >= 0, x >= 0))
@law(x % d >= binary("min", d + 1, 0), x % d <= binary("max", d - 1, 0))
def remainder(a: Interval, b: Interval) -> Interval:
    """Bound ``%`` by 0 and the divisor, and by the dividend if neither is negative."""
    least, most = min(b.low + 1, 0), max(b.high - 1, 0)
    if a.low >= 0 and b.low >= 0:
        return Interval(0, min(most, a.high))
    return Interval(least, most)


@law(binary("min", x, y) <= binary("min", z, c), when=(x <= z, y <= c))
def minimum(a: Interval, b: Interval) -> Interval:
    """Bound ``min`` by the smaller lower end and the smaller upper end."""
    return Interval(min(a.low, b.low), min(a.high, b.high))


@law(binary("max", x, y) <= binary("max", z, c), when=(x <= z, y <= c))
def maximum(a: Interval, b: Interval) -> Interval:
    """Bound ``max`` by the greater lower end and the greater upper end."""
    return Interval(max(a.low, b.low), max(a.high, b.high))


@law(
    binary("truncdiv", x, d) <= binary("max", x, 0 - x),
    binary("truncdiv", x, d) >= binary("min", x, 0 - x),
)
def truncated_quotient(a: Interval, b: Interval) -> Interval:
    """Bound ``truncdiv``: its absolute value is at most that of the dividend."""
    size = max(abs(a.low), abs(a.high))
    return Interval(-size, size)


@law(
    binary("truncmod", x, d) <= binary("max", x, 0), binary("truncmod", x, d) >= binary("min", x, 0)
)
def truncated_remainder(a: Interval, b: Interval) -> Interval:
    """Bound ``truncmod``: the result lies between 0 and the dividend."""
    return Interval(min(a.low, 0), max(a.high, 0))


@law(x & y >= 0, x & y <= x, when=(x >= 0,), bits=16)
def common_bits(a: Interval, b: Interval) -> Interval:
    """Bound ``&`` by an operand that is not negative: the result has no more bits."""
    highs = [operand.high for operand in (a, b) if operand.low >= 0]
    return Interval(0, min(highs)) if highs else EVERYTHING


@law(
    x | y >= 0,
    x | y <= z,
    x ^ y >= 0,
    x ^ y <= z,
    when=(compare("eq", z & (z + 1), 0), x >= 0, y >= 0, x <= z, y <= z),
    bits=16,
)
def all_bits(a: Interval, b: Interval) -> Interval:
    """Bound ``|`` and ``^`` by the power of 2 that is above both operands."""
    if min(a.low, b.low) < 0 or not (a.is_bounded and b.is_bounded):
        return EVERYTHING
    return Interval(0, (1 << int(max(a.high, b.high)).bit_length()) - 1)


BOUNDS: dict[BinaryOp, Rule] = {
    "add": total,
    "sub": difference,
    "mul": product,
    "floordiv": quotient,
    "floormod": remainder,
    "min": minimum,
    "max": maximum,
    "truncdiv": truncated_quotient,
    "truncmod": truncated_remainder,
    "bitand": common_bits,
    "bitor": all_bits,
    "bitxor": all_bits,
}
