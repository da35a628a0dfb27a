"""Operators on one tensor, element by element."""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.compat.literals import as_operand, converted
from dlcompiler.compat.missing import reporter
from dlcompiler.ir import as_expr
from dlcompiler.ir import cast as cast_number
from dlcompiler.ops.elementwise import (
    abs,
    ceil,
    cos,
    elementwise,
    elemwise_sum,
    erf,
    exp,
    floor,
    identity,
    log,
    negative,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from dlcompiler.ops.helpers import ELEMWISE, tensor


def cast(x: Any, dtype: Any) -> Any:
    """Convert each element of a tensor, or a number."""
    return elementwise("cast", lambda value: cast_number(as_operand(value), dtype), x)


def clip(x: Any, a_min: Any, a_max: Any) -> Any:
    """Return each element, but at least `a_min` and at most `a_max`, which take its dtype."""

    def element(value: Any) -> Any:
        expr = as_expr(value)
        low, high = converted(a_min, expr.dtype), converted(a_max, expr.dtype)
        return te.maximum(te.minimum(expr, high), low)

    return elementwise("clip", element, x)


def full(shape: Any, dtype: Any, fill_value: Any) -> te.Tensor:
    """Return a tensor of one value, which takes the dtype."""
    value = converted(fill_value, dtype)
    return tensor(shape, lambda *axes: value, name="T_full", tag=ELEMWISE)


def full_like(x: te.Tensor, fill_value: Any) -> te.Tensor:
    """Return a tensor of one value, with the shape and dtype of another."""
    return full(x.shape, x.dtype, fill_value)


def zeros_like(x: te.Tensor) -> te.Tensor:
    """Return zeros."""
    return full_like(x, 0)


def ones_like(x: te.Tensor) -> te.Tensor:
    """Return ones."""
    return full_like(x, 1)


__getattr__ = reporter(__name__)
__all__ = [
    "abs",
    "cast",
    "ceil",
    "clip",
    "cos",
    "elemwise_sum",
    "erf",
    "exp",
    "floor",
    "full",
    "full_like",
    "identity",
    "log",
    "negative",
    "ones_like",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "zeros_like",
]
