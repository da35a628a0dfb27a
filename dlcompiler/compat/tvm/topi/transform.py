"""Operators that rearrange elements, and the matrix product."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.ops import gemm
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
    """Multiply matrices, each optionally transposed."""
    return gemm.matmul(a, b, transp_a, transp_b)


__getattr__ = reporter(__name__)
