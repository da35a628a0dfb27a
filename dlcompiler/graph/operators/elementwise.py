"""Operators that compute each element of their output from one element of each input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import Attribute, bound, dtype, real
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    Pattern,
    Relation,
    Result,
    as_array,
)
from dlcompiler.graph.operators.layouts import broadcast_layouts, same_layouts
from dlcompiler.graph.operators.relations import broadcast, same_dtype
from dlcompiler.graph.operators.values import literal
from dlcompiler.ir.expr import Not, compare
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.numeric import binary_function, cast_function, compare_function
from dlcompiler.ir.operations import BinaryOp, CompareOp
from dlcompiler.ops import elementwise
from dlcompiler.ops.activations import ACTIVATIONS, Activation
from dlcompiler.ops.elementwise import clip_bounds
from dlcompiler.ops.functions import floor_rest

Family: TypeAlias = Literal["float", "number", "integer", "bool", "any"]


def _takes(family: Family, kind: str) -> bool:
    match family:
        case "float":
            return dtypes.is_float(kind)
        case "integer":
            return dtypes.is_int(kind)
        case "number":
            return not dtypes.is_bool(kind)
        case "bool":
            return dtypes.is_bool(kind)
    return True


def _of(family: Family, result: str = "") -> Relation:
    """Return the relation of an operator on one tensor of a family of dtypes."""

    def relation(call: CallTypes) -> TensorType:
        kind = call.tensor(0)
        if not _takes(family, kind.dtype):
            call.fail(f"takes {family}s, not {kind.dtype}", hint="cast the input: cast(x, dtype=…)")
        return TensorType(kind.shape, result or kind.dtype)

    return relation


def _of_two(family: Family, result: str = "") -> Relation:
    """Return the relation of an operator on two tensors whose shapes are broadcast."""

    def relation(call: CallTypes) -> TensorType:
        kinds = call.tensor(0), call.tensor(1)
        kind = same_dtype(call, kinds)
        if not _takes(family, kind):
            call.fail(f"takes {family}s, not {kind}", hint="cast the inputs: cast(x, dtype=…)")
        return TensorType(broadcast(call, [k.shape for k in kinds]), result or kind)

    return relation


# -- one operand ----------------------------------------------------------------------------------


def _unary(
    name: str, family: Family, reference: Callable[..., Any], element: Callable[..., Any],
    doc: str, attributes: Sequence[Attribute] = (), result: str = "",
) -> GraphOperator:  # fmt: skip
    """Return an operator from its meaning on arrays and on expressions.

    Both functions get a number or an array, then the attributes in their order.
    """
    names = [attribute.name for attribute in attributes]

    def evaluate(call: Result, x: Array) -> Array:
        return as_array(reference(x, *(call.attrs[n] for n in names)), call.tensor)

    def define(call: Result, x: te.Tensor) -> te.Tensor:
        values = [call.attrs[n] for n in names]
        made: te.Tensor = elementwise.elementwise(
            name.rpartition(".")[2], lambda v: element(v, *values), x
        )
        return made

    return GraphOperator(
        name, ("data",), _of(family, result), evaluate, Pattern.ELEMENTWISE, define,
        tuple(attributes), doc, same_layouts(),
    )  # fmt: skip


def _function(name: str, function: str = "", doc: str = "") -> GraphOperator:
    """Return an operator that applies a function of the language to floats."""
    of = function or name
    signature = FUNCTIONS[of]
    return _unary(
        name, "number" if signature.domain == "number" else "float",
        lambda x: call_function(of, dtypes.from_numpy(x.dtype))(x), getattr(te, of),
        doc or f"Apply `{of}` to each element.",
        result="" if signature.result == "same" else signature.result,
    )  # fmt: skip


def _rounding(name: str) -> GraphOperator:
    """Return an operator that rounds floats to whole numbers, and keeps integers."""

    def reference(x: Array) -> Any:
        kind = dtypes.from_numpy(x.dtype)
        return call_function(name, kind)(x) if dtypes.is_float(kind) else x

    return _unary(name, "number", reference, getattr(te, name), f"Apply `{name}` to each element.")


def _in_float64(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes in float64, from one on float64."""
    return lambda x, *attrs: reference(np.asarray(x, np.float64), *attrs)


def _activation(name: str, activation: Activation) -> GraphOperator:
    family: Family = "number" if name in ("relu", "relu6") else "float"
    reference = activation.reference if family == "number" else _in_float64(activation.reference)
    return _unary(f"nn.{name}", family, reference, activation.element, f"The activation {name}.")


