"""Classic TVM's ``tvm.topi.utils``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dlcompiler.arith import Analyzer
from dlcompiler.compat.missing import reporter
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Const, Expr


def get_const_int(expr: Any) -> int:
    """Return an extent as a Python int.

    Raises
    ------
    ExpressionError
        If the extent is not known before the program runs.
    """
    value = simplify(expr)
    if isinstance(value, int):
        return value
    raise ExpressionError("get_const_int", "not a constant integer", got=str(expr))


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """Return a shape with its known extents as Python ints."""
    return tuple(simplify(extent) for extent in in_tuple)


def simplify(expr: Any) -> Any:
    """Return an expression in a simpler form; a Python int, if it is a constant."""
    if not isinstance(expr, Expr):
        return int(expr) if isinstance(expr, int | float) and float(expr).is_integer() else expr
    result = Analyzer({}).simplify(expr)
    is_number = isinstance(result, Const) and isinstance(result.value, int)
    return result.value if isinstance(result, Const) and is_number else result


__getattr__ = reporter(__name__)
__all__ = ["get_const_int", "get_const_tuple", "simplify"]
