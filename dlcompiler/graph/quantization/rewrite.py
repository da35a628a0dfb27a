"""Put quantize and dequantize around values, and integers in the place of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dlcompiler.graph.ir import MAIN, Call, Constant, Expr, Module, Node, Op, named, rewrite_from
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.tools import attrs_of, call_like, operator_of
from dlcompiler.graph.quantization.calibrate import SMALLEST_SCALE, Range
from dlcompiler.graph.quantization.choose import Plan

MOST_INTEGER = 2**31 - 1
"""Largest bias in int32; [1]."""


def rewritten(
    plan: Plan, ranges: Mapping[Node, Range], *, per_channel: bool, symmetric: bool
) -> tuple[Module, dict[Node, Expr]]:
    """Return the quantized module, and what the nodes of the plan's module became.

    Parameters
    ----------
    plan : Plan
        What is quantized.
    ranges : mapping
        The range of each point of the plan.
    per_channel : bool
        Give each output channel of the weights a scale.
    symmetric : bool
        Store values as int8 with the zero point 0; otherwise as uint8.
    """
    numbers = {point: found.scale_and_zero(symmetric=symmetric) for point, found in ranges.items()}
    scales: dict[Node, Array] = {}
    """Result of a product, or of its bias -> scale of the sums, with the axis of the channels."""
    made: dict[Node, Expr] = {}

    def rule(old: Node, new: Node) -> Node:
        if isinstance(new, Op):
            return new
        if isinstance(old, Call) and isinstance(new, Call):
            if old in plan.products:
                weight, scale = _weight(old, new, per_channel=per_channel)
                new = replace(new, args=(new.args[0], weight))
                scales[old] = scale * numbers[plan.products[old]][0]
            elif operator_of(old) in ("add", "nn.bias_add"):
                new = _with_bias(old, new, scales)
        if old in numbers:
            new = _stored(new, *numbers[old])
        made[old] = new
        return new

    main = plan.module.main  # parameters stay, also those that are stored as integers
    changed = replace(main, body=rewrite_from(main.body, rule))
    return named(plan.module.with_function(MAIN, changed)), made


def channel_axes(call: Call) -> tuple[int, int]:
    """Return the dimension of the output channels in the weights, and in the result from behind."""
    attrs = attrs_of(call)
    match operator_of(call):
        case "nn.conv2d":
            images = layout_of(attrs["out_layout"] or attrs["data_layout"])
            return layout_of(attrs["kernel_layout"]).index("O"), images.index("C") - 4
        case "nn.matmul":
            return (0 if attrs["transpose_b"] else 1), -1
    return 0, -1


def _weight(old: Call, new: Call, *, per_channel: bool) -> tuple[Call, Array]:
    """Return weights as integers that are dequantized, and their scales."""
    weight = new.args[1]
    assert isinstance(weight, Constant)
    value, axis = weight.value, channel_axes(old)[0]
    others = tuple(n for n in range(value.ndim) if n != axis)
    magnitude = np.abs(value).max(axis=others if per_channel else None, initial=0)
    # The scale of a channel without weights decides how exact its bias is.
    least = magnitude[magnitude > 0].min(initial=np.inf)
    filled = np.where(magnitude > 0, magnitude, least if np.isfinite(least) else 0)
    scale = np.asarray(np.maximum(filled / 127, SMALLEST_SCALE), np.float32)
    shape = [-1 if n == axis else 1 for n in range(value.ndim)]
    along = scale.reshape(shape) if scale.ndim else scale
    integers = np.clip(np.rint(value / along), -127, 127).astype(np.int8)
    zero = np.zeros((), np.int8)
    kept = Constant(integers, weight.name, weight.span)
    return call_like(old, "qnn.dequantize", kept, scale, zero, suffix="weight", axis=axis), scale


def _with_bias(old: Call, new: Call, scales: dict[Node, Array]) -> Call:
    """Store the bias of a product with the scale of its sums."""
    for n, arg in enumerate(old.args):
        bias = new.args[1 - n]
        if arg not in scales or not isinstance(bias, Constant):
            continue
        scale, value = scales[arg], bias.value
        assert isinstance(arg, Call)
        axis = _axis_of_bias(arg, old, value)
        if axis is None:
            return new
        along = scale.reshape([-1 if k == axis else 1 for k in range(value.ndim)]) \
            if scale.ndim else scale  # fmt: skip
        with np.errstate(over="ignore"):
            whole = np.rint(value.astype(np.float64) / along)
        if not (np.abs(whole) <= MOST_INTEGER).all():
            return new
        zero = np.zeros((), np.int32)
        stored = call_like(old, "qnn.dequantize", whole.astype(np.int32), scale, zero,
                           suffix="bias", axis=axis)  # fmt: skip
        args = (new.args[0], stored) if n == 0 else (stored, new.args[1])
        return replace(new, args=args)
    return new


def _axis_of_bias(product: Call, call: Call, bias: Array) -> int | None:
    """Return the dimension of the channels in a bias; None if it is no bias."""
    if operator_of(call) == "nn.bias_add":
        return 0
    place = bias.ndim + channel_axes(product)[1]
    is_bias = all(extent == 1 for n, extent in enumerate(bias.shape) if n != place)
    return place if 0 <= place < bias.ndim and is_bias else None


def _stored(value: Expr, scale: Array, zero: Array) -> Call:
    """Return a value as integers that are dequantized."""
    like = value if isinstance(value, Call) else Call(Op("copy"), (value,), name=_name(value))
    dtype = str(zero.dtype)
    stored = call_like(like, "qnn.quantize", value, scale, zero, suffix="integers",
                       out_dtype=dtype)  # fmt: skip
    return call_like(like, "qnn.dequantize", stored, scale, zero, suffix="numbers")


def _name(value: Expr) -> str:
    return getattr(value, "name", "")
