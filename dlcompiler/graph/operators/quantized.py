"""Integers that stand for numbers: ``x = (q - zero point) * scale``.

`qnn.quantize` and `qnn.dequantize` are the operators of ONNX, with its rounding. `qnn.conv2d`,
`qnn.dense` and `qnn.matmul` multiply integers and add them up exactly, in int32, as those of Relay
do; `qnn.requantize` makes such sums narrow again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import Attribute, dtype, integer
from dlcompiler.graph.operators.base import (
    Array,
    Attributes,
    CallTypes,
    GraphOperator,
    Pattern,
    Relation,
    Result,
)
from dlcompiler.graph.operators.convolutions import (
    convolution_attributes,
    convolution_layouts,
    convolution_of,
    convolved,
    evaluate_convolution,
)
from dlcompiler.graph.operators.layouts import axis_layouts
from dlcompiler.graph.operators.products import TABLE as PRODUCTS
from dlcompiler.graph.operators.products import UNITS, transposes
from dlcompiler.graph.operators.relations import axis_of, expect
from dlcompiler.graph.operators.values import converted
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.numeric import binary_function
from dlcompiler.ops.convolutions import convolve
from dlcompiler.ops.helpers import BROADCAST, tensor

NARROW = ("int8", "uint8", "int16", "uint16")
"""Dtypes that numbers are quantized to."""
SUMS = "int32"
"""Dtype of sums of products."""

AXIS = Attribute("axis", integer, -1, "dimension along which scales and zero points differ")
OUT_DTYPE = Attribute("out_dtype", dtype, "uint8", f"dtype of the result: {', '.join(NARROW)}")
ZERO_POINT = Attribute("input_zero_point", integer, 0, "what the first operand has in place of 0")


# -- types ----------------------------------------------------------------------------------------


def _check_scale(call: CallTypes, scale_dtype: str, zero_dtype: str) -> None:
    """Check that scale and zero point are numbers, or have one for each slice of the data.

    All slices may have one zero point.
    """
    data = call.tensor(0)
    shape = call.tensor(1).shape
    if len(shape) == 1:
        shape = (data.shape[axis_of(call, call.attrs["axis"], data.rank)],)
    elif shape:
        call.fail("the scale has several dimensions", expected="a number, or one for each slice")
    expect(call, 1, shape, scale_dtype)
    expect(call, 2, shape if call.tensor(2).rank else (), zero_dtype)


def _quantized(source: str) -> Relation:
    """Return the relation of an operator whose result is narrow; "" is a source of floats."""

    def relation(call: CallTypes) -> TensorType:
        data, result = call.tensor(0), call.attrs["out_dtype"]
        is_fitting = data.dtype == source if source else dtypes.is_float(data.dtype)
        if not is_fitting:
            call.fail(f"takes {source or 'floats'}, not {data.dtype}")
        if result not in NARROW:
            call.fail(f"out_dtype is {result}", expected=", ".join(NARROW))
        _check_scale(call, "float32" if source else data.dtype, result)
        return TensorType(data.shape, result)

    return relation


def _dequantized(call: CallTypes) -> TensorType:
    data, scale = call.tensor(0), call.tensor(1)
    if data.dtype not in (*NARROW, SUMS):
        call.fail(f"takes {', '.join((*NARROW, SUMS))}, not {data.dtype}")
    if not dtypes.is_float(scale.dtype):
        call.fail("the scale is no float")
    _check_scale(call, scale.dtype, data.dtype)
    return TensorType(data.shape, scale.dtype)


def _of_integers(relation: Relation) -> Relation:
    """Return the relation of an operator on int8 or uint8, and weights of int8."""

    def checked(call: CallTypes) -> Any:
        data, weight = call.tensor(0), call.tensor(1)
        zero = call.attrs["input_zero_point"]
        if data.dtype not in ("int8", "uint8") or weight.dtype != "int8":
            call.fail("takes int8 or uint8, and weights of int8")
        if not dtypes.min_value(data.dtype) <= zero <= dtypes.max_value(data.dtype):
            call.fail(f"input_zero_point {zero} is no {data.dtype}")
        wide = CallTypes(call.operator, call.args, _wide(call.attrs), call.call)
        return relation(wide)

    return checked


def _wide(attrs: Attributes) -> dict[str, Any]:
    return {**attrs, "out_dtype": SUMS}


# -- values ---------------------------------------------------------------------------------------


def _along(call: Result, value: Array) -> Array:
    """Return scales or zero points so that they broadcast."""
    rank = call.tensor.rank
    if value.ndim == 0:
        return value
    shape = [1] * rank
    shape[call.attrs["axis"] % rank] = len(value)
    return value.reshape(shape)


def _narrow(call: Result, x: Array, zero: Array) -> Array:
    """Round numbers, saturate, and add the zero point; NaN is 0."""
    kind, result = dtypes.from_numpy(x.dtype), call.tensor.dtype
    whole = np.asarray(call_function("round", kind)(x))
    moved = _along(call, zero.astype(np.int32))
    low, high = (bound - moved for bound in _bounds(result))
    inside = np.clip(np.where(np.isnan(whole), 0, whole).astype(np.float64), low, high)
    return (inside.astype(np.int32) + moved).astype(dtypes.to_numpy(result)).reshape(x.shape)


def _bounds(kind: str) -> tuple[int, int]:
    return int(dtypes.min_value(kind)), int(dtypes.max_value(kind))


def _evaluate_quantize(call: Result, x: Array, scale: Array, zero: Array) -> Array:
    divide = binary_function("div", dtypes.from_numpy(x.dtype), vector=True)
    return _narrow(call, np.asarray(divide(x, _along(call, scale))), zero)


def _evaluate_requantize(call: Result, x: Array, scale: Array, zero: Array) -> Array:
    return _narrow(call, converted(x, "float32") * _along(call, scale), zero)


def _evaluate_dequantize(call: Result, x: Array, scale: Array, zero: Array) -> Array:
    kind = dtypes.from_numpy(scale.dtype)
    moved = converted(x, SUMS) - _along(call, converted(zero, SUMS))
    multiply = binary_function("mul", kind, vector=True)
    made = np.asarray(multiply(converted(moved, kind), _along(call, scale)))
    return made.reshape(x.shape)


def _exact(call: Result, x: Array) -> tuple[Result, Array]:
    """Return a call in float64, which holds every sum, and its first operand without zero point."""
    kind = TensorType(call.tensor.shape, "float64")
    wide = Result({**call.attrs, "out_dtype": "float64"}, call.inputs, kind)
    return wide, x.astype(np.float64) - call.attrs["input_zero_point"]


def _wrapped(x: Array) -> Array:
    return x.astype(np.int64).astype(np.int32)


def _evaluate_conv2d(call: Result, data: Array, weight: Array) -> Array:
    wide, centred = _exact(call, data)
    return _wrapped(evaluate_convolution(wide, centred, weight))


def _evaluate_product(operator: GraphOperator) -> Callable[..., Array]:
    def evaluate(call: Result, a: Array, b: Array) -> Array:
        wide, centred = _exact(call, a)
        return _wrapped(np.asarray(operator.evaluate(wide, centred, b)))

    return evaluate


# -- definitions ----------------------------------------------------------------------------------


def _element_along(call: Result, value: te.Tensor, indices: Sequence[Any]) -> Any:
    return value[indices[call.attrs["axis"] % len(indices)]] if value.ndim else value[()]


def _defined_narrow(
    call: Result, name: str, element: Callable[[Any, Any], Any], x: te.Tensor, scale: te.Tensor,
    zero: te.Tensor,
) -> te.Tensor:  # fmt: skip
    """Define integers as `_narrow` computes them: the limits are moved, and not the numbers."""
    result = call.tensor.dtype
    low, high = _bounds(result)
    # float32 holds the limits exactly; 16-bit floats do not.
    kind = "float64" if scale.dtype == "float64" else "float32"

    def narrow(*i: Any) -> Any:
        whole = te.round(element(x[i], _element_along(call, scale, i))).astype(kind)
        moved = _element_along(call, zero, i).astype(SUMS)
        least, most = ((te.const(bound, SUMS) - moved).astype(kind) for bound in (low, high))
        inside = te.minimum(te.maximum(whole, least), most)
        return (inside.astype(SUMS) + moved).astype(result)

    return tensor(x.shape, narrow, f"T_{name}", BROADCAST)


def _define_quantize(call: Result, x: te.Tensor, scale: te.Tensor, zero: te.Tensor) -> te.Tensor:
    return _defined_narrow(call, "quantize", lambda v, s: v / s, x, scale, zero)


def _define_requantize(call: Result, x: te.Tensor, scale: te.Tensor, zero: te.Tensor) -> te.Tensor:
    scaled = lambda v, s: v.astype("float32") * s  # noqa: E731 - one expression
    return _defined_narrow(call, "requantize", scaled, x, scale, zero)


def _define_dequantize(call: Result, x: te.Tensor, scale: te.Tensor, zero: te.Tensor) -> te.Tensor:
    def element(*i: Any) -> Any:
        moved = x[i].astype(SUMS) - _element_along(call, zero, i).astype(SUMS)
        return moved.astype(scale.dtype) * _element_along(call, scale, i)

    return tensor(x.shape, element, "T_dequantize", BROADCAST)


def _centred(call: Result, x: te.Tensor) -> te.Tensor:
    zero = te.const(call.attrs["input_zero_point"], SUMS)
    return tensor(x.shape, lambda *i: x[i].astype(SUMS) - zero, "T_centred", BROADCAST)


def _define_conv2d(call: Result, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    return convolve(_centred(call, data), weight, convolution_of(call), "qnn.conv2d")


def _define_product(operator: GraphOperator) -> Callable[..., Any]:
    def define(call: Result, a: te.Tensor, b: te.Tensor) -> Any:
        assert operator.define is not None
        return operator.define(
            Result(_wide(call.attrs), call.inputs, call.type), _centred(call, a), b
        )

    return define


# -- the table ------------------------------------------------------------------------------------


def _product(name: str, inputs: tuple[str, str], attributes: Sequence[Attribute], doc: str,
             ) -> GraphOperator:  # fmt: skip
    plain = next(entry for entry in PRODUCTS if entry.name == f"nn.{name}")
    return GraphOperator(
        f"qnn.{name}", inputs, _of_integers(plain.relation), _evaluate_product(plain),
        Pattern.ANCHOR, _define_product(plain), (*attributes, ZERO_POINT), doc, kernel=name,
    )  # fmt: skip


_WINDOWS = tuple(each for each in convolution_attributes(2) if each.name != "out_dtype")

TABLE = (
    GraphOperator(
        "qnn.quantize", ("data", "scale", "zero_point"), _quantized(""), _evaluate_quantize,
        Pattern.BROADCAST, _define_quantize, (AXIS, OUT_DTYPE),
        "round(data / scale) + zero_point, saturated; halves are rounded to even.",
        axis_layouts(2),
    ),
    GraphOperator(
        "qnn.dequantize", ("data", "scale", "zero_point"), _dequantized, _evaluate_dequantize,
        Pattern.BROADCAST, _define_dequantize, (AXIS,), "(data - zero_point) * scale.",
        axis_layouts(2),
    ),
    GraphOperator(
        "qnn.requantize", ("data", "scale", "zero_point"), _quantized(SUMS), _evaluate_requantize,
        Pattern.BROADCAST, _define_requantize, (AXIS, OUT_DTYPE),
        "round(data * scale) + zero_point, saturated, of sums in int32 converted to float32.",
        axis_layouts(2),
    ),
    GraphOperator(
        "qnn.conv2d", ("data", "weight"), _of_integers(convolved(2)), _evaluate_conv2d,
        Pattern.ANCHOR, _define_conv2d, (*_WINDOWS, ZERO_POINT),
        "nn.conv2d of the data less their zero point, and weights of int8, summed in int32.",
        convolution_layouts, kernel="conv2d",
    ),
    _product("dense", ("data", "weight"), (UNITS,),
             "nn.dense of the data less their zero point, and weights of int8, summed in int32."),
    _product("matmul", ("tensor_a", "tensor_b"), (UNITS, *transposes(False, False)),
             "nn.matmul of tensor_a less its zero point, and tensor_b of int8, summed in int32."),
)  # fmt: skip
"""The operators of this module."""
