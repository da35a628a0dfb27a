"""Operators that move elements, and the matrix product."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.defining import over, tensor
from dlcompiler.ops.elementwise import where
from dlcompiler.ops.transforms import (
    concatenate,
    expand_dims,
    flip,
    reshape,
    squeeze,
    stack,
    transpose,
)

__all__ = [
    "concatenate",
    "expand_dims",
    "flip",
    "matmul",
    "reshape",
    "squeeze",
    "stack",
    "transpose",
    "where",
]


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """Multiply matrices, each transposed if asked for."""
    n, inner = reversed(a.shape) if transp_a else a.shape
    rows, m = reversed(b.shape) if transp_b else b.shape
    if isinstance(inner, int) and isinstance(rows, int) and inner != rows:
        raise ExpressionError("topi.matmul", "the shapes differ", got=f"{a.shape} and {b.shape}")
    k = over(inner, name="k")
    return tensor(
        (n, m),
        lambda i, j: te.sum(
            (a[k, i] if transp_a else a[i, k]) * (b[j, k] if transp_b else b[k, j]), axis=k
        ),
        name="T_matmul",
        tag="matmul",
    )


__getattr__ = reporter(__name__)
