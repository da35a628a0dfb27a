"""Sine, cosine and tangent of float64, and their inverse functions.

``x = n * pi/2 + r`` with a pair r from -pi/4 to pi/4. Up to `LIMIT`, r is x minus three products;
from there on it comes from a product of integers.
"""

from __future__ import annotations

import math
from functools import reduce

from dlcompiler.codegen.llvm.functions.pairs import (
    Pair,
    constant_pair,
    exact_fma,
    ordered_sum,
    product_of,
    sum_of,
)
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    choose,
    element_of,
    if_any,
    polynomial,
    with_sign_of,
)

LIMIT = 2.0**20
"""From here on, numbers are multiplied with the digits of 2/pi."""
HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_THIRD = float.fromhex("-0x1.f1976b7ed8fbcp-110")  # the next 53 bits of pi/2
#: The first 1216 bits of 2/pi after the point.
_DIGITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561"
    "B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484"
    "E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B"
    "3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
_WORDS = tuple(_DIGITS >> 32 * n & 0xFFFFFFFF for n in reversed(range(40)))
"""The same in words of 32 bits, after 64 zeros."""
_SIN = tuple((-1.0) ** (n + 1) / math.factorial(2 * n + 3) for n in range(8))
"""Coefficients of ``(sin(x) - x) / x**3`` as a power series of ``x**2``."""
_COS = tuple((-1.0) ** n / math.factorial(2 * n + 4) for n in range(8))
"""Coefficients of ``(cos(x) - 1 + x**2/2) / x**4`` as a power series of ``x**2``."""
_ATAN = tuple((-1.0) ** (n + 1) / (2 * n + 3) for n in range(21))
"""Coefficients of ``(atan(x) - x) / x**3`` as a power series of ``x**2``, x < tan(pi/8)."""


def sin(x: Value) -> Value:
    """Write the sine of x [rad]."""
    r, n = _reduced(x)
    return choose(x.equals(0.0), x, _turned(r, n))


def cos(x: Value) -> Value:
    """Write the cosine of x [rad], computed as ``sin(x + pi/2)``."""
    r, n = _reduced(x)
    return _turned(r, n + 1)


def tan(x: Value) -> Value:
    """Write the tangent of x [rad]: ``sin(r) / cos(r)``, or ``-cos(r) / sin(r)``."""
    r, n = _reduced(x)
    is_odd, sine, cosine = (n & 1).equals(1), _sine(r), _cosine(r)
    result = choose(is_odd, -cosine, sine) / choose(is_odd, sine, cosine)
    return choose(x.equals(0.0), x, result)


def atan(x: Value) -> Value:
    """Write the angle [rad] whose tangent is x."""
    size = abs(x)
    is_far, is_near = size > math.tan(3 * math.pi / 8), size < math.tan(math.pi / 8)
    above = choose(is_near, size, size - 1.0)
    below = choose(is_near, 1.0, size + 1.0)
    ratio = choose(is_far, -1.0, above) / choose(is_far, size, below)
    turned = choose(is_far, 2.0, choose(is_near, x.like(0.0), 1.0))  # eighths of a turn, twice
    z = ratio * ratio
    rest = exact_fma(ratio * z, polynomial(z, _ATAN), turned * (HALF_PI[1] / 2))
    start = sum_of(turned * (HALF_PI[0] / 2), ratio)
    return with_sign_of(start.high + (start.low + rest), x)


def asin(x: Value) -> Value:
    """Write the angle [rad] from -pi/2 to pi/2 whose sine is x."""
    return atan2(x, _other_side(x))


def acos(x: Value) -> Value:
    """Write the angle [rad] from 0 to pi whose cosine is x."""
    return atan2(_other_side(x), x)


def _other_side(x: Value) -> Value:
    """Write ``sqrt(1 - x**2)``, accurate also near 1."""
    above, below = sum_of(x.like(1.0), x), sum_of(x.like(1.0), -x)
    return above.times(below).root().total()


def atan2(y: Value, x: Value) -> Value:
    """Write the angle [rad] from -pi to pi of the point (x, y), as annex F.10.1.4 of ISO C 17."""
    infinity = float("inf")
    both = abs(x).equals(infinity) & abs(y).equals(infinity)
    across, along = choose(both, 1.0, abs(x)), choose(both, 1.0, abs(y))
    angle = choose(y.equals(0.0), 0.0, atan(along / across))
    is_left = x.bits() < 0
    behind = (2 * HALF_PI[0]) - (angle - 2 * HALF_PI[1])
    result = with_sign_of(choose(is_left, behind, angle), y)
    return choose(x.is_nan() | y.is_nan(), x + y, result)


