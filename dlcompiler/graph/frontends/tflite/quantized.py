"""Scales and zero points of TFLite tensors: ``x = (q - zero point) * scale``.

Operators on quantized tensors become operators on floats between `qnn.dequantize` and
`qnn.quantize`, as ONNX writes quantized models in the form QDQ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.frontends.tflite.reading import OPERATION
from dlcompiler.graph.ir import Constant, Expr, TensorType
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.quantized import NARROW, SUMS

RAW = frozenset({"CAST", "IF"})
"""Operators that take the integers themselves, and not what they stand for."""
BIASES = {
    "CONV_2D": (0, 1, 2), "DEPTHWISE_CONV_2D": (0, 1, 2), "FULLY_CONNECTED": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1, 3),
}  # fmt: skip
"""Operator -> numbers of its operands: data, weights, and the bias, which has the scale of both."""


@dataclass(frozen=True)
class Scales:
    """What the integers of a tensor stand for."""

    scale: Array
    """Shape () or (slices,), float32."""
    zero: Array
    """Shape () or (slices,), of the dtype of the tensor."""
    axis: int
    """The dimension of the slices."""


def scales_of(tensor: Any, kind: TensorType, what: str) -> Scales | None:
    """Return the scales of a tensor; None for numbers, and for integers that are themselves.

    Parameters
    ----------
    tensor : tflite.Tensor
        The tensor.
    kind : TensorType
        Its type.
    what : str
        What it is called in errors.

    Raises
    ------
    GraphError
        There is not one positive scale for the tensor or for each slice, or a zero point is no
        integer of the dtype.
    """
    found = tensor.Quantization()
    if kind.dtype not in NARROW or found is None or not found.ScaleLength():
        return None
    if found.DetailsType():
        raise GraphError(OPERATION, f"{what} has scales of another kind than for slices",
                         got=f"details of type {found.DetailsType()}")  # fmt: skip
    axis = int(found.QuantizedDimension())
    count = _slices(found.ScaleLength(), axis, kind, what)
    scale = np.array([found.Scale(n) for n in range(count)], np.float32)
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise GraphError(OPERATION, f"{what} has a scale that is no positive number",
                         got=repr(scale.tolist())[:100])  # fmt: skip
    if found.ZeroPointLength() not in (0, 1, count):
        raise GraphError(OPERATION, f"{what} has another number of zero points than of scales",
                         got=str(found.ZeroPointLength()), expected=str(count))  # fmt: skip
    points = [int(found.ZeroPoint(n)) for n in range(found.ZeroPointLength())] or [0]
    low, high = dtypes.min_value(kind.dtype), dtypes.max_value(kind.dtype)
    if min(points) < low or max(points) > high:
        raise GraphError(OPERATION, f"{what} has a zero point that is no {kind.dtype}",
                         got=repr(points)[:100])  # fmt: skip
    zero = np.array(points, dtypes.to_numpy(kind.dtype))
    return Scales(_one(scale), _one(zero), 0 if count == 1 else axis)


def _one(values: Array) -> Array:
    return values.reshape(()) if len(values) == 1 else values


def _slices(count: int, axis: int, kind: TensorType, what: str) -> int:
    """Return the number of scales, which must be 1 or that of the slices."""
    is_fitting = count == 1 or (0 <= axis < kind.rank and kind.shape[axis] == count)
    if not is_fitting:
        raise GraphError(OPERATION, f"{what} has another number of scales than of slices",
                         got=f"{count} along dimension {axis} of {kind}")  # fmt: skip
    return count


def dequantized(origin: Origin, q: Expr, scales: Scales) -> Expr:
    """Return what integers stand for, as float32."""
    axis = {"axis": scales.axis} if scales.scale.ndim else {}
    return origin.call("qnn.dequantize", q, Constant(scales.scale), Constant(scales.zero), **axis)


def quantized(origin: Origin, x: Expr, scales: Scales, dtype: str) -> Expr:
    """Return the integers that stand for numbers."""
    if scales.scale.ndim:
        origin.fail("its result has several scales", got=str(scales.scale.size))
    return origin.call("qnn.quantize", x, Constant(scales.scale), Constant(scales.zero),
                       out_dtype=dtype)  # fmt: skip


def dequantized_bias(origin: Origin, q: Expr, data: Scales, weight: Scales) -> Expr:
    """Return a bias of integers as numbers: TFLite adds it to the sums of products as it is."""
    if data.scale.ndim:
        origin.fail("its data have several scales", got=str(data.scale.size))
    if isinstance(q, Constant) and origin.dtype(q) == "int64":
        if q.value.size and abs(q.value).max() > dtypes.max_value(SUMS):
            origin.fail("its bias does not fit int32")
        q = constant_of(q.value, SUMS)
    scale = np.asarray(data.scale * weight.scale, np.float32)
    if scale.ndim and origin.shape(q) != scale.shape:
        origin.fail("its bias has another number of elements than the weights have scales",
                    got=str(origin.type(q)), expected=str(scale.shape))  # fmt: skip
    return dequantized(origin, q, Scales(scale, np.zeros((), np.int32), 0))
