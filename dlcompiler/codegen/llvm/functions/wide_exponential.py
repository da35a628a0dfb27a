"""Powers of float64 to the base 2, and hyperbolic functions."""

from __future__ import annotations

import math

from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.exponential import E, halves, power_of_two, reduced
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    at_least,
    at_most,
    choose,
    fma,
    polynomial,
    with_sign_of,
)

LOG2_E = (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56"))
_SINH = tuple(1 / math.factorial(2 * n + 3) for n in range(9))
"""Coefficients of ``(sinh(x) - x) / x**3`` as a power series of ``x**2``."""


def exp2(x: Value) -> Value:
    """Write 2**x."""
    return exp2_of_pair(x, x.like(0.0))


def exp2_of_pair(high: Value, low: Value) -> Value:
    """Write ``2**(high + low)``; where high is beyond the range of results, low is not used."""
    inside = at_least(at_most(high, 1100.0), -1100.0)
    magic = high.format.magic + 2 * high.format.bias
    shifted = inside + magic
    rest = inside - (shifted - magic)
    rest = (rest + choose(inside.equals(high), low, 0.0)) * math.log(2)
    return _scaled(rest, shifted.bits())


def sinh(x: Value) -> Value:
    """Write the hyperbolic sine: its series up to 1, then half of ``exp(x) - exp(-x)``."""
    size, square = abs(x), x * x
    near = fma(size * square, polynomial(square, _SINH), size)
    far = _half_of_exp(size) - _half_of_exp(-size)
    return with_sign_of(choose(size > 1.0, far, near), x)


def cosh(x: Value) -> Value:
    """Write the hyperbolic cosine: half of ``exp(x) + exp(-x)``."""
    size = abs(x)
    return _half_of_exp(size) + _half_of_exp(-size)


def _half_of_exp(x: Value) -> Value:
    inside = at_least(at_most(x, 711.0), -750.0)
    rest, pattern = reduced(inside, E["float64"], 2 * x.format.bias - 1)
    return _scaled(rest, pattern)


def _scaled(rest: Value, pattern: Value) -> Value:
    """Write ``2**n * e**rest`` from an integer whose low bits are n and twice the bias."""
    near_1 = fma(rest, polynomial(rest, table.EXP_64), 1.0)
    # In two halves, of which no product but the last leaves the range of normal numbers.
    first, second = (power_of_two(half, rest.format) for half in halves(pattern))
    return near_1 * first * second