def _const(value: float, x: Any) -> Any:
    return literal(value, x.dtype)


def _clip(x: Any, low: float, high: float) -> Any:
    low, high = clip_bounds(low, high, x.dtype)
    return te.minimum(te.maximum(x, _const(low, x)), _const(high, x))


def _clip_arrays(x: Array, low: float, high: float) -> Any:
    low, high = (x.dtype.type(n) for n in clip_bounds(low, high, dtypes.from_numpy(x.dtype)))
    return np.minimum(np.maximum(x, low), high)


def _leaky_relu(x: Any, alpha: float) -> Any:
    return te.select(x > _const(0, x), x, x * _const(alpha, x))


def _elu(x: Any, alpha: float) -> Any:
    below = _const(alpha, x) * (te.exp(te.minimum(x, _const(0, x))) - _const(1, x))
    return te.select(x > _const(0, x), x, below)


def _softplus(x: Any) -> Any:
    positive = te.maximum(x, _const(0, x))
    return positive + te.log1p(te.exp(-te.abs(x)))


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return _clip(x * _const(alpha, x) + _const(beta, x), 0, 1)


def _hard_swish(x: Any) -> Any:
    return x * _clip(x + _const(3, x), 0, 6) / _const(6, x)


def _sign(x: Any) -> Any:
    return elementwise.sign(x)


def _cast(x: Any, to: str) -> Any:
    return x.astype(to)


def _cast_arrays(x: Array, to: str) -> Any:
    return cast_function(dtypes.from_numpy(x.dtype), to, vector=True)(x)


ALPHA_OF_ELU = Attribute("alpha", real, 1.0, "factor of negative results [1]")
ALPHA = Attribute("alpha", real, 0.01, "factor of negative numbers [1]")

_UNARY = (
    *map(_function, (
        "exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
        "sigmoid", "abs", "isnan", "isinf", "isfinite",
    )),
    *map(_rounding, ("floor", "ceil", "round", "trunc")),
    _unary("negative", "number", np.negative, lambda x: -x, "Negate each element."),
    _unary("sign", "number", np.sign, _sign, "-1, 0 or 1 for each element; NaN stays NaN."),
    _unary("square", "number", np.square, lambda x: x * x, "The square of each element."),
    _unary("logical_not", "bool", np.logical_not, Not, "True where an element is not."),
    _unary("bitwise_not", "integer", np.invert, te.bitwise_not, "All bits of each element."),
    _unary("copy", "any", np.array, lambda x: x, "The same elements, as another tensor."),
    _unary(
        "clip", "number", _clip_arrays, _clip,
        "Each element, or the bound that it is beyond; the upper one if it is below the lower.",
        (Attribute("a_min", bound, doc="lower bound"),
         Attribute("a_max", bound, doc="upper bound")),
    ),
    *(_activation(name, ACTIVATIONS[name])
      for name in ("relu", "relu6", "gelu", "gelu_tanh", "silu")),
    _unary("nn.leaky_relu", "float", lambda x, alpha: np.where(x > 0, x, x * alpha), _leaky_relu,
           "x, or alpha·x where x is negative.", (ALPHA,)),
    _unary("nn.elu", "float",
           _in_float64(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))),
           _elu, "x, or alpha·(e**x - 1) where x is negative.", (ALPHA_OF_ELU,)),
    _unary("nn.softplus", "float", _in_float64(lambda x: np.logaddexp(x, 0)), _softplus,
           "log(1 + e**x) of each element."),
    _unary("nn.hard_sigmoid", "float",
           lambda x, alpha, beta: np.clip(x * alpha + beta, 0, 1), _hard_sigmoid,
           "alpha·x + beta, between 0 and 1.",
           (Attribute("alpha", real, 1 / 6, "slope"), Attribute("beta", real, 0.5, "value at 0"))),
    _unary("nn.hard_swish", "float", lambda x: x * np.clip(x + 3, 0, 6) / 6, _hard_swish,
           "x · min(max(x + 3, 0), 6) / 6 of each element."),
)  # fmt: skip


def _cast_relation(call: CallTypes) -> TensorType:
    return TensorType(call.tensor(0).shape, call.attrs["dtype"])


