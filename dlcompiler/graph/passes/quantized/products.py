"""Rules for convolutions and products: multiply integers, and add up in int32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dlcompiler.graph.ir import Call, Constant, Expr
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.quantized.forms import (
    BYTES,
    Dequantized,
    Found,
    Rules,
    axis_of,
    centred,
    centred_weight,
    dequantized,
    in_int8,
    known,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, operator_of, shape_of

SUMS = "int32"
LARGEST_PRODUCT = 255 * 255
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

    kept: dict[str, Any] = {k: v for k, v in call.attrs.items() if k != "out_dtype"}

    def made(q: Expr, parts: Sequence[Array], zero: int) -> Call:
        return _added(call, [
            call_like(call, "qnn.conv2d", q, part, suffix="sums", **kept, input_zero_point=zero)
            for part in parts
        ])  # fmt: skip

    own = of_integers(call, types)
    if own is not None and own.zero is not None and terms:
        value = made(own.q, own.parts, own.zero)
        return Found(_REASON, value) if has_result(call, types, SUMS) else None
    pair = of_floats(call, types, channel - len(shape))
    if pair is None or isinstance(pair, Found):
        return pair
    data, weight, parts = pair
    if terms > MOST_TERMS:
        return Found("the sums do not fit int32", None)
    return scaled(call, made(data.q, parts, int(data.zero)), data, weight, images.index("C") - 4)


def _added(call: Call, sums: Sequence[Call]) -> Call:
    """Return the sum of the products with the parts of weights that int8 does not hold."""
    first, *rest = sums
    for each in rest:
        first = call_like(call, "add", first, each, suffix="sums")
    return first


def has_result(call: Call, types: KnownTypes, dtype: str) -> bool:
    """Tell whether a call has a result of a dtype."""
    return types.tensor(call).dtype == dtype


class _Integers(NamedTuple):
    """The operands of a product of int32."""

    q: Expr
    parts: tuple[Array, ...]
    """Weights as sums of int8."""
    zero: int | None
    """Zero point of the data; None if a run decides it."""


def of_integers(call: Call, types: KnownTypes) -> _Integers | None:
    """Return the operands of a product of int32 that have 8 bits; None for another product."""
    data = centred(call.args[0], types)
    if data is None or types.tensor(call.args[1]).dtype != SUMS:
        return None
    weight = known(call.args[1], types)
    parts = None if weight is None else in_int8(weight.astype(np.int64))
    return None if parts is None else _Integers(data.q, parts, data.number(types))


def of_floats(
    call: Call, types: KnownTypes, channel: int
) -> tuple[Dequantized, Dequantized, tuple[Array, ...]] | Found | None:
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
    data = dequantized(call.args[0], types)
    if data is None or not data.is_byte or not has_result(call, types, "float32"):
        return None
    found = _weight(call, types, channel)
    return found if found is None or isinstance(found, Found) else (data, *found)


def _weight(
    call: Call, types: KnownTypes, channel: int
) -> tuple[Dequantized, tuple[Array, ...]] | Found | None:
    """Return known weights that are dequantized, and less their zero points; or why there are none.

    `channel` is as of `of_floats`.
    """
    weight = dequantized(call.args[1], types)
    if weight is None or weight.dtype not in BYTES or not isinstance(weight.q, Constant):
        return None
    if not weight.is_whole and weight.axis != channel:
        return Found("the scales of the weights differ inside the sums", None)
    parts = centred_weight(weight.q.value, weight.zero, weight.axis)
    return _WEIGHTS if parts is None else (weight, parts)


def scaled(call: Call, sums: Call, data: Dequantized, weight: Dequantized, axis: int) -> Found:
    """Return sums times the scales of both operands."""
    scale = np.asarray(data.scale * weight.scale, np.float32)
    return Found(_REASON, _times(call, sums, scale, axis))


def _times(call: Call, sums: Call, scale: Array, axis: int, suffix: str = "") -> Call:
    """Return sums times a scale, or each slice times its own."""
    zero, attrs = np.zeros((), np.int32), axis_of(scale, axis)
    return call_like(call, "qnn.dequantize", sums, scale, zero, suffix=suffix, **attrs)


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

    def made(q: Expr, parts: Sequence[Array], zero: int) -> Call:
        is_flat = len(shape) == 2
        if not is_flat:
            q = call_like(call, "reshape", q, suffix="rows", newshape=(-1, shape[-1]))
        sums = _added(call, [
            call_like(call, "qnn.dense", q, np.ascontiguousarray(part.T) if turn else part,
                      suffix="sums", input_zero_point=zero)
            for part in parts
        ])  # fmt: skip
        return sums if is_flat else call_like(call, "reshape", sums, suffix="sums", newshape=out)

    own = of_integers(call, types)
    if own is not None:
        if not has_result(call, types, SUMS):
            return None
        if own.zero is not None:
            return Found(_REASON, made(own.q, own.parts, own.zero))
        return _with_zero_point(call, made(own.q, own.parts, 0), own.parts, 1 - channel, types)
    chosen = _chosen(call, types, channel - 2)
    if chosen is not None:
        q, scale, zero, scales, parts = chosen
        sums = _less_zero_point(call, made(q, parts, 0), zero, parts, 1 - channel)
        # The product of both scales may be infinite or 0, but sums times known scales are normal.
        numbers = _times(call, sums, scales, -1, "numbers")
        return Found(_REASON, call_like(call, "multiply", numbers, scale))
    pair = of_floats(call, types, channel - 2)
    if pair is None or isinstance(pair, Found):
        return pair
    inputs, factors, parts = pair
    return scaled(call, made(inputs.q, parts, int(inputs.zero)), inputs, factors, -1)


def _with_zero_point(
    call: Call, sums: Call, parts: Sequence[Array], along: int, types: KnownTypes
) -> Found | None:
    """Subtract a zero point that a run computes: it is multiplied by the sums of the weights."""
    data = centred(call.args[0], types)
    assert data is not None
    assert data.zero is not None
    zero = types.tensor(data.zero)
    if zero.rank and zero.shape[-1] != 1:
        return None  # it differs inside the sums
    return Found(_REASON, _less_zero_point(call, sums, data.zero, parts, along))


def _less_zero_point(
    call: Call, sums: Call, zero: Expr, parts: Sequence[Array], along: int
) -> Call:
    """Return sums less a zero point, an int32, times the sums of the weights."""
    columns = sum(part.astype(np.int64).sum(axis=along) for part in parts)
    moved = call_like(call, "multiply", zero, np.asarray(columns, np.int32), suffix="zero")
    return call_like(call, "subtract", sums, moved)


def _chosen(
    call: Call, types: KnownTypes, channel: int
) -> tuple[Expr, Expr, Expr, Array, tuple[Array, ...]] | None:
    """Return the operands of a product of floats whose data have a scale that a run decides.

    These are the integers, their scale, their zero point as int32, the scales of the weights, and
    the weights less their zero points.
    """
    data = call.args[0]
    if operator_of(data) != "qnn.dequantize":
        return None
    assert isinstance(data, Call)
    q, scale, zero = data.args
    if isinstance(scale, Constant):
        return None
    is_one = types.tensor(scale).rank == types.tensor(zero).rank == 0
    if not is_one or types.tensor(q).dtype not in BYTES or types.tensor(scale).dtype != "float32":
        return None
    found = _weight(call, types, channel) if has_result(call, types, "float32") else None
    if found is None or isinstance(found, Found):
        return None
    weight, parts = found
    wide = call_like(call, "cast", zero, suffix="zero", dtype=SUMS)
    return q, scale, wide, weight.scale, parts


RULES: Rules = {"nn.conv2d": _conv2d, "nn.dense": _dense, "nn.matmul": _matmul}
"""Operator -> the rule for its calls."""
