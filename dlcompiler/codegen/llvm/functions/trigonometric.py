"""Compute sine and cosine of float32.

``x = n * pi/2 + r`` with r from -pi/4 to pi/4; the last two bits of n choose between the sine and
the cosine of r, and the sign. Up to `LIMIT`, the rest is ``x - n*high - n*low`` in float64, where
high has so few bits that its product with n is exact; above that it comes from integers.
"""

from __future__ import annotations

import math

from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    choose,
    element_of,
    fma,
    if_any,
    polynomial,
)

LIMIT = 2.0**20
"""From here on, numbers are multiplied with the digits of 2/pi."""

_HIGH = float.fromhex("0x1.921fb544p+0")  # 33 bits of pi/2
_LOW = float.fromhex("0x1.0b4611a626331p-34")  # the next 53
_DIGITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE
"""The first 200 bits of 2/pi after the point. **Source:** the table of ``k_rem_pio2.c``, fdlibm."""
_WORDS = tuple(((_DIGITS << 16) >> 32 * n) & 0xFFFFFFFF for n in reversed(range(7)))
"""The same in words of 32 bits, after a byte of zeros."""


def sin(x: Value) -> Value:
    """Write the sine of x [rad]."""
    r, n = _reduced(x)
    return choose(x.equals(0.0), x, _turned(r, n))


def cos(x: Value) -> Value:
    """Write the cosine of x [rad], computed as ``sin(x + pi/2)``."""
    r, n = _reduced(x)
    return _turned(r, n + 1)


def _turned(r: Value, n: Value) -> Value:
    """Write ``sin(n * pi/2 + r)``."""
    z = r * r
    sine = fma(r * z, polynomial(z, table.SIN), r)
    cosine = fma(z, fma(z, polynomial(z, table.COS), -0.5), 1.0)
    value = choose((n & 1).equals(0), sine, cosine)
    return (value.bits() ^ ((n & 2) << 30)).as_float()


def _reduced(x: Value) -> tuple[Value, Value]:
    """Return r, and an int32 with the low bits of n, for ``x = n * pi/2 + r``."""
    wide = x.to("float64")
    magic = wide.format.magic
    shifted = fma(wide, 2 / math.pi, magic)
    n = shifted - magic
    r = fma(n, -_LOW, fma(n, -_HIGH, wide)).to("float32")
    turns = shifted.bits().to("int32")
    is_large = (abs(x) >= LIMIT) & (abs(x) < float("inf"))

    def by_digits() -> tuple[Value, Value]:
        exact_r, exact_n = _reduced_by_digits(choose(is_large, x, LIMIT))
        return choose(is_large, exact_r, r), choose(is_large, exact_n, turns)

    r, turns = if_any(is_large, by_digits, (r, turns))
    return r, turns


def _reduced_by_digits(x: Value) -> tuple[Value, Value]:
    """Return r and n of finite numbers of size `LIMIT` or more.

    ``x = m * 2**e`` with an integer m of 24 bits. The product ``x * 2/pi`` is needed only modulo 4,
    to 64 bits. So m is multiplied by three words of the binary digits of 2/pi; the digits before
    these are skipped, because they contribute multiples of 4.

    Notes
    -----
    **Source:** M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM
    Newsletter 18(1), 1983. No float32 is nearer than 2**-30 to a multiple of pi/2, so that 2**-62
    leaves 32 bits right.
    """
    pattern = abs(x).bits()
    start = (pattern >> 23) - (150 - 6)  # e + 6: the first bit of the digits, with the zeros
    word, shift = start >> 5, (start & 31).to("uint64")
    m = ((pattern & 0x7FFFFF) | 0x800000).to("uint64")
    words = [
        element_of("dlc_two_over_pi", _WORDS, "uint32", word + n).to("uint64") for n in range(4)
    ]
    high, middle, low = ((((words[n] << 32) | words[n + 1]) << shift >> 32) * m for n in range(3))
    product = ((high << 32) + middle + (low >> 32)).to("int64")  # 2**62 is a quarter turn
    n = (product + (1 << 61)) >> 62
    rest = product - (n << 62)
    r = (rest.to("float64") * (math.pi / 2 * 2.0**-62)).to("float32")
    is_negative = x < 0.0
    turns = n.to("int32")
    return choose(is_negative, -r, r), choose(is_negative, 0 - turns, turns)