def _cast_operator() -> GraphOperator:
    """Return the operator that converts to another dtype."""

    def evaluate(call: Result, x: Array) -> Array:
        return as_array(_cast_arrays(x, call.attrs["dtype"]), call.tensor)

    def define(call: Result, x: te.Tensor) -> te.Tensor:
        made: te.Tensor = elementwise.cast(x, call.attrs["dtype"])
        return made

    return GraphOperator(
        "cast", ("data",), _cast_relation, evaluate, Pattern.ELEMENTWISE, define,
        (Attribute("dtype", dtype, doc="dtype of the result"),), "Convert each element to a dtype.",
        same_layouts(),
    )  # fmt: skip


def _reinterpret_relation(call: CallTypes) -> TensorType:
    kind, to = call.tensor(0), call.attrs["dtype"]
    if dtypes.bytes_of(kind.dtype) != dtypes.bytes_of(to):
        call.fail(f"{kind.dtype} and {to} have several sizes")
    if to != kind.dtype and to in ("bool", "bfloat16"):
        call.fail(f"the bits of {kind.dtype} are not made a {to}")
    return TensorType(kind.shape, to)


def _reinterpreted(x: Any, to: str) -> Any:
    """Return the bits of an expression as another dtype, by way of integers."""
    if x.dtype == to:
        return x
    bits = te.to_bits(x) if dtypes.is_float(x.dtype) else x.astype(f"uint{8 * dtypes.bytes_of(to)}")
    return te.from_bits(bits) if dtypes.is_float(to) else bits.astype(to)


def _reinterpret_operator() -> GraphOperator:
    """Return the operator that reads bits as another dtype."""

    def evaluate(call: Result, x: Array) -> Array:
        made = np.ascontiguousarray(x).view(dtypes.to_numpy(call.attrs["dtype"]))
        return as_array(made, call.tensor)

    def define(call: Result, x: te.Tensor) -> te.Tensor:
        made: te.Tensor = elementwise.elementwise(
            "reinterpret", lambda v: _reinterpreted(v, call.attrs["dtype"]), x
        )
        return made

    return GraphOperator(
        "reinterpret", ("data",), _reinterpret_relation, evaluate, Pattern.ELEMENTWISE, define,
        (Attribute("dtype", dtype, doc="dtype of the result, of the same size"),),
        "The bits of each element, read as another dtype.", same_layouts(),
    )  # fmt: skip


# -- two operands ---------------------------------------------------------------------------------


def _binary(
    name: str, family: Family, reference: Callable[[Array, Array], Any],
    element: Callable[[Any, Any], Any], doc: str, result: str = "",
) -> GraphOperator:  # fmt: skip
    """Return an operator on two tensors whose shapes are broadcast."""
    combine = elementwise.operator(name, element, doc)

    def evaluate(call: Result, a: Array, b: Array) -> Array:
        return as_array(reference(a, b), call.tensor)

    def define(call: Result, a: te.Tensor, b: te.Tensor) -> te.Tensor:
        made: te.Tensor = combine(a, b)
        return made

    return GraphOperator(
        name, ("lhs", "rhs"), _of_two(family, result), evaluate, Pattern.BROADCAST, define, doc=doc,
        layouts=broadcast_layouts(2),
    )  # fmt: skip


def _arithmetic(name: str, op: BinaryOp, element: Callable[[Any, Any], Any], doc: str,
                family: Family = "number") -> GraphOperator:  # fmt: skip
    """Return an operator that is an operation of the language."""

    def reference(a: Array, b: Array) -> Any:
        return binary_function(op, dtypes.from_numpy(a.dtype), vector=True)(a, b)

    return _binary(name, family, reference, element, doc)


def _comparison(name: str, op: CompareOp, doc: str) -> GraphOperator:
    return _binary(name, "any", compare_function(op), partial(compare, op), doc, "bool")


