"""Compute powers of e, 2 and 10, and with them `tanh` and `sigmoid`.

``b**x = 2**n * b**r``, where n is the integer nearest to ``log2(b) * x``, and the rest is
``r = x - n * log_b(2)``. To compute r exactly enough, ``log_b(2)`` is split into a number of few
bits, whose product with n is exact, and a small one. A polynomial gives ``b**r = 1 + r * P(r)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.values import (
    Format,
    Value,
    at_least,
    at_most,
    by_steps,
    choose,
    fma,
    polynomial,
    with_sign_of,
)


@dataclass(frozen=True)
class Base:
    """Constants of ``b**x`` in one format."""

    per_two: float
    """log2(b)."""
    high: float
    """The first bits of log_b(2): its product with n is exact."""
    low: float
    """The rest of log_b(2) after these bits."""
    lowest: float
    """Here and below, the result is rounded to 0."""
    highest: float
    """Here and above, the result is infinite."""
    tail: tuple[float, ...]
    """Coefficients of ``(b**r - 1) / r``."""


E = {
    "float32": Base(
        1.4426950408889634, 0.693359375, -2.1219444005469057e-4, -104.0, 89.0, table.EXP
    ),
    "float64": Base(
        1.4426950408889634, float.fromhex("0x1.62e42feep-1"),
        float.fromhex("0x1.a39ef35793c76p-33"), -746.0, 710.0, table.EXP_64,
    ),
}  # fmt: skip
TWO = {"float32": Base(1.0, 1.0, 0.0, -151.0, 129.0, table.EXP2)}
TEN = {
    "float32": Base(3.3219280948873626, 0.30078125, 2.4874566398119521e-4, -45.5, 38.6, table.EXP10)
}


def exp(x: Value) -> Value:
    """Write e**x."""
    return _power(x, E)


def normal_exp(x: Value) -> Value:
    """Write e**x, if the result is known to be a normal number."""
    base = _of(E, x)
    rest, pattern = reduced(x, base, x.format.bias)
    return _near_1(rest, base) * power_of_two(pattern, x.format)


def exp2(x: Value) -> Value:
    """Write 2**x."""
    return _power(x, TWO)


def exp_below_1(x: Value) -> Value:
    """Write ``e**min(x, 0)``."""
    return _power_below_1(x, E)


def exp10(x: Value) -> Value:
    """Write 10**x."""
    return _power(x, TEN)


def sigmoid(x: Value) -> Value:
    """Write ``1 / (1 + exp(-x))``.

    With ``exp(-x) = 2**n * (1 + t)`` and ``w = 2**-|n|``, the result is ``w / ((1 + w) + t)`` for
    n >= 0, and ``1 / ((1 + w) + w*t)`` for n < 0. The rounding error of ``1 + w`` is added to the
    small term. The quotient is multiplied by w in two halves, so that a subnormal result is rounded
    only once.
    """
    base, form = _of(E, x), x.format
    inside = at_least(at_most(-x, -base.lowest), base.lowest)
    rest, pattern = reduced(inside, base, 2 * form.bias)
    t = rest * polynomial(rest, base.tail)
    zero = x.like(form.magic + 2 * form.bias).bits()  # the pattern of n = 0
    is_large = pattern < zero
    exponent = choose(is_large, pattern, (zero + 2 * form.bias) - pattern)
    w1, w2 = (power_of_two(half, form) for half in halves(exponent))
    w = w1 * w2
    near_1 = 1.0 + w
    lost = w - (near_1 - 1.0)
    denominator = near_1 + (choose(is_large, w * t, t) + lost)
    return choose(is_large, 1.0, w1) / denominator * choose(is_large, 1.0, w2)


def tanh(x: Value) -> Value:
    """Write the hyperbolic tangent.

    Near 0 it is ``s + s**3 * P(s**2)`` with ``s = abs(x)``. Further out it is
    ``1 - 2 / (1 + exp(2*s))``. The result gets the sign of x.
    """
    bound, limit, tail = _TANH[dtypes.element(x.dtype)]
    size, square = abs(x), x * x
    near = fma(size * square, polynomial(square, tail), size)
    far = 1.0 - 2.0 / (1.0 + normal_exp(at_most(size + size, limit)))
    return with_sign_of(choose(size > bound, far, near), x)


_TANH = {"float32": (0.64, 18.1, table.TANH), "float64": (0.64, 38.2, table.TANH_64)}
"""Where "further out" begins, twice the number at which the result is 1, and coefficients."""


def _power(x: Value, bases: dict[str, Base]) -> Value:
    base = _of(bases, x)
    inside = at_least(at_most(x, base.highest), base.lowest)
    rest, pattern = reduced(inside, base, 2 * x.format.bias)
    # In two halves, of which no product but the last leaves the range of normal numbers.
    first, second = (power_of_two(half, x.format) for half in halves(pattern))
    return _near_1(rest, base) * first * second


def _power_below_1(x: Value, bases: dict[str, Base]) -> Value:
    """Write ``b**min(x, 0)``, a power that is at most 1.

    Here n <= 0, so 2**n is computed as ``2**(n + k) * 2**-k``, whose first factor is always normal;
    in general, `halves` is needed. The code is meant for long arrays, where the number of
    operations matters more than their latency.
    """
    base, raised = _of(bases, x), 2 * x.format.fraction
    # The power of the least normal number is 1, too; with 0, LLVM makes two instructions of one.
    inside = at_least(at_most(x, x.format.least_normal), base.lowest)
    rest, pattern = reduced(inside, base, x.format.bias + raised)
    near_1 = fma(rest, by_steps(rest, base.tail), 1.0)
    return near_1 * power_of_two(pattern, x.format) * 2.0**-raised


def _near_1(rest: Value, base: Base) -> Value:
    """Write b**r for the rest r, which is near 0: the result is near 1."""
    return fma(rest, polynomial(rest, base.tail), 1.0)


def _of(bases: dict[str, Base], x: Value) -> Base:
    return bases[dtypes.element(x.dtype)]


def reduced(x: Value, base: Base, offset: int) -> tuple[Value, Value]:
    """Return the rest r, and an integer whose low bits are ``n + offset``."""
    magic = x.format.magic + offset
    shifted = fma(x, base.per_two, magic)
    n = shifted - magic
    rest = fma(n, -base.high, x)
    if base.low:
        rest = fma(n, -base.low, rest)
    return rest, shifted.bits()


def halves(n: Value) -> tuple[Value, Value]:
    """Write two integers of about n / 2 whose sum is n; only their low bits are valid."""
    half = n.shifted_bits(1)
    return half, n - half


def power_of_two(biased: Value, form: Format) -> Value:
    """Write 2**n, a normal number, from an integer whose low bits are ``n + bias``."""
    return (biased << form.fraction).as_float()
