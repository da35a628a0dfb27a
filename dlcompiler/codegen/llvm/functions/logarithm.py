"""Compute logarithms to the bases e, 2 and 10, and of ``1 + x``.

``x = 2**k * (1 + f)`` exactly, with 1 + f from 1/sqrt(2) to sqrt(2), and
``log_b(x) = k * log_b(2) + log_b(1 + f)``. A polynomial gives ``log_b(1 + f) = c*f + f * P(f)``: c
is a power of two, so that the rounding of its product does no harm, and P is small.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.values import Value, choose, fma, polynomial

INFINITY, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Base:
    """Constants of the logarithm to one base in float32."""

    high: float
    """The first bits of log_b(2): its product with k is exact."""
    low: float
    """The rest of log_b(2) after these bits."""
    lead: float
    """The power of two near ``1 / ln(b)``."""
    tail: tuple[float, ...]
    """Coefficients of ``log_b(1 + f) / f - lead``."""


E = Base(0.693359375, -2.1219444005469057e-4, 1.0, table.LOG)
TWO = Base(1.0, 0.0, 1.0, table.LOG2)
TEN = Base(0.30078125, 2.4874566398119521e-4, 0.5, table.LOG10)


def log(x: Value) -> Value:
    """Write the natural logarithm."""
    return _log_64(x) if x.format.fraction > 23 else _log(x, E)


def log2(x: Value) -> Value:
    """Write the logarithm to the base 2."""
    return _log(x, TWO)


def log10(x: Value) -> Value:
    """Write the logarithm to the base 10."""
    return _log(x, TEN)


def log1p(x: Value) -> Value:
    """Write ``log(1 + x)``.

    The sum ``u = 1 + x`` is rounded. Its rounding error, divided by u, is added to the logarithm
    of u. Where u is near 1, f is x itself.
    """
    u = 1.0 + x
    lacking = choose(x < 1.0, x - (u - 1.0), 1.0 - (u - x))
    k, f = split(u)
    is_near_1 = k.equals(0.0)
    result = _sum(choose(is_near_1, x, f), k, E, choose(is_near_1, 0.0, lacking / u))
    result = choose(x.equals(0.0), x, result)
    return _at_the_ends(result, u)


def _log(x: Value, base: Base) -> Value:
    normal, k0 = normalized(x)
    k, f = split(normal)
    return _at_the_ends(_sum(f, k + k0, base), x)


def normalized(x: Value) -> tuple[Value, Value]:
    """Return (``x * 2**-k``, k) with k chosen so that the first is not subnormal."""
    fraction = x.format.fraction
    is_small = x < x.format.least_normal
    scaled = choose(is_small, x * 2.0**fraction, x)
    return scaled, choose(is_small, x.like(float(-fraction)), 0.0)


def split(x: Value) -> tuple[Value, Value]:
    """Return k, as a float, and f of ``x = 2**k * (1 + f)``."""
    form, pattern = x.format, x.bits()
    difference = pattern - x.like(0.5**0.5).bits()
    f = (pattern - (difference & -(1 << form.fraction))).as_float() - 1.0
    upper = difference if form.fraction < 32 else difference.shifted_bits(32).to("int32")
    k = upper >> form.fraction % 32
    return k.to(f"float{form.integer[3:]}"), f


def _sum(f: Value, k: Value, base: Base, more: Value | None = None) -> Value:
    """Write ``log_b(2**k * (1 + f)) + more``; small terms are added first, which rounds less."""
    rest = f * polynomial(f, base.tail)
    if more is not None:
        rest = rest + more
    if base.low:
        rest = fma(k, base.low, rest)
    return fma(k, base.high, fma(f, base.lead, rest))


def _at_the_ends(result: Value, x: Value) -> Value:
    """Select the results for 0, infinity, NaN and negative numbers."""
    result = choose(x < INFINITY, result, x)
    result = choose(x.equals(0.0), -INFINITY, result)
    return choose(x < 0.0, NAN, result)


def _log_64(x: Value) -> Value:
    """Write the natural logarithm of float64, by ``log(1 + f) = 2 atanh(s)``, ``s = f / (2 + f)``.

    ``2s = f - s*f`` and ``s*f = f**2/2 - s * f**2/2``, so that the largest term, f, is exact.

    Notes
    -----
    **Source:** the derivation of `e_log.c` in fdlibm, Sun Microsystems, 1993.
    """
    normal, k0 = normalized(x)
    k, f = split(normal)
    k = k + k0
    s = f / (2.0 + f)
    z = s * s
    half = f * f * 0.5
    rest = fma(s, fma(z, polynomial(z, table.LOG_64), half), k * _LN2_LOW)
    return _at_the_ends(fma(k, _LN2_HIGH, f - (half - rest)), x)


_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
