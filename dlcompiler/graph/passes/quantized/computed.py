"""The rule for products of two matrices that a run computes, such as those of attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dlcompiler.graph.ir import Call, Expr
from dlcompiler.graph.passes.quantized.forms import Dequantized, Found, dequantized
from dlcompiler.graph.passes.quantized.products import (
    MOST_TERMS,
    SUMS,
    has_result,
    scaled,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, shape_of

_MIDDLE = 128
"""What turns uint8 into int8; [1]."""


def computed_product(call: Call, types: KnownTypes) -> Found | None:
    """Multiply two matrices of integers, or two stacks of as many.

    With zero points a and b, the sum of ``(x - a) * (y - b)`` is that of ``(x - a) * y``, less b
    times the sum of the row of ``x - a``.
    """
    data, other = (dequantized(arg, types) for arg in call.args)
    left, right = (shape_of(arg, types) for arg in call.args)
    if data is None or other is None or not has_result(call, types, "float32"):
        return None
    if left is None or right is None or not (data.is_byte and other.is_byte):
        return None
    if len(left) != len(right) or len(left) < 2 or left[:-2] != right[:-2]:
        return Found("one of the stacks of matrices is repeated", None)
    if left[-2 if attrs_of(call)["transpose_a"] else -1] > MOST_TERMS:
        return Found("the sums do not fit int32", None)
    return scaled(call, _sums(call, data, other, left, right), data, other, -1)


def _sums(
    call: Call, data: Dequantized, other: Dequantized, left: Sequence[int], right: Sequence[int]
) -> Call:
    """Return the sums of the products of integers less their zero points."""
    attrs, lead = attrs_of(call), left[:-2]
    rows = -2 if attrs["transpose_a"] else -1
    a, b, zero = _stack(call, data.q, left), _stack(call, other.q, right), int(other.zero)
    if other.dtype == "uint8":
        wide = call_like(call, "cast", b, suffix="wide", dtype=SUMS)
        moved = call_like(call, "subtract", wide, np.asarray(_MIDDLE, np.int32), suffix="moved")
        b = call_like(call, "cast", moved, suffix="signed", dtype="int8")
        zero -= _MIDDLE
    turns = {name: attrs[name] for name in ("transpose_a", "transpose_b")}
    sums = call_like(call, "qnn.matmul", a, b, suffix="sums", **turns,
                     input_zero_point=int(data.zero))  # fmt: skip
    if zero:
        wide = call_like(call, "cast", a, suffix="row", dtype=SUMS)
        centred = call_like(call, "subtract", wide, data.zero.astype(np.int32), suffix="row")
        row = call_like(call, "sum", centred, suffix="row", axis=(rows,))
        column = call_like(call, "expand_dims", row, suffix="row", axis=-1, num_newaxis=1)
        rest = call_like(call, "multiply", column, np.asarray(zero, np.int32), suffix="zero")
        sums = call_like(call, "subtract", sums, rest, suffix="sums")
    if len(lead) < 2:
        return sums
    out = (*lead, left[-3 - rows], right[-2 if attrs["transpose_b"] else -1])
    return call_like(call, "reshape", sums, suffix="sums", newshape=out)


def _stack(call: Call, q: Expr, shape: Sequence[int]) -> Expr:
    """Return matrices as one stack."""
    if len(shape) <= 3:
        return q
    return call_like(call, "reshape", q, suffix="stack",
                     newshape=(math.prod(shape[:-2]), *shape[-2:]))  # fmt: skip
