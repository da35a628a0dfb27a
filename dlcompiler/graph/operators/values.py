"""Tools for the meanings with NumPy: floats are computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.base import Array
from dlcompiler.ir.expr import Const
from dlcompiler.ir.numeric import cast_function
from dlcompiler.te import const as as_const


def wide(x: Array) -> Array:
    """Return floats as float64; other dtypes stay."""
    return x.astype(np.float64) if dtypes.is_float(dtypes.from_numpy(x.dtype)) else x


def converted(x: Array, dtype: str) -> Array:
    """Convert an array to a dtype, as a cast of the language does."""
    source = dtypes.from_numpy(x.dtype)
    if source == dtype:
        return x
    made: Array = np.asarray(cast_function(source, dtype, vector=True)(x))
    return made.reshape(x.shape)


def number(value: float, dtype: str) -> Array:
    """Return a number of an attribute as an array of a dtype, converted as by a cast."""
    return converted(np.asarray(value, np.float64), dtype)


def literal(value: float, dtype: str) -> Const:
    """Return a number of an attribute as an expression; it is that of `number`."""
    return as_const(number(value, dtype)[()], dtype)


def rounded(value: Any, kind: TensorType) -> Array:
    """Return a value as an array of a type: floats are rounded, integers wrap."""
    made = np.asarray(value)
    shape = [extent for extent in kind.shape if isinstance(extent, int)]
    if dtypes.is_float(kind.dtype):
        return converted(made, kind.dtype).reshape(shape)
    return made.astype(dtypes.to_numpy(kind.dtype), copy=False).reshape(shape)


def least(dtype: str) -> Any:
    """Return the identity of a maximum: minus infinity, or the smallest integer."""
    return _extreme(dtype, -1)


def largest(dtype: str) -> Any:
    """Return the identity of a minimum: infinity, or the largest integer."""
    return _extreme(dtype, 1)


def _extreme(dtype: str, sign: int) -> Any:
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_float(dtype):
        return kind.type(sign * np.inf)
    if dtypes.is_bool(dtype):
        return np.bool_(sign > 0)
    limits: Any = np.iinfo(kind)
    return kind.type(limits.max if sign > 0 else limits.min)


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays that computes floats in float64."""
    return lambda *arrays: function(*(wide(array) for array in arrays))
