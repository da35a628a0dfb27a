"""Evaluate the functions of the language on NumPy scalars and arrays.

Values are those of `dlcompiler.ir.numeric`; names and meaning are in `dlcompiler.ir.functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import InternalError
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.numeric import Function, Value, to_bfloat16

_IN_THEIR_DTYPE = ("abs", "isfinite", "isinf", "isnan", "nextafter", "to_bits")
_LEAST_EXPONENT = -126
"""Of a normal float32."""
_erf_elements = np.frompyfunc(math.erf, 1, 1)


def call_function(name: str, dtype: str) -> Function:
    """Return the NumPy function of a call of `name` whose first argument has `dtype`."""
    element = dtypes.element(dtype)
    if element in ("float16", "bfloat16") and name not in _IN_THEIR_DTYPE:
        return _in_float32(_function(name, "float32"), element)
    return _function(name, element)


def _function(name: str, element: str) -> Function:
    if name in FUNCTIONS and (function := FUNCTIONS[name].numpy) is not None:
        return function
    if name in _OWN:
        return partial(_OWN[name], element=element)
    raise InternalError(
        f"call {name}", "the language has no such function", expected=", ".join(FUNCTIONS)
    )


def _in_float32(function: Function, element: str) -> Function:
    """Turn a float32 function into one on floats of 16 bits, which rounds its result."""
    kind = dtypes.to_numpy(element)
    back = to_bfloat16 if element == "bfloat16" else kind.type

    def rounded(*args: Value) -> Value:
        arrays = map(np.asarray, args)
        wide = (a.astype(np.float32)[()] if a.dtype == kind else a[()] for a in arrays)
        return back(function(*wide))

    return rounded


# -- functions that NumPy does not have -----------------------------------------------------------


def _erf(value: Value, *, element: str) -> Value:
    kind = dtypes.to_numpy(element)
    return np.asarray(_erf_elements(value), np.float64).astype(kind)[()]


def _exp10(value: Value, *, element: str) -> Value:
    return np.power(dtypes.to_numpy(element).type(10), value)


def _nextafter(value: Value, toward: Value, *, element: str) -> Value:
    result = np.where(value == toward, toward, np.nextafter(value, toward))  # 0 and -0 are equal
    return np.asarray(result)[()]


def _pow(value: Value, exponent: Value, *, element: str) -> Value:
    """Compute powers; exponents are an array, since NumPy turns a scalar 0.5 into `sqrt`."""
    a, b = np.broadcast_arrays(value, exponent)
    return np.power(a.reshape(-1), b.reshape(-1).copy()).reshape(a.shape)[()]


def _rsqrt(value: Value, *, element: str) -> Value:
    return dtypes.to_numpy(element).type(1) / np.sqrt(value)


def _sigmoid(value: Value, *, element: str) -> Value:
    """Compute ``1 / (1 + exp(-x))`` without overflow of `exp`."""
    one = dtypes.to_numpy(element).type(1)
    small = np.exp(-np.abs(value))
    return np.where(value < 0, small, one)[()] / (one + small)


def _tf32(value: Value, *, element: str) -> Value:
    array = np.asarray(value)
    size = np.abs(array.astype(np.float64))
    unit = np.exp2(np.maximum(np.frexp(size)[1] - 1, _LEAST_EXPONENT) - 10.0)
    rounded = np.where(np.isfinite(size), np.trunc(size / unit + 0.5) * unit, size)
    return np.copysign(rounded, array).astype(array.dtype)[()]


def _sort_key(value: Value, *, element: str) -> Value:
    numbers = np.asarray(value).astype(np.float32)
    bits = numbers.view(np.int32)
    size = bits & np.int32(2**31 - 1)
    keys = np.where(bits < 0, -size, size)
    return np.where(np.isnan(numbers), np.int32(2**31 - 1), keys)[()]


def _to_bits(value: Value, *, element: str) -> Value:
    array = np.asarray(value).astype(dtypes.to_numpy(element))
    return array.view(f"i{array.dtype.itemsize}")[()]


def _from_bits(value: Value, *, element: str) -> Value:
    array = np.asarray(value)
    return array.view(f"f{array.dtype.itemsize}")[()]


def _popcount(value: Value, *, element: str) -> Value:
    array = np.asarray(value)
    bits = array.view(f"u{array.dtype.itemsize}")  # NumPy counts the bits of the absolute value
    return np.bitwise_count(bits).astype(array.dtype)[()]


def _clz(value: Value, *, element: str) -> Value:
    array = np.asarray(value)
    rest = array.view(f"u{array.dtype.itemsize}").astype(np.uint64)
    length = np.zeros(rest.shape, np.int32)
    for bits in (32, 16, 8, 4, 2, 1):
        upper = rest >> np.uint64(bits)
        is_longer = upper != 0
        length = length + is_longer * np.int32(bits)
        rest = np.where(is_longer, upper, rest)
    return (np.int32(dtypes.bits(element)) - length - rest.astype(np.int32))[()]


def _same(value: Value, *, element: str) -> Value:
    return value


_OWN: dict[str, Callable[..., Any]] = {
    "clz": _clz,
    "erf": _erf,
    "exp10": _exp10,
    "likely": _same,
    "assume_bounds": _same,
    "nextafter": _nextafter,
    "popcount": _popcount,
    "pow": _pow,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sort_key": _sort_key,
    "to_bits": _to_bits,
    "from_bits": _from_bits,
    "tf32": _tf32,
}