def _turned(r: Pair, n: Value) -> Value:
    """Write ``sin(n * pi/2 + r)``."""
    value = choose((n & 1).equals(0), _sine(r), _cosine(r))
    sign = (n & 2).to("int64") << 62
    return (value.bits() ^ sign).as_float()


def _sine(r: Pair) -> Value:
    x = r.high
    z = x * x
    cube = x * z
    rest = polynomial(z, _SIN[1:])
    small = z * (0.5 * r.low - cube * rest) - r.low
    return x - (small - cube * _SIN[0])


def _cosine(r: Pair) -> Value:
    x = r.high
    z = x * x
    half = 0.5 * z
    most = 1.0 - half
    return most + (((1.0 - most) - half) + (z * z * polynomial(z, _COS) - x * r.low))


def _reduced(x: Value) -> tuple[Pair, Value]:
    """Return r, and an int32 with the low bits of n, for ``x = n * pi/2 + r``."""
    magic = x.format.magic
    is_large = (abs(x) >= LIMIT) & (abs(x) < float("inf"))
    shifted = exact_fma(x, 2 / math.pi, magic)
    n = shifted - magic
    first = exact_fma(-n, HALF_PI[0], x)  # exact: the digits that are left fit a float64
    second = product_of(n, HALF_PI[1])
    difference = sum_of(first, -second.high)
    near = ordered_sum(difference.high, exact_fma(-n, _THIRD, difference.low - second.low))
    turns = shifted.bits().to("int32")

    def by_digits() -> tuple[Value, Value, Value]:
        r, exact = _reduced_by_digits(choose(is_large, x, LIMIT))
        return r.high, r.low, exact

    high, low, turns = if_any(is_large, by_digits, (near.high, near.low, turns))
    return Pair(high, low), turns


def _reduced_by_digits(x: Value) -> tuple[Pair, Value]:
    """Return r and n of a finite number of size `LIMIT` or more.

    ``x = m * 2**e`` with an integer m of 53 bits. The product ``x * 2/pi`` is needed only modulo 4:
    m is multiplied by six words of the binary digits of 2/pi, without those before, which
    contribute multiples of 4.

    Notes
    -----
    **Source:** M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM
    Newsletter 18(1), 1983. No float64 is nearer than 2**-62 to a multiple of pi/2: of the 190 bits
    after the point, 128 remain.
    """
    pattern = abs(x).bits()
    start = ((pattern >> 52) - (1075 - 62)).to("int32")  # e + 62: the first digit, with the zeros
    word, shift = start >> 5, (start & 31).to("uint64")
    words = [
        element_of("dlc_two_over_pi_64", _WORDS, "uint32", word + n).to("uint64") for n in range(7)
    ]
    digits = [((words[n] << 32) | words[n + 1]) << shift >> 32 for n in range(6)]
    m = ((pattern & (1 << 52) - 1) | 1 << 52).to("uint64")
    parts = _low_words(digits, m & 0xFFFFFFFF, m >> 32)
    top = ((parts[5] << 32) | parts[4]).to("int64")  # 2**62 is a quarter turn
    n = (top + (1 << 61)) >> 62
    rest = top - (n << 62)
    pieces = [rest >> 32, (rest & 0xFFFFFFFF), *reversed(parts[1:4])]
    scaled = [piece.to("float64") * 2.0 ** (-30 - 32 * k) for k, piece in enumerate(pieces)]
    turn = reduce(_added, reversed(scaled[:-1]), Pair(scaled[-1], x.like(0.0)))
    r = turn.times(constant_pair(x, *HALF_PI))
    is_negative, turns = x < 0.0, n.to("int32")
    high, low = (choose(is_negative, -part, part) for part in (r.high, r.low))
    return Pair(high, low), choose(is_negative, 0 - turns, turns)


def _added(total: Pair, value: Value) -> Pair:
    made = sum_of(value, total.high)
    return ordered_sum(made.high, made.low + total.low)


def _low_words(digits: list[Value], low: Value, high: Value) -> list[Value]:
    """Write the product of words, first the most significant, and two words, modulo their range.

    The result has its least significant word first.
    """
    mask, carry, made = 0xFFFFFFFF, digits[0].like(0), []
    products = [(digit * low, digit * high) for digit in reversed(digits)]
    for place, (here, _) in enumerate(products):
        before = products[place - 1][1] if place else here.like(0)
        total = (here & mask) + (before & mask) + carry
        carry = (here >> 32) + (before >> 32) + (total >> 32)
        made.append(total & mask)
    return made
