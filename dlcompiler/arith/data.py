"""Rewrite rules for data: what holds for wrapping integers and for IEEE floats."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Const, Expr
from dlcompiler.ir.expr import BinaryOp


def simplify_data(expr: Binary, op: BinaryOp, a: Expr, b: Expr) -> Expr:
    """Apply the identities that hold for wrapping integers and IEEE floats alike."""
    is_integer = not dtypes.is_float(dtypes.element(expr.dtype))
    if isinstance(b, Const):
        if b.value == 1 and op in ("mul", "div", "floordiv", "truncdiv"):
            return a
        if b.value == 0 and is_integer and op in ("add", "sub"):
            return a
    if isinstance(a, Const):
        if a.value == 1 and op == "mul":
            return b
        if a.value == 0 and is_integer and op == "add":
            return b
    return expr
