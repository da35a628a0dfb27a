"""Refuse operations whose constant operand makes the result independent of the other operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Binary, Cast, Const, Expr, walk
from dlcompiler.ir.operations import DIVISIONS


def check_constants(exprs: Iterable[Expr], axes: Sequence[Axis], where: str) -> None:
    """Refuse a division of integers by the constant 0, and a shift by a constant that is too large.

    Both have a value in the loop IR, because passes may find such constants. In an expression that
    somebody writes they are mistakes.

    Parameters
    ----------
    exprs
        Expressions of elements at `axes`.
    axes
        The axes; without elements, such as of a reshaped tensor of shape ``(0, 4)``, nothing is
        divided.
    where
        Names the operation in errors.

    Raises
    ------
    ExpressionError
        If an operation has such a constant.
    """
    if any(isinstance(axis.extent, int) and axis.extent == 0 for axis in axes):
        return
    for node in (node for expr in exprs for node in walk(expr)):
        if isinstance(node, Binary) and (node.op in DIVISIONS or node.op in ("shl", "shr")):
            _check(node, where)


def _check(node: Binary, where: str) -> None:
    number = literal_value(node.b)
    if number is None:
        return
    if node.op in DIVISIONS:
        if number == 0:
            raise ExpressionError(
                where, "an integer is divided by the constant 0", got=str(node),
                because="such a division gives 0 in every element, and so does its remainder",
            )  # fmt: skip
        return
    bits = dtypes.bits(node.dtype)
    if not 0 <= number < bits:
        raise ExpressionError(
            where, f"{node.dtype} is shifted by {number}, but has {bits} bits", got=str(node),
            expected=f"a distance from 0 to {bits - 1}",
        )  # fmt: skip


def literal_value(expr: Expr) -> int | None:
    """Return the integer that a literal stands for, also under conversions that keep it."""
    low, high = dtypes.min_value(expr.dtype), dtypes.max_value(expr.dtype)
    while isinstance(expr, Cast):
        expr = expr.value
    if not isinstance(expr, Const) or not isinstance(expr.value, int):
        return None
    return expr.value if low <= expr.value <= high else None
