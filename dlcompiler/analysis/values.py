"""Evaluate an index expression at a point, to confirm a witness."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
)
from dlcompiler.ir.numeric import compare_function
from dlcompiler.ir.operations import fold_index


class DataDependent(Exception):  # noqa: N818 - a property of the program, not a mistake
    """An expression depends on the elements of a buffer, or on data arithmetic."""


def evaluate(expr: Expr, values: Mapping[Var, int]) -> int:
    """Return the value of an index expression or a condition for given values of its variables.

    Raises
    ------
    DataDependent
        The value depends on data; the message is the part of the expression that does.
    """
    match expr:
        case Const(int(value), _):
            return int(value)
        case Var() if expr in values:
            return values[expr]
        case Binary(op, a, b) if expr.dtype == "index":
            return fold_index(op, evaluate(a, values), evaluate(b, values))
        case Compare(op, a, b):
            return bool(compare_function(op)(evaluate(a, values), evaluate(b, values)))
        case Logical(op, a, b):
            decided = evaluate(a, values)
            return decided if bool(decided) == (op == "or") else evaluate(b, values)
        case Call("likely", (value,), _):
            return evaluate(value, values)
        case Not(value):
            return not evaluate(value, values)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            return evaluate(a if evaluate(condition, values) else b, values)
        case Cast(value, dtype) if not (dtypes.is_float(dtype) or dtypes.is_bool(dtype)):
            return _cast(expr, evaluate(value, values))
    raise DataDependent(str(expr))


def _cast(expr: Cast, value: int) -> int:
    if expr.dtype != "index" and not (
        dtypes.min_value(expr.dtype) <= value <= dtypes.max_value(expr.dtype)
    ):
        raise DataDependent(str(expr))
    return value
