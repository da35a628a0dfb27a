"""Rules for convolutions and products: multiply integers, and add up in int32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dlcompiler.graph.ir import Call, Constant, Expr
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.quantized.forms import (
    BYTES,
    Dequantized,
    Found,
    Rules,
    as_int8,
    axis_of,
    centred,
    centred_weight,
    dequantized,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, shape_of

SUMS = "int32"
LARGEST_PRODUCT = 255 * 128
"""Of a number less its zero point, and a weight; [1]."""
MOST_TERMS = (2**31 - 1) // LARGEST_PRODUCT
"""Terms whose sum fits int32; [1]."""
_REASON = "products of quantized numbers are sums of integers"
_WEIGHTS = Found("the weights less their zero point do not fit int8", None)


def _conv2d(call: Call, types: KnownTypes) -> Found | None:
    attrs = attrs_of(call)
    images, kernels = layout_of(attrs["data_layout"]), layout_of(attrs["kernel_layout"])
    shape = shape_of(call.args[1], types)
    if images.is_blocked or kernels.is_blocked or shape is None:
        return None
    if attrs["out_layout"] not in ("", attrs["data_layout"]):
        return None
    channel = kernels.index("O")
    terms = math.prod(shape) // shape[channel]

    def made(q: Expr, weight: Array, zero: int) -> Call:
        kept = {k: v for k, v in call.attrs.items() if k != "out_dtype"}
        return call_like(call, "qnn.conv2d", q, weight, suffix="sums", **kept,
                         input_zero_point=zero)  # fmt: skip

    sums = _of_integers(call, types)
    if sums is not None and sums[2] is not None and terms:
        return Found(_REASON, made(*sums)) if _has_result(call, types, SUMS) else None
    pair = _of_floats(call, types, channel - len(shape))
    if pair is None or isinstance(pair, Found):
        return pair
    data, weight, values = pair
    if terms > MOST_TERMS:
        return Found("the sums do not fit int32", None)
    return _scaled(call, made(data.q, values, int(data.zero)), data, weight, images.index("C") - 4)


def _has_result(call: Call, types: KnownTypes, dtype: str) -> bool:
    return types.tensor(call).dtype == dtype


def _of_integers(call: Call, types: KnownTypes) -> tuple[Any, Any, Any] | None:
    """Return data, weights and zero point of a product of int32 whose operands have 8 bits."""
    data, weight = centred(call.args[0], types), call.args[1]
    if data is None or not isinstance(weight, Constant) or weight.type.dtype != SUMS:
        return None
    values = as_int8(weight.value)
    return None if values is None else (data.q, values, data.number)


def _of_floats(
    call: Call, types: KnownTypes, channel: int
) -> tuple[Dequantized, Dequantized, Array] | Found | None:
    """Return data and weights of a product of floats that are dequantized; or why there are none.

    Parameters
    ----------
    call : Call
        The product.
    types : KnownTypes
        Types of its arguments.
    channel : int
        The dimension of the weights that may have several scales, counted from the end.
    """
    data, weight = (dequantized(arg, types) for arg in call.args)
    if data is None or weight is None or not _has_result(call, types, "float32"):
        return None
    if not data.is_byte or weight.dtype not in BYTES or not isinstance(weight.q, Constant):
        return None
    if not weight.is_whole and weight.axis != channel:
        return Found("the scales of the weights differ inside the sums", None)
    values = centred_weight(weight.q.value, weight.zero, weight.axis)
    return _WEIGHTS if values is None else (data, weight, values)


def _scaled(call: Call, sums: Call, data: Dequantized, weight: Dequantized, axis: int) -> Found:
    """Return sums times the scales of both operands."""
    scale = np.asarray(data.scale * weight.scale, np.float32)
    attrs = axis_of(scale, axis)
    zero = np.zeros((), np.int32)
    return Found(_REASON, call_like(call, "qnn.dequantize", sums, scale, zero, **attrs))


def _dense(call: Call, types: KnownTypes) -> Found | None:
    return _product(call, call.args[0], types, turn=False, channel=0)


def _matmul(call: Call, types: KnownTypes) -> Found | None:
    attrs, data = attrs_of(call), call.args[0]
    weight, rank = types.tensor(call.args[1]), types.tensor(data).rank
    if attrs["transpose_a"]:
        return None
    if weight.rank == 2 and rank >= 2:
        turn = not attrs["transpose_b"]
        return _product(call, data, types, turn=turn, channel=1 if turn else 0)
    return None


def _product(call: Call, data: Expr, types: KnownTypes, *, turn: bool, channel: int,
             ) -> Found | None:  # fmt: skip
    """Return a product with constant weights as `qnn.dense`."""
    shape, out = shape_of(data, types), shape_of(call, types)
    if shape is None or out is None:
        return None
    if shape[-1] > MOST_TERMS:
        return Found("the sums do not fit int32", None)

    def made(q: Expr, weight: Array, zero: int) -> Call:
        rows = np.ascontiguousarray(weight.T) if turn else weight
        is_flat = len(shape) == 2
        if not is_flat:
            q = call_like(call, "reshape", q, suffix="rows", newshape=(-1, shape[-1]))
        suffix = "sums" if is_flat else "products"
        sums = call_like(call, "qnn.dense", q, rows, suffix=suffix, input_zero_point=zero)
        return sums if is_flat else call_like(call, "reshape", sums, suffix="sums", newshape=out)

    sums = _of_integers(call, types)
    if sums is not None:
        if not _has_result(call, types, SUMS):
            return None
        q, weight, zero = sums
        if zero is not None:
            return Found(_REASON, made(q, weight, zero))
        return _with_zero_point(call, made(q, weight, 0), weight, 1 - channel, types)
    pair = _of_floats(call, types, channel - 2)
    if pair is None or isinstance(pair, Found):
        return pair
    inputs, factors, values = pair
    return _scaled(call, made(inputs.q, values, int(inputs.zero)), inputs, factors, -1)


def _with_zero_point(call: Call, sums: Call, weight: Array, along: int, types: KnownTypes,
                     ) -> Found | None:  # fmt: skip
    """Subtract a zero point that a run computes: it is multiplied by the sums of the weights."""
    data = centred(call.args[0], types)
    assert data is not None
    assert data.zero is not None
    zero = types.tensor(data.zero)
    if zero.rank and zero.shape[-1] != 1:
        return None  # it differs inside the sums
    columns = weight.astype(np.int64).sum(axis=along).astype(np.int32)
    moved = call_like(call, "multiply", data.zero, columns, suffix="zero")
    return Found(_REASON, call_like(call, "subtract", sums, moved))


RULES: Rules = {"nn.conv2d": _conv2d, "nn.dense": _dense, "nn.matmul": _matmul}
"""Operator -> the rule for its calls."""
