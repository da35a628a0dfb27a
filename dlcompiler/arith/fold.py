"""Fold operations on literals to the value that the program would compute."""

from __future__ import annotations

import math

from dlcompiler import dtypes
from dlcompiler.arith.matching import literal
from dlcompiler.ir import Binary, Broadcast, Cast, Compare, Const, Expr, Not
from dlcompiler.ir.numeric import (
    binary_function,
    cast_function,
    compare_function,
    quiet,
)
from dlcompiler.ir.numeric import literal as value_of
from dlcompiler.ir.operations import BinaryOp, CompareOp, fold_index

INT64 = range(-(2**63), 2**63)


def folded(expr: Expr) -> Expr | None:
    """Return the result of an operation on literals as a literal; None for other expressions.

    An infinite or NaN result is not folded either: the notation has no literal for it.
    """
    match expr:
        case Binary(op, a, b):
            x, y = literal(a), literal(b)
            return None if x is None or y is None else _literal(_operation(op, x, y), expr.dtype)
        case Compare(op, a, b):
            x, y = literal(a), literal(b)
            return None if x is None or y is None else _literal(_verdict(op, x, y), expr.dtype)
        case Not(value):
            x = literal(value)
            return None if x is None else _literal(not x.value, expr.dtype)
        case Cast(value, dtype):
            x = literal(value)
            return None if x is None else _literal(_converted(x, dtypes.element(dtype)), dtype)
    return None


def _verdict(op: CompareOp, x: Const, y: Const) -> bool:
    return bool(compare_function(op)(value_of(x.value, x.dtype), value_of(y.value, y.dtype)))


def _operation(op: BinaryOp, x: Const, y: Const) -> int | float | None:
    if dtypes.is_float(x.dtype):
        with quiet():
            return float(
                binary_function(op, x.dtype)(value_of(x.value, x.dtype), value_of(y.value, y.dtype))
            )
    if dtypes.is_bool(x.dtype):
        return None
    if op in ("shl", "shr"):
        return _shifted(op, int(x.value), int(y.value), x.dtype)
    value = fold_index(op, int(x.value), int(y.value))
    return value if dtypes.is_index(x.dtype) else wrapped(value, x.dtype)


def _shifted(op: BinaryOp, value: int, by: int, dtype: str) -> int:
    bits = dtypes.bits(dtype)
    by = by if 0 <= by < bits else bits  # all bits are shifted out
    return wrapped(value << by, dtype) if op == "shl" else value >> by


def wrapped(value: int, dtype: str) -> int:
    """Return the value of a data integer that overflowed."""
    low = int(dtypes.min_value(dtype))
    return (value - low) % (1 << dtypes.bits(dtype)) + low


def _converted(x: Const, dtype: str) -> int | float | None:
    if dtypes.is_index(x.dtype) and x.value not in INT64:
        return None
    with quiet():
        value = cast_function(x.dtype, dtype)(value_of(x.value, x.dtype))
    if dtypes.is_bool(dtype):
        return bool(value)
    return float(value) if dtypes.is_float(dtype) else int(value)


def _literal(value: bool | int | float | None, dtype: str) -> Expr | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    number = Const(value, dtypes.element(dtype))
    lanes = dtypes.lanes(dtype)
    return Broadcast(number, lanes) if lanes > 1 else number
