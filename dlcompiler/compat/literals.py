"""Literals that take the dtype of the other operand, as in TVM's operators."""

from __future__ import annotations

import math
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Const, Expr, as_expr, cast, const


def literal(value: Any, dtype: Any = None) -> Const:
    """Make a literal; without a dtype, 64 bits are used where 32 are too small, as in TVM.

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
    """Convert a number to a `literal`, and anything else to an expression."""
    return literal(value) if isinstance(value, int | float) else as_expr(value)


def converted(value: Any, dtype: Any) -> Expr:
    """Convert a number or an expression to a dtype; fractions are truncated, as in TVM.

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
