"""Rules for convolutions along rows and transposed ones: write them by sums of integers.

`decompose_ops` writes these operators by convolutions of images. The rules do so with operands of
int32, which the rule for convolutions recognises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler.graph.ir import Call, Expr
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.decompose.convolutions import as_images, flat_attrs
from dlcompiler.graph.passes.decompose.transposed import conv_transpose
from dlcompiler.graph.passes.quantized.forms import Found, Rules
from dlcompiler.graph.passes.quantized.products import (
    MOST_TERMS,
    SUMS,
    has_result,
    of_floats,
    of_integers,
    scaled,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, operator_of


def _convolution(call: Call, types: KnownTypes) -> Found | None:
    """Write a convolution of quantized numbers as one of int32 over images."""
    attrs = attrs_of(call)
    images, kernels = attrs["data_layout"], attrs["kernel_layout"]
    if not images.isalpha() or not kernels.isalpha() or attrs["out_layout"] not in ("", images):
        return None
    own = of_integers(call, types)
    if own is not None and own.zero is not None and has_result(call, types, SUMS):
        value = _sums(call, own.q, _wide(own.parts), own.zero, types)
        return None if value is None else Found("it is one of images", value)
    pair = of_floats(call, types, kernels.index("O") - len(kernels))
    if pair is None or isinstance(pair, Found):
        return pair
    data, weight, parts = pair
    if "transpose" in operator_of(call) and attrs["groups"] > 1 and not weight.is_whole:
        return Found("each group has the scales of the weights again", None)
    wide = _wide(parts)
    if wide.size > MOST_TERMS * wide.shape[kernels.index("O")]:
        return Found("the sums do not fit int32", None)
    value = _sums(call, data.q, wide, int(data.zero), types)
    if value is None:
        return None
    return scaled(call, value, data, weight, images.index("C") - len(images))


def _wide(parts: tuple[Array, ...]) -> Array:
    return np.asarray(sum(part.astype(np.int32) for part in parts), np.int32)


def _sums(call: Call, q: Expr, weight: Array, zero: int, types: KnownTypes) -> Call | None:
    """Return the convolution of integers less their zero point, in int32; None: it has no rule."""
    attrs: dict[str, Any] = attrs_of(call)
    layout, name = attrs["data_layout"], operator_of(call)
    is_flat = "1d" in name
    if is_flat:
        q = as_images(call, q, layout, "image")
        weight = np.expand_dims(weight, attrs["kernel_layout"].index("W"))
        attrs, name = flat_attrs(attrs), name.replace("1d", "2d")
    data = call_like(call, "cast", q, suffix="wide", dtype=SUMS)
    if zero:
        data = call_like(call, "subtract", data, np.asarray(zero, np.int32), suffix="centred")
    attrs = {**attrs, "out_dtype": SUMS}
    made = call_like(call, name, data, weight, suffix="sums", **attrs)
    if "transpose" in name:
        found = conv_transpose(made, types)
        if found is None or not isinstance(found.value, Call):
            return None
        made = found.value
    return call_like(call, "squeeze", made, axis=(layout.index("W"),)) if is_flat else made


RULES: Rules = dict.fromkeys(
    ("nn.conv1d", "nn.conv1d_transpose", "nn.conv2d_transpose"), _convolution
)
"""Operator -> the rule for its calls."""
