"""Compute powers of float32; those of float64 have the same signs and special cases.

``x**y = exp2(y * log2|x|)`` in float64, whose error is far below a unit in the last place of
float32. The sign and the special cases are selected afterwards.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.exponential import power_of_two
from dlcompiler.codegen.llvm.functions.logarithm import INFINITY, NAN, normalized, split
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    at_least,
    at_most,
    choose,
    fma,
    intrinsic,
    polynomial,
    with_sign_of,
)


def pow(x: Value, y: Value) -> Value:
    """Write x**y with the special cases of C: annex F.10.4.4 of ISO C 17."""
    size = abs(x)
    return with_sign_of_power(x, y, _exp2(y.to("float64") * _log2(size)).to("float32"))


def with_sign_of_power(x: Value, y: Value, result: Value) -> Value:
    """Write x**y from ``|x|**y``: its sign, and the special cases that a product does not give."""
    size = abs(x)
    whole = intrinsic("trunc", y)
    is_whole = whole.equals(y)
    half = y * 0.5
    is_odd = is_whole & ~intrinsic("trunc", half).equals(half)
    result = choose(is_odd, with_sign_of(result, x), result)

    is_negative = (x < 0.0) & (size < INFINITY)
    result = choose(is_negative & (whole < y), NAN, result)
    result = choose(is_negative & (whole > y), NAN, result)
    result = choose(size.equals(1.0) & abs(y).equals(INFINITY), 1.0, result)
    return choose(x.equals(1.0) | y.equals(0.0), 1.0, result)


def _log2(x: Value) -> Value:
    """Write log2 of a float32 that is not negative, in float64.

    ``log2(1 + f) = 2 atanh(s) / ln(2)`` with ``s = f / (2 + f)``.
    """
    normal, lowered = normalized(x)
    k, f = split(normal)
    k = choose(x < INFINITY, k + lowered, x)
    k = choose(x.equals(0.0), -INFINITY, k)
    f = f.to("float64")
    s = f / (2.0 + f)
    return fma(s, polynomial(s * s, table.POW_LOG2), k.to("float64"))


def _exp2(x: Value) -> Value:
    """Write 2**x, for results in the range of float32."""
    inside = at_least(at_most(x, 200.0), -200.0)
    magic = x.format.magic + x.format.bias
    shifted = inside + magic
    rest = inside - (shifted - magic)
    power = fma(rest, polynomial(rest, table.POW_EXP2), 1.0)
    return power * power_of_two(shifted.bits(), x.format)
