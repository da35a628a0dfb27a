"""Bound integers that are data: a result that may wrap has only the bounds of its dtype."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler import dtypes
from dlcompiler.arith.bounds import bounds_of_operation
from dlcompiler.arith.interval import EVERYTHING, Interval
from dlcompiler.ir import Binary, Call, Cast, Const, Expr, IfThenElse, Select

MAX_DEPTH = 16
"""Deeper operands count as unbounded; [levels]."""


def data_range(
    expr: Expr, of_index: Callable[[Expr], Interval], depth: int = MAX_DEPTH
) -> Interval:
    """Return bounds of an integer or a bool that is data.

    Parameters
    ----------
    expr
        An expression of an integer dtype or bool; of any other dtype the result is unbounded.
    of_index
        Bounds of an index expression.
    depth
        How many levels of operands to look at.
    """
    if expr.dtype == "index":
        return of_index(expr)
    whole = dtype_range(expr.dtype)
    if depth == 0 or whole is EVERYTHING:  # an integer may be rounded up as a float: no bounds
        return whole
    match expr:
        case Const(value):
            return Interval(int(value), int(value))
        case Cast(value, _):
            found = data_range(value, of_index, depth - 1)
        case Select(_, a, b) | IfThenElse(_, a, b):
            found = data_range(a, of_index, depth - 1).hull(data_range(b, of_index, depth - 1))
        case Binary(op, a, b):
            # Bounds of the mathematical result, which is the result if it fits the dtype.
            left, right = data_range(a, of_index, depth - 1), data_range(b, of_index, depth - 1)
            found = bounds_of_operation(op, left, right)
        case Call("likely", (value,)):
            found = data_range(value, of_index, depth - 1)
        case Call("popcount" | "clz", (value,)):
            found = Interval(0, dtypes.bits(value.dtype))
        case _:
            return whole
    is_inside = whole.low <= found.low and found.high <= whole.high
    return found if is_inside else whole


def dtype_range(dtype: str) -> Interval:
    """Return the range of an integer dtype or bool; other dtypes are unbounded."""
    if dtypes.is_bool(dtype):
        return Interval(0, 1)
    if dtype == "index" or not dtypes.is_int(dtype):
        return EVERYTHING
    return Interval(dtypes.min_value(dtype), dtypes.max_value(dtype))
