"""Numbers that take the dtype of what they meet, as in classic TVM's operators."""

from __future__ import annotations

import math
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Const, Expr, as_expr, cast, const


def literal(value: Any, dtype: Any = None) -> Const:
    """Make a literal; without a dtype, classic TVM takes a wider one where the usual is too small.

    Examples
    --------
    >>> literal(4).dtype, literal(2**40).dtype, literal(0.5).dtype, literal(1e300).dtype
    ('int32', 'int64', 'float32', 'float64')
    """
    if dtype is None and type(value) is int and not -(2**31) <= value < 2**31:
        dtype = "int64"
    if dtype is None and type(value) is float and dtypes.LARGEST["float32"] < abs(value) < math.inf:
        dtype = "float64"
    return te.const(value, dtype)


def as_operand(value: Any) -> Expr:
    """Return a number as a `literal`, anything else as it is in expressions."""
    return literal(value) if isinstance(value, int | float) else as_expr(value)


def converted(value: Any, dtype: Any) -> Expr:
    """Return a number or an expression in a dtype: classic operators cut a fraction off.

    Examples
    --------
    >>> converted(2.7, "int32"), converted(-2.7, "int8"), converted(2, "float32")
    (Const(2), Const(-2), Const(2.0))
    """
    kind = dtypes.as_dtype(dtype)
    if isinstance(value, Expr):
        return cast(value, kind)
    if isinstance(value, float) and math.isfinite(value) and dtypes.is_int(kind):
        value = int(value)
    return const(value, kind)
