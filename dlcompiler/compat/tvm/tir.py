"""Classic TVM's ``tvm.tir``: scalar expressions."""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.te import max, min, sum
from dlcompiler.ir import Const, Expr, PrimFunc, as_expr, cast

Select = te.select
pow = te.power
PrimExpr = Expr


def const(value: Any, dtype: Any = None) -> Const:
    """Make a literal; without a dtype, ``int32``, ``float32`` or ``bool`` by the value's type."""
    if dtype is not None:
        return te.const(value, dtype)
    made = as_expr(value)
    assert isinstance(made, Const)
    return made


def IntImm(dtype: str, value: int) -> Const:  # noqa: N802 - the classic name
    """Make an integer literal."""
    return te.const(value, dtype)


FloatImm = IntImm


def Cast(dtype: str, value: Any) -> Expr:  # noqa: N802 - the classic name
    """Convert a value."""
    return cast(value, dtype)


def Var(name: str, dtype: str = "int32") -> Any:  # noqa: N802 - the classic name
    """Make a variable."""
    return te.var(name, dtype)


_report = reporter(__name__, fallback=te)


def __getattr__(name: str) -> Any:
    return _report(name)


__all__ = [
    "Cast",
    "FloatImm",
    "IntImm",
    "PrimExpr",
    "PrimFunc",
    "Select",
    "Var",
    "const",
    "max",
    "min",
    "pow",
    "sum",
]
