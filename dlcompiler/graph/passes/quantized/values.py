"""Rules for what stands between products: keep integers as long as results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler.graph.ir import Call, Constant, Expr, Node, Tuple
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.quantized.forms import (
    Dequantized,
    Found,
    Rules,
    Target,
    axis_of,
    dequantized,
    limits,
    target_of,
)
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    operator_of,
    scalar_of,
)

_VIEWS = ("reshape", "transpose", "squeeze", "expand_dims", "nn.batch_flatten", "strided_slice")
_LARGEST_CENTRED = 255
"""Of a number of 8 bits less its zero point; [1]."""
_NEAR = 1e-5
"""Relative difference of scales that are the same but for rounding; [1]."""


# -- operators that choose elements ----------------------------------------------------------------


def _chosen(call: Call, types: KnownTypes) -> Found | None:
    """Move an operator whose results are elements of its operand before the conversion."""
    data = dequantized(call.args[0], types)
    if data is None or not data.is_byte:
        return None
    moved = call_like(call, operator_of(call), data.q, suffix="integers", **call.attrs)
    return Found("it only moves elements", data.moved(call, moved))


def _max_pool(call: Call, types: KnownTypes) -> Found | None:
    """Move a maximum whose windows all have an element of the image.

    The padding is narrower than a window, but a dilated window may jump over the image.
    """
    attrs = attrs_of(call)
    is_dense = all(distance == 1 for distance in attrs["dilation"])
    return _chosen(call, types) if is_dense and not attrs["ceil_mode"] else None


def _joined(call: Call, types: KnownTypes) -> Found | None:
    """Concatenate integers that have one scale."""
    if not isinstance(call.args[0], Tuple):
        return None
    parts = [dequantized(field, types) for field in call.args[0].fields]
    known = [part for part in parts if part is not None and part.is_byte]
    if not known or len(known) < len(parts):
        return None
    if not all(known[0].scale == p.scale and known[0].zero == p.zero and known[0].dtype == p.dtype
               for p in known):  # fmt: skip
        return None
    fields = Tuple(tuple(part.q for part in known))
    moved = call_like(call, "concatenate", fields, suffix="integers", **call.attrs)
    return Found("all parts have one scale", known[0].moved(call, moved))


def _padded(call: Call, types: KnownTypes) -> Found | None:
    """Pad integers by their zero point in place of 0."""
    data = dequantized(call.args[0], types)
    value = 0.0 if len(call.args) < 2 else scalar_of(call.args[1])
    is_constant = attrs_of(call)["pad_mode"] == "constant"
    if data is None or not data.is_byte or (is_constant and value != 0):
        return None
    args = [data.q, Constant(data.zero)] if is_constant else [data.q]
    moved = call_like(call, "nn.pad", *args, suffix="integers", **call.attrs)
    return Found("the zero point stands for 0", data.moved(call, moved))


def _relu(call: Call, types: KnownTypes) -> Found | None:
    data = dequantized(call.args[0], types)
    if data is None or not data.is_byte:
        return None
    moved = call_like(call, "maximum", data.q, Constant(data.zero), suffix="integers")
    return Found("the zero point stands for 0", data.moved(call, moved))


# -- biases ----------------------------------------------------------------------------------------


def _sum(call: Call, types: KnownTypes) -> Found | None:
    """Add a bias of integers to sums of integers that have its scale."""
    for first, second in (call.args, tuple(reversed(call.args))):
        sums, bias = dequantized(first, types), dequantized(second, types)
        if sums is None or bias is None or sums.dtype != "int32" or isinstance(sums.q, Constant):
            continue
        if bias.dtype != "int32" or not isinstance(bias.q, Constant) or bias.zero.any():
            continue
        if types[call] != types[first] or not _is_same_scale(sums, bias, call, types):
            continue
        if _largest(sums.q) + _largest(bias.q) > limits("int32")[1]:
            return Found("the sums with the bias may not fit int32", None)
        moved = call_like(call, operator_of(call), sums.q, bias.q, suffix="sums", **call.attrs)
        return Found("the bias has the scale of the sums", sums.moved(call, moved))
    return None


def _largest(node: Node) -> float:
    """Return the largest magnitude of sums of products, which may have a bias."""
    if isinstance(node, Constant):
        return float(np.abs(node.value.astype(np.float64)).max(initial=0))
    if isinstance(node, Call):
        match operator_of(node):
            case "add" | "nn.bias_add":
                return _largest(node.args[0]) + _largest(node.args[1])
            case "reshape" | "transpose" | "expand_dims" | "squeeze" | "strided_slice":
                return _largest(node.args[0])
            case "qnn.dense" | "qnn.conv2d" if isinstance(node.args[1], Constant):
                weight = node.args[1].value
                axis = layout_of(attrs_of(node).get("kernel_layout", "OI")).index("O")
                others = tuple(n for n in range(weight.ndim) if n != axis)
                sums = np.abs(weight.astype(np.int64)).sum(axis=others)
                return float(_LARGEST_CENTRED * sums.max(initial=0))
    return np.inf


def _is_same_scale(sums: Dequantized, bias: Dequantized, call: Call, types: KnownTypes) -> bool:
    """Tell whether each element of a bias has the scale of the sums that it is added to."""
    place = bias.axis
    if operator_of(call) == "nn.bias_add":
        rank = types.tensor(call).rank
        place = attrs_of(call)["axis"] % rank - rank
    if not bias.is_whole and not sums.is_whole and place != sums.axis:
        return False
    is_fitting = bias.is_whole or sums.is_whole or bias.scale.shape == sums.scale.shape
    return is_fitting and bool(np.allclose(sums.scale, bias.scale, rtol=_NEAR, atol=0))


# -- quantize --------------------------------------------------------------------------------------


def _quantize(call: Call, types: KnownTypes) -> Found | None:
    """Make integers of integers; cut off what a limit of the dtype cuts off anyway."""
    target = target_of(call)
    if target is None:
        return None
    inner: Node = call.args[0]
    bounds = limits(target.dtype)
    while (found := _bounded(inner, target)) is not None:
        inner, own = found
        low, high = (min(max(bound, bounds[0]), bounds[1]) for bound in own)
        bounds = low, high
    value = dequantized(inner, types)
    made = None if value is None else _converted(call, value, target)
    is_cut = bounds != limits(target.dtype)
    if made is None:
        if inner is call.args[0] or is_cut:
            return None
        kept: dict[str, Any] = dict(call.attrs)
        made_again = call_like(call, "qnn.quantize", inner, *call.args[1:], **kept)
        return Found("the limits of the dtype cut off as much", made_again)
    reason, integers = made
    if is_cut:
        integers = call_like(call, "clip", integers, a_min=bounds[0], a_max=bounds[1])
    return Found(reason, integers)


def _bounded(node: Node, target: Target) -> tuple[Expr, tuple[int, int]] | None:
    """Return the operand of a call that cuts off numbers, and the integers of its bounds."""
    if not isinstance(node, Call):
        return None
    high = limits(target.dtype)[1]
    match operator_of(node):
        case "nn.relu":
            return node.args[0], (target.of(0), high)
        case "nn.relu6":
            return node.args[0], (target.of(0), target.of(6))
        case "clip":
            low, most = node.attrs["a_min"], node.attrs["a_max"]
            if low <= most:  # type: ignore[operator]  # numbers
                return node.args[0], (target.of(low), target.of(most))  # type: ignore[arg-type]  # numbers
    return None


def _converted(call: Call, value: Dequantized, target: Target) -> tuple[str, Expr] | None:
    """Return the integers of a value that is made of integers."""
    wanted = Dequantized(value.q, target.dtype, target.scale, target.zero, value.axis)
    if value.has_same_numbers(wanted):
        return "the integers are the same", value.q
    if value.dtype != "int32" or value.zero.any() or isinstance(value.q, Constant):
        return None
    scale = np.asarray(value.scale / target.scale, np.float32)
    made = call_like(call, "qnn.requantize", value.q, scale, target.zero, suffix="integers",
                     out_dtype=target.dtype, **axis_of(scale, value.axis))  # fmt: skip
    return "sums of integers are scaled once", made


RULES: Rules = {
    **dict.fromkeys(_VIEWS, _chosen),
    **{f"nn.max_pool{n}d": _max_pool for n in (1, 2, 3)},
    **{f"nn.global_max_pool{n}d": _chosen for n in (1, 2, 3)},
    "concatenate": _joined, "nn.pad": _padded, "nn.relu": _relu, "add": _sum, "nn.bias_add": _sum,
    "qnn.quantize": _quantize,
}  # fmt: skip
"""Operator -> the rule for its calls."""
