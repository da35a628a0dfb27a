"""Logarithms of float64, and what is computed by them: powers and inverse hyperbolic functions.

``x = 2**k * (1 + f)``, and ``log(1 + f) = 2 atanh(s)`` with ``s = f / (2 + f)``. The first two
terms of the series are computed as pairs, so that the sum has about 65 bits.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions.logarithm import INFINITY, NAN, normalized, split
from dlcompiler.codegen.llvm.functions.pairs import (
    Pair,
    constant_pair,
    exact_fma,
    ordered_sum,
    product_of,
    sum_of,
)
from dlcompiler.codegen.llvm.functions.power import with_sign_of_power
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    choose,
    intrinsic,
    polynomial,
    with_sign_of,
)
from dlcompiler.codegen.llvm.functions.wide_exponential import LOG2_E, exp2_of_pair

LOG10_E = (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57"))
LN2 = (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"))
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # its product with k is exact
_LN2_REST = float.fromhex("0x1.a39ef35793c76p-33")
_TAIL = tuple(2 / (2 * n + 5) for n in range(12))
"""Coefficients of ``(2 atanh(s) - 2s - 2/3 s**3) / s**5`` as a power series of ``s**2``."""
_TWO_THIRDS = (float.fromhex("0x1.5555555555555p-1"), float.fromhex("0x1.5555555555555p-55"))
LARGE = 2.0**60
"""From here on, ``x**2 + 1`` and ``x**2 - 1`` are ``x**2``."""


def log2(x: Value) -> Value:
    """Write the logarithm to the base 2."""
    return _at_the_ends(_log2(x).total(), x)


def log10(x: Value) -> Value:
    """Write the logarithm to the base 10."""
    return _at_the_ends(_log(x).times(constant_pair(x, *LOG10_E)).total(), x)


def log1p(x: Value) -> Value:
    """Write ``log(1 + x)``."""
    result = _log_of_pair(sum_of(x.like(1.0), x)).total()
    result = choose(x.equals(0.0), x, choose(x < INFINITY, result, x))
    return choose(x.equals(-1.0), -INFINITY, choose(x < -1.0, NAN, result))


def asinh(x: Value) -> Value:
    """Write the inverse hyperbolic sine: ``log(x + sqrt(x**2 + 1))`` of the size of x."""
    size = abs(x)
    inside = choose(size < LARGE, size, 1.0)
    square = product_of(inside, inside)
    one = constant_pair(x, 1.0, 0.0)
    root = square.plus(one).root()
    result = _log_or_far(root.plus(Pair(inside, x.like(0.0))), size)
    # Up to here the cube does not matter; the square may have no digits left.
    return choose(size > 2.0**-28, with_sign_of(result, x), x)


def acosh(x: Value) -> Value:
    """Write the inverse hyperbolic cosine: ``log(x + sqrt(x**2 - 1))``."""
    inside = choose((x < LARGE) & (x >= 1.0), x, 1.0)
    root = product_of(inside, inside).plus(constant_pair(x, -1.0, 0.0)).root()
    result = _log_or_far(root.plus(Pair(inside, x.like(0.0))), x)
    return choose(x < 1.0, NAN, result)


def atanh(x: Value) -> Value:
    """Write the inverse hyperbolic tangent: half of ``log(1 + x) - log(1 - x)``."""
    size = abs(x)
    inside = choose(size < 1.0, size, 0.5)
    above, below = (_log_of_pair(sum_of(x.like(1.0), part)) for part in (inside, -inside))
    result = above.plus(-below).total() * 0.5
    result = choose(size.equals(1.0), INFINITY, choose(size <= 1.0, result, NAN))
    return choose(size > 2.0**-28, with_sign_of(result, x), choose(x.equals(x), x, result))


def pow(x: Value, y: Value) -> Value:
    """Write x**y with the special cases of C: annex F.10.4.4 of ISO C 17."""
    size = abs(x)
    log = _log2(size)
    is_inside = (size > 0.0) & (size < INFINITY)
    high = choose(size < INFINITY, choose(size > 0.0, log.high, -INFINITY), size)
    product = y * high
    low = exact_fma(y, log.low, exact_fma(y, high, -product))
    is_finite = is_inside & (abs(product) < 2.0**11)
    return with_sign_of_power(x, y, exp2_of_pair(product, choose(is_finite, low, 0.0)))


def exp10(x: Value) -> Value:
    """Write 10**x."""
    inside = choose(abs(x) < 400.0, x, 0.0)
    product = product_of(inside, _LOG2_10[0])
    low = exact_fma(inside, _LOG2_10[1], product.low)
    return exp2_of_pair(choose(abs(x) < 400.0, product.high, x * 4.0), low)


_LOG2_10 = (float.fromhex("0x1.a934f0979a371p+1"), float.fromhex("0x1.7f2495fb7fa6dp-53"))


def _log_or_far(argument: Pair, x: Value) -> Value:
    """Write the logarithm of the argument, or of ``2 * x`` where x is `LARGE` or more, or NaN."""
    far = _log(choose((x >= LARGE) & (x < INFINITY), x, 1.0)).plus(constant_pair(x, *LN2))
    result = choose(x < LARGE, _log_of_pair(argument).total(), far.total())
    return choose(x < INFINITY, result, x)


def _parts(x: Value) -> tuple[Value, Pair]:
    """Return k and ``log(1 + f)`` of a positive finite x."""
    normal, lowered = normalized(x)
    k, f = split(normal)
    s = Pair(f, f.like(0.0)).over(sum_of(f.like(2.0), f))
    square = s.times(s)
    cube = s.times(square).times(constant_pair(f, *_TWO_THIRDS))
    z = square.high
    tail = s.high * z * z * polynomial(z, _TAIL)
    twice = Pair(s.high + s.high, s.low + s.low)
    return k + lowered, twice.plus(ordered_sum(cube.high, cube.low + tail))


def _log(x: Value) -> Pair:
    """Write the natural logarithm of a positive finite number."""
    k, rest = _parts(x)
    high = sum_of(k * _LN2_HIGH, rest.high)
    return ordered_sum(high.high, high.low + exact_fma(k, _LN2_REST, rest.low))


def _log2(x: Value) -> Pair:
    """Write the logarithm to the base 2 of a positive finite number."""
    k, rest = _parts(x)
    return Pair(k, k.like(0.0)).plus(rest.times(constant_pair(x, *LOG2_E)))


def _log_of_pair(x: Pair) -> Pair:
    """Write the natural logarithm of a positive finite number."""
    rest = x.low / x.high
    return _log(x.high).plus(Pair(rest, rest.like(0.0)))


def _at_the_ends(result: Value, x: Value) -> Value:
    """Select the results for 0, infinity, NaN and negative numbers."""
    result = choose(x < INFINITY, result, x)
    result = choose(x.equals(0.0), -INFINITY, result)
    return choose(x < 0.0, NAN, result)


def hypot(x: Value, y: Value) -> Value:
    """Write ``sqrt(x**2 + y**2)``; both are scaled so that no square leaves the range."""
    a, b = abs(x), abs(y)
    largest, smallest = choose(a < b, b, a), choose(a < b, a, b)
    scale = choose(
        largest > 2.0**500, 2.0**-600, choose(largest < 2.0**-450, x.like(2.0**600), 1.0)
    )
    back = choose(largest > 2.0**500, 2.0**600, choose(largest < 2.0**-450, x.like(2.0**-600), 1.0))
    squares = [product_of(value * scale, value * scale) for value in (largest, smallest)]
    root = intrinsic("sqrt", squares[0].plus(squares[1]).total())
    result = choose(x.is_nan() | y.is_nan(), NAN, root * back)
    return choose(a.equals(INFINITY) | b.equals(INFINITY), INFINITY, result)