def _by_kind(floats: Callable[..., Any], integers: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of expressions that differs for floats and integers."""
    return lambda a, b: (floats if dtypes.is_float(a.dtype) else integers)(a, b)


def _divided(a: Array, b: Array) -> Any:
    kind = dtypes.from_numpy(a.dtype)
    op: BinaryOp = "div" if dtypes.is_float(kind) else "truncdiv"
    return binary_function(op, kind, vector=True)(a, b)


def _floor_divided(a: Array, b: Array) -> Any:
    kind = dtypes.from_numpy(a.dtype)
    if not dtypes.is_float(kind):
        return binary_function("floordiv", kind, vector=True)(a, b)
    return call_function("floor", kind)(binary_function("div", kind, vector=True)(a, b))


def _truncated_rest(a: Array, b: Array) -> Any:
    kind = dtypes.from_numpy(a.dtype)
    if dtypes.is_float(kind):
        return call_function("fmod", kind)(a, b)
    return binary_function("truncmod", kind, vector=True)(a, b)


def _floored_rest(a: Array, b: Array) -> Any:
    kind = dtypes.from_numpy(a.dtype)
    if not dtypes.is_float(kind):
        return binary_function("floormod", kind, vector=True)(a, b)
    rest = call_function("fmod", kind)(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


_BINARY = (
    _arithmetic("add", "add", lambda a, b: a + b, "Add."),
    _arithmetic("subtract", "sub", lambda a, b: a - b, "Subtract."),
    _arithmetic("multiply", "mul", lambda a, b: a * b, "Multiply."),
    _binary("divide", "number", _divided, _by_kind(lambda a, b: a / b, te.truncdiv),
            "Divide; integers are rounded toward zero."),
    _binary("floor_divide", "number", _floor_divided,
            _by_kind(lambda a, b: te.floor(a / b), te.floordiv),
            "Divide, and round toward minus infinity."),
    _binary("mod", "number", _truncated_rest, _by_kind(te.fmod, te.truncmod),
            "The remainder of the division; it has the sign of the dividend."),
    _binary("floor_mod", "number", _floored_rest, _by_kind(floor_rest, te.floormod),
            "The remainder of `floor_divide`; it has the sign of the divisor."),
    _binary("power", "float",
            lambda a, b: call_function("pow", dtypes.from_numpy(a.dtype))(a, b), te.power,
            "Raise to a power."),
    _binary("atan2", "float",
            lambda a, b: call_function("atan2", dtypes.from_numpy(a.dtype))(a, b), te.atan2,
            "The angle of the point (b, a), from -π to π."),
    _arithmetic("maximum", "max", te.maximum, "The larger element; NaN if one is NaN."),
    _arithmetic("minimum", "min", te.minimum, "The smaller element; NaN if one is NaN."),
    _comparison("equal", "eq", "Tell where a == b."),
    _comparison("not_equal", "ne", "Tell where a != b."),
    _comparison("less", "lt", "Tell where a < b."),
    _comparison("less_equal", "le", "Tell where a <= b."),
    _comparison("greater", "gt", "Tell where a > b."),
    _comparison("greater_equal", "ge", "Tell where a >= b."),
    _binary("logical_and", "bool", np.logical_and, te.all, "Tell where both are true."),
    _binary("logical_or", "bool", np.logical_or, te.any, "Tell where one or both are true."),
    _binary("logical_xor", "bool", np.logical_xor, partial(compare, "ne"),
            "Tell where one, and not both, is true."),
    _arithmetic("bitwise_and", "bitand", lambda a, b: a & b, "Combine bits by and.", "integer"),
    _arithmetic("bitwise_or", "bitor", lambda a, b: a | b, "Combine bits by or.", "integer"),
    _arithmetic("bitwise_xor", "bitxor", lambda a, b: a ^ b, "Combine bits by exclusive or.",
                "integer"),
    _arithmetic("left_shift", "shl", lambda a, b: a << b, "Shift bits left.", "integer"),
    _arithmetic("right_shift", "shr", lambda a, b: a >> b, "Shift bits right.", "integer"),
)  # fmt: skip


# -- three operands -------------------------------------------------------------------------------


def _where_relation(call: CallTypes) -> TensorType:
    condition, x, y = (call.tensor(i) for i in range(3))
    if not dtypes.is_bool(condition.dtype):
        call.fail(f"the condition has dtype {condition.dtype}", expected="bool")
    dtype = same_dtype(call, (x, y))
    return TensorType(broadcast(call, [condition.shape, x.shape, y.shape]), dtype)


def _where() -> GraphOperator:
    """Return the operator that chooses elements by a condition."""

    def evaluate(call: Result, condition: Array, x: Array, y: Array) -> Array:
        return as_array(np.where(condition, x, y), call.tensor)

    def define(call: Result, condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
        return elementwise.where(condition, x, y)

    return GraphOperator(
        "where", ("condition", "x", "y"), _where_relation, evaluate, Pattern.BROADCAST, define,
        doc="The elements of x where the condition is true, else those of y.",
        layouts=broadcast_layouts(3),
    )  # fmt: skip


TABLE = (*_UNARY, _cast_operator(), _reinterpret_operator(), *_BINARY, _where())
"""The operators of this module."""
