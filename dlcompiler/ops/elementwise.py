"""Elementwise operators: on one tensor, and on two with NumPy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import compare
from dlcompiler.ops.helpers import BROADCAST, ELEMWISE, tensor
from dlcompiler.te.broadcast import broadcast_shape, element_indices


def function(name: str, element: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    """Return an operator that applies `element` to each element."""

    def apply(x: Any) -> Any:
        return elementwise(name, element, x)

    apply.__name__, apply.__doc__ = name, doc
    return apply


def elementwise(name: str, element: Callable[..., Any], *tensors: Any) -> Any:
    """Apply `element` to the elements of tensors of one shape; to numbers, apply it directly."""
    if not isinstance(tensors[0], te.Tensor):
        return element(*tensors)
    return tensor(
        tensors[0].shape,
        lambda *axes: element(*(part[axes] for part in tensors)),
        name=f"T_{name}",
        tag=ELEMWISE,
    )


exp = function("exp", te.exp, "Return e**x.")
log = function("log", te.log, "Return the natural logarithm.")
sqrt = function("sqrt", te.sqrt, "Return the square root.")
rsqrt = function("rsqrt", te.rsqrt, "Return 1 / sqrt(x).")
sin = function("sin", te.sin, "Return the sine.")
cos = function("cos", te.cos, "Return the cosine.")
tan = function("tan", te.tan, "Return the tangent.")
tanh = function("tanh", te.tanh, "Return the hyperbolic tangent.")
sigmoid = function("sigmoid", te.sigmoid, "Return 1 / (1 + exp(-x)).")
erf = function("erf", te.erf, "Return the error function.")
floor = function("floor", te.floor, "Round toward minus infinity.")
ceil = function("ceil", te.ceil, "Round toward infinity.")
trunc = function("trunc", te.trunc, "Round toward zero.")
round = function("round", te.round, "Round to the nearest integer.")
abs = function("abs", te.abs, "Return the absolute value.")
negative = function("negative", lambda x: -x, "Return the negation.")
identity = function("identity", lambda x: x, "Return the same values.")
square = function("square", lambda x: x * x, "Return the square.")


def sign(x: Any) -> Any:
    """Return -1, 0 or 1; NaN stays NaN."""

    def element(value: Any) -> Any:
        zero, one = te.const(0, value.dtype), te.const(1, value.dtype)
        if dtypes.is_unsigned(value.dtype):
            return te.minimum(value, one)
        below = te.select(value < zero, te.const(-1, value.dtype), value)
        return te.select(value > zero, one, below)

    return elementwise("sign", element, x)


def cast(x: Any, dtype: Any) -> Any:
    """Convert each element."""
    return elementwise("cast", lambda value: value.astype(dtype), x)


def clip(x: Any, a_min: float, a_max: float) -> Any:
    """Clamp each element to the range from `a_min` to `a_max`; it is `a_max` if that is less."""
    return elementwise("clip", lambda value: te.minimum(te.maximum(value, a_min), a_max), x)


def clipped(x: Any, low: float, high: float) -> Any:
    """Return an element clamped to bounds; those of integers are rounded inward."""
    first, last = (te.const(bound, x.dtype) for bound in clip_bounds(low, high, x.dtype))
    return te.minimum(te.maximum(x, first), last)


def clip_bounds(low: float, high: float, dtype: str) -> tuple[float, float]:
    """Return the bounds of a clip; those of integers are the outermost integers inside.

    Examples
    --------
    >>> clip_bounds(-0.5, 300, "uint8"), clip_bounds(-0.5, 300, "float32")
    ((0, 255), (-0.5, 300))
    """
    if dtypes.is_float(dtype):
        return low, high
    least, most = dtypes.min_value(dtype), dtypes.max_value(dtype)
    first = least if low < least else math.ceil(min(low, most))
    last = most if high > most else math.floor(max(high, least))
    return first, last


def full(shape: Any, dtype: Any, fill_value: Any) -> te.Tensor:
    """Return a tensor of one value."""
    value = te.const(fill_value, dtype) if not hasattr(fill_value, "dtype") else fill_value
    return tensor(shape, lambda *axes: value, name="T_full", tag=ELEMWISE)


def full_like(x: te.Tensor, fill_value: Any) -> te.Tensor:
    """Return a tensor of one value, with the shape and dtype of another."""
    return full(x.shape, dtypes.as_dtype(x.dtype), fill_value)


def zeros_like(x: te.Tensor) -> te.Tensor:
    """Return zeros."""
    return full_like(x, 0)


def ones_like(x: te.Tensor) -> te.Tensor:
    """Return ones."""
    return full_like(x, 1)


def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """Add tensors of one shape."""
    if not xs:
        raise ExpressionError("topi.elemwise_sum", "no tensor given")

    def total(*values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = result + value
        return result

    made: te.Tensor = elementwise("elemwise_sum", total, *xs)
    return made


def operator(name: str, element: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    """Return an operator that applies `element` to elements of its operands."""

    def apply(lhs: Any, rhs: Any) -> Any:
        for operand in (lhs, rhs):
            if isinstance(operand, te.Tensor):
                return operand.elementwise(name, (lhs, rhs), element)
        return element(lhs, rhs)

    apply.__name__, apply.__doc__ = name, doc
    return apply


add = operator("add", lambda a, b: a + b, "Add.")
subtract = operator("subtract", lambda a, b: a - b, "Subtract.")
multiply = operator("multiply", lambda a, b: a * b, "Multiply.")
divide = operator("divide", lambda a, b: a / b, "Divide.")
floor_divide = operator("floor_divide", te.floordiv, "Divide, rounding toward minus infinity.")
mod = operator("mod", te.floormod, "Return the remainder of `floor_divide`.")
maximum = operator("maximum", te.maximum, "Return the larger element.")
minimum = operator("minimum", te.minimum, "Return the smaller element.")
power = operator("power", te.power, "Raise to a power.")
greater = operator("greater", lambda a, b: compare("gt", a, b), "Tell where a > b.")
greater_equal = operator("greater_equal", lambda a, b: compare("ge", a, b), "Tell where a >= b.")
less = operator("less", lambda a, b: compare("lt", a, b), "Tell where a < b.")
less_equal = operator("less_equal", lambda a, b: compare("le", a, b), "Tell where a <= b.")
equal = operator("equal", lambda a, b: compare("eq", a, b), "Tell where a == b.")
not_equal = operator("not_equal", lambda a, b: compare("ne", a, b), "Tell where a != b.")


def broadcast_to(data: te.Tensor, shape: Any) -> te.Tensor:
    """Repeat a tensor along the dimensions where its extent is 1, to a larger shape."""
    extents = tuple(shape)
    broadcast_shape([data.shape, extents], "broadcast_to")
    return tensor(
        extents,
        lambda *axes: data[element_indices(data.shape, axes)],
        name="T_broadcast_to",
        tag=BROADCAST,
    )


def where(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Choose elements of `x` or `y` by a condition; a nonzero element is true."""

    def chosen(test: Any, a: Any, b: Any) -> Any:
        return te.select(test if test.dtype == "bool" else test != te.const(0, test.dtype), a, b)

    return condition.elementwise("where", (condition, x, y), chosen)
