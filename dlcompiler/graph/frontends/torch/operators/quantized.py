"""Operators between numbers and integers, as PyTorch 2 export quantization (PT2E) leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.origin import constant_of, folded
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.frontends.torch.package import dtype_of
from dlcompiler.graph.ir import Constant, Expr
from dlcompiler.graph.operators.quantized import NARROW, SUMS

LIBRARY = "quantized_decomposed::"
"""What the names of these operators begin with; importing ``torchao`` registers them."""
MOST_FOLDED = 1 << 28
"""Most elements of a weight that is quantized while the model is imported; [1]."""


@dataclass(frozen=True)
class _Integers:
    """Integers that stand for numbers: their dtype, scales, zero points, dimension, and limits."""

    dtype: str
    scale: Expr
    zero: Expr
    axis: int | None
    limits: tuple[int, int]


def _integers(node: AtenNode, x: Expr) -> _Integers:
    """Return the arguments that all these operators have.

    Parameters
    ----------
    node : AtenNode
        The call: one scale is a number or a tensor of one element, several have an axis.
    x : Expr
        The data.
    """
    dtype = dtype_of(node["dtype"])
    if dtype not in (*NARROW, SUMS):
        node.fail("its integers have an unknown dtype", got=dtype,
                  expected=", ".join((*NARROW, SUMS)))  # fmt: skip
    limits = tuple(int(node[name]) for name in ("quant_min", "quant_max"))
    axis = node.axis("axis", node.rank(x)) if "axis" in node.given else None
    scale = node.operand("scales" if axis is not None else "scale", "float32")
    name = "zero_points" if axis is not None else "zero_point"
    zero = _zero_point(node, name, dtype)
    if axis is None:
        scale, zero = (_one(node, value) for value in (scale, zero))
    return _Integers(dtype, scale, zero, axis, (limits[0], limits[1]))


def _zero_point(node: AtenNode, name: str, dtype: str) -> Expr:
    """Return zero points as integers of the dtype of the data; those left out are 0."""
    value = node.get(name)
    if value is None:
        return constant_of(np.zeros(()), dtype)
    if not isinstance(value, Expr):
        value = Constant(np.asarray(value))
    if isinstance(value, Constant):
        least, most = dtypes.min_value(dtype), dtypes.max_value(dtype)
        if not ((value.value >= least) & (value.value <= most)).all():
            node.fail(f"a zero point is no {dtype}", got=repr(value.value.tolist())[:100])
        return constant_of(value.value, dtype)
    return node.cast(value, dtype)


def _one(node: AtenNode, value: Expr) -> Expr:
    """Return a tensor of one element as a number."""
    return constant_of(value.value.reshape(())) if isinstance(value, Constant) else node.reshape(
        value, ()
    )  # fmt: skip


def _quantize(node: AtenNode) -> Expr:
    """Return numbers as integers; a weight is quantized at once.

    PyTorch multiplies by the reciprocal of the scale, and not as here divides: an integer may
    differ by 1 where a number is half-way between two.
    """
    x = node.cast(node.tensor("input"), "float32")
    kind = _integers(node, x)
    if kind.dtype not in NARROW:
        node.fail("no integers of 8 or 16 bits", got=kind.dtype)
    axis = {} if kind.axis is None else {"axis": kind.axis}
    made: Expr = node.call("qnn.quantize", x, kind.scale, kind.zero, out_dtype=kind.dtype, **axis)
    low, high = kind.limits
    if low > dtypes.min_value(kind.dtype) or high < dtypes.max_value(kind.dtype):
        made = node.call("clip", made, a_min=low, a_max=high)
    return folded(made, node.types, MOST_FOLDED)


def _dequantize(node: AtenNode) -> Expr:
    x = node.tensor("input")
    kind = _integers(node, x)
    axis = {} if kind.axis is None else {"axis": kind.axis}
    return node.cast(node.call("qnn.dequantize", x, kind.scale, kind.zero, **axis), node.out_dtype)


def _choose(node: AtenNode, is_symmetric: bool) -> list[Expr]:
    """Return the scale and the zero point with which integers reach all elements of a tensor.

    As PyTorch's observers do, for numbers that are finite; 0 is always an integer.
    """
    x = node.cast(node.tensor("input"), "float32")
    least, most, uses = node["quant_min"], node["quant_max"], dtype_of(node["dtype"])
    nothing = node.number(0.0, "float32")
    low = node.call("minimum", node.call("min", x), nothing)
    high = node.call("maximum", node.call("max", x), nothing)
    steps = float(most - least)
    zero: Expr
    if is_symmetric:
        reach, steps = node.call("maximum", node.call("negative", low), high), steps / 2
    else:
        reach = node.call("subtract", high, low)
    scale = node.call("divide", reach, node.number(steps, "float32"))
    scale = node.call("maximum", scale, node.number(node["eps"], "float32"))
    if is_symmetric:
        zero = node.number(128 if uses == "uint8" else 0, "int64")
    else:
        below = node.call("round", node.call("divide", low, scale))
        zero = node.call("subtract", node.number(least, "float32"), below)
        zero = node.cast(node.call("clip", zero, a_min=least, a_max=most), "int64")
    return [node.reshape(value, (1,)) for value in (node.cast(scale, "float64"), zero)]


TABLE: dict[str, Converter] = {
    f"{LIBRARY}choose_qparams": partial(_choose, is_symmetric=False),
    f"{LIBRARY}choose_qparams_symmetric": partial(_choose, is_symmetric=True),
    **{f"{LIBRARY}quantize_per_{part}": _quantize for part in ("tensor", "channel")},
    **{f"{LIBRARY}dequantize_per_{part}": _dequantize for part in ("tensor", "channel")},
}
"""The converters of this module."""
