"""Measure the errors of generated functions such as exp, in units in the last place.

The truth is NumPy's float64, which is within 1e-8 units in the last place of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.ir.functions import FUNCTIONS

Array = np.ndarray[Any, Any]
CHUNK = 2**16
"""Numbers compared at a time: they stay in the cache."""
_math_erf = np.frompyfunc(math.erf, 1, 1)


_SLOPE = 2 / np.sqrt(np.arccos(np.longdouble(-1)))


def _erf(x: Array) -> Array:
    """Compute the error function: by its series near 0, and 1 far out."""
    is_long = x.dtype == np.longdouble
    size, slope = np.abs(x), x.dtype.type(_SLOPE)
    least = 2.0 ** (-32 if is_long else -12)
    result = np.where(size < least, slope * x * (1 - x * x / 3), np.sign(x))
    middle = (size >= least) & (size < 6)
    values = x[middle]
    result[middle] = _erf_series(values) if is_long else _math_erf(values).astype(np.float64)
    return result


def _erf_series(x: Array) -> Array:
    """Compute the error function up to 6 by its series of positive terms."""
    square, term = x * x, x
    total = term
    for n in range(1, 150):
        term = term * (2 * square / (2 * n + 1))
        total = total + term
    return _SLOPE * np.exp(-square) * total


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


REFERENCES: dict[str, Callable[..., Array]] = {
    **{
        name: getattr(np, name)
        for name in ("cos", "exp", "exp2", "log", "log10", "log1p", "log2", "sin", "sqrt", "tanh")
    },
    "erf": _erf,
    "exp10": lambda x: np.power(10.0, x),
    "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _sigmoid,
}


@dataclass(frozen=True)
class Worst:
    """The largest error so far, and where it is."""

    ulps: float = 0.0
    at: tuple[float, ...] = ()

    def or_worse(self, other: Worst) -> Worst:
        return other if other.ulps > self.ulps else self


def kernel(name: str, count: int, lanes: int = 8, *, dtype: str = "float32", target: Any = "cpu"):
    """Build a function of `count` elements, which need not be a multiple of `lanes`."""
    inputs = [te.placeholder((count,), dtype, name=f"X{n}") for n in range(FUNCTIONS[name].arity)]
    function = te.power if name == "pow" else getattr(te, name)
    Y = te.compute((count,), lambda i: function(*(X[i] for X in inputs)), name="Y")
    s = te.create_schedule(Y.op)
    if lanes > 1:
        _, inner = s[Y].split(Y.op.axis[0], factor=lanes)
        s[Y].vectorize(inner)
    return dlc.build(s, [*inputs, Y], target=target)


def worst(name: str, compute: Callable[..., None], *arguments: Array) -> Worst:
    """Compare a kernel of `CHUNK` float32 with the truth; infinite where a special value is wrong.

    NaN must be NaN, and a zero must have its sign.
    """
    result = Worst()
    got = np.empty(CHUNK, np.float32)
    for start in range(0, len(arguments[0]), CHUNK):
        chunk = [np.resize(x[start : start + CHUNK], CHUNK) for x in arguments]
        compute(*chunk, got)
        with np.errstate(all="ignore"):
            right = REFERENCES[name](*(x.astype(np.float64) for x in chunk))
            errors = ulps(got, right)
        n = int(np.argmax(errors))
        result = result.or_worse(Worst(float(errors[n]), tuple(float(x[n]) for x in chunk)))
    return result


def ulps(got: Array, right: Array) -> Array:
    """Return the errors of float32 numbers, in units in the last place of the true result."""
    limit = 2.0**128  # the distance of a value that rounds to infinity
    exponent = np.clip((right.view(np.int64) >> 52) & 0x7FF, 1023 - 126, 1023 + 127)
    per_unit = ((2 * 1023 + 23 - exponent) << 52).view(np.float64)
    distance = np.clip(got.astype(np.float64), -limit, limit) - np.clip(right, -limit, limit)
    return _marked(np.abs(distance) * per_unit, got, right)


def ulps_of_float64(got: Array, right: Array) -> Array:
    """Return the errors of float64 numbers; the true results are of a longer format."""
    limit = np.longdouble(2) ** 1024
    distance = np.clip(got.astype(np.longdouble), -limit, limit) - np.clip(right, -limit, limit)
    exponent = np.clip(np.frexp(right)[1], -1021, 1024)
    return _marked(np.ldexp(np.abs(distance), 53 - exponent), got, right)


def _marked(errors: Array, got: Array, right: Array) -> Array:
    """Make errors infinite where a zero has the wrong sign, or only one of two values is NaN."""
    errors[(got == 0) & (right == 0) & (np.signbit(got) != np.signbit(right))] = np.inf
    nan = np.isnan(got), np.isnan(right)
    return np.where(nan[0] | nan[1], np.where(nan[0] & nan[1], 0.0, np.inf), errors)


def patterns(start: int, count: int, step: int = 1) -> Array:
    """Return the float32 numbers of every `step`-th bit pattern from `start` on."""
    numbers = np.arange(start, start + count * step, step, dtype=np.uint64)
    return numbers.astype(np.uint32).view(np.float32)


def pairs_near_powers(seed: int, count: int) -> tuple[Array, Array]:
    """Return random arguments of `pow`, of which a quarter are any bit patterns.

    Of the others, the power is within the range of float32 or little outside, the base anything or
    near 1, and every second exponent a whole number where that is possible.
    """
    random = np.random.default_rng(seed)
    size = np.where(random.random(count) < 0.5, 2.0 ** random.uniform(-24, 0, count), 149.0)
    logarithm = random.uniform(-1, 1, count) * size
    with np.errstate(all="ignore"):
        exponent = random.uniform(-152, 130, count) / logarithm
    is_small = random.random(count) < 0.3
    exponent = np.where(is_small, random.uniform(-4, 4, count), exponent)
    exponent = np.where(random.random(count) < 0.5, np.round(exponent), exponent)
    base = 2.0**logarithm * np.where(random.random(count) < 0.3, -1.0, 1.0)
    any_bits = random.integers(0, 2**32, (2, count), dtype=np.uint32).view(np.float32)
    chosen = random.random(count) < 0.25
    with np.errstate(over="ignore"):
        x, y = base.astype(np.float32), exponent.astype(np.float32)
    return np.where(chosen, any_bits[0], x), np.where(chosen, any_bits[1], y)
