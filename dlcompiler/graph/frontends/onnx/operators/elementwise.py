"""Operators that compute element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.onnx.node import Converter, Node
from dlcompiler.graph.frontends.onnx.reading import dtype_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr


def _unary(name: str) -> Converter:
    return lambda node: node.call(name, node.input(0))


def _binary(name: str) -> Converter:
    def convert(node: Node) -> Expr:
        a, b = node.input(0), node.input(1)
        if node.version < 7 and node.attr("broadcast", 0):
            b = _legacy(node, a, b)
        return node.call(name, a, b)

    return convert


def _legacy(node: Node, a: Expr, b: Expr) -> Expr:
    """Return the second operand of an old operator, which names the axis where it begins."""
    rank, own = node.rank(a), node.rank(b)
    axis = int(node.attr("axis", rank - own)) % max(rank, 1)
    trailing = rank - own - axis
    return node.reshape(b, (*node.shape(b), *(1,) * trailing)) if trailing > 0 else b


def _folded(name: str) -> Converter:
    """Return the converter of an operator with any number of operands."""

    def convert(node: Node) -> Expr:
        values = [node.input(i) for i in range(max(len(node.inputs), 1))]
        made: Expr = reduce(lambda a, b: node.call(name, a, b), values)
        return made

    return convert


def _mean(node: Node) -> Expr:
    total = _folded("add")(node)
    assert not isinstance(total, list | tuple)
    return node.call("divide", total, node.scalar(len(node.inputs), node.input(0)))  # type: ignore[arg-type]  # one value


def _pow(node: Node) -> Expr:
    a, b = node.input(0), node.input(1)
    dtype = node.dtype(a)
    if node.dtype(b) != dtype or not dtypes.is_float(dtype):
        wide = dtype if dtypes.is_float(dtype) else "float64"
        a, b = node.cast(a, wide), node.cast(b, wide)
    return node.cast(node.call("power", a, b), dtype)


def _mod(node: Node) -> Expr:
    name = "mod" if node.attr("fmod", 0) else "floor_mod"
    return node.call(name, node.input(0), node.input(1))


def _reciprocal(node: Node) -> Expr:
    x = node.input(0)
    return node.call("divide", node.scalar(1, x), x)


def _not(name: str) -> Converter:
    return lambda node: node.call("logical_not", node.call(name, node.input(0), node.input(1)))


def _clip(node: Node) -> Expr:
    x = node.input(0)
    low, high = node.optional(1), node.optional(2)
    if node.version < 11:
        low, high = (
            node.scalar(node.attr(name), x) if node.attr(name) is not None else None
            for name in ("min", "max")
        )
    if low is not None:
        x = node.call("maximum", x, low)
    if high is not None:
        x = node.call("minimum", x, high)
    return node.call("copy", x) if low is None and high is None else x


def _cast(node: Node) -> Expr:
    x, dtype = node.input(0), dtype_of(int(node.attr("to", 0)))
    return node.call("cast", x, dtype=dtype)


def _cast_like(node: Node) -> Expr:
    return node.call("cast", node.input(0), dtype=node.dtype(node.input(1)))


def _bit_cast(node: Node) -> Expr:
    x, dtype = node.input(0), dtype_of(int(node.attr("to", 0)))
    return node.call("reinterpret", x, dtype=dtype)


def _shift(node: Node) -> Expr:
    name = {"LEFT": "left_shift", "RIGHT": "right_shift"}.get(str(node.attr("direction")))
    if name is None:
        node.fail("no such direction", got=repr(node.attr("direction")), expected="LEFT, RIGHT")
    return node.call(name, node.input(0), node.input(1))


def _is_infinite(node: Node) -> Expr:
    x = node.input(0)
    both: Expr = node.call("isinf", x)
    zero = node.scalar(0, x)
    if not node.attr("detect_negative", 1):
        both = node.call("logical_and", both, node.call("greater", x, zero))
    if not node.attr("detect_positive", 1):
        both = node.call("logical_and", both, node.call("less", x, zero))
    return both


def _leaky_relu(node: Node) -> Expr:
    return node.call("nn.leaky_relu", node.input(0), alpha=node.attr("alpha", 0.01))


def _elu(node: Node) -> Expr:
    return node.call("nn.elu", node.input(0), alpha=node.attr("alpha", 1.0))


def _hard_sigmoid(node: Node) -> Expr:
    return node.call(
        "nn.hard_sigmoid", node.input(0), alpha=node.attr("alpha", 0.2), beta=node.attr("beta", 0.5)
    )


def _selu(node: Node) -> Expr:
    x = node.input(0)
    alpha = node.attr("alpha", 1.67326319217681884765625)
    gamma = node.attr("gamma", 1.05070102214813232421875)
    return node.call("multiply", node.call("nn.elu", x, alpha=alpha), node.scalar(gamma, x))


def _prelu(node: Node) -> Expr:
    x, slope = node.input(0), node.input(1)
    if node.version < 7 and node.rank(slope) == 1:  # of the channels
        slope = node.reshape(slope, (*node.shape(slope), *(1,) * (node.rank(x) - 2)))
    scaled = node.call("multiply", x, slope)
    return node.call("where", node.call("less", x, node.scalar(0, x)), scaled, x)


def _gelu(node: Node) -> Expr:
    name = {"none": "nn.gelu", "tanh": "nn.gelu_tanh"}.get(str(node.attr("approximate", "none")))
    if name is None:
        node.fail("no such approximation", got=repr(node.attr("approximate")))
    return node.call(name, node.input(0))


def _swish(node: Node) -> Expr:
    x, alpha = node.input(0), node.attr("alpha", 1.0)
    if alpha == 1:
        return node.call("nn.silu", x)
    inner = node.call("sigmoid", node.call("multiply", x, node.scalar(alpha, x)))
    return node.call("multiply", x, inner)


def _mish(node: Node) -> Expr:
    x = node.input(0)
    return node.call("multiply", x, node.call("tanh", node.call("nn.softplus", x)))


def _softsign(node: Node) -> Expr:
    x = node.input(0)
    below = node.call("add", node.call("abs", x), node.scalar(1, x))
    return node.call("divide", x, below)


def _thresholded_relu(node: Node) -> Expr:
    x = node.input(0)
    is_above = node.call("greater", x, node.scalar(node.attr("alpha", 1.0), x))
    return node.call("where", is_above, x, node.scalar(0, x))


def _dropout(node: Node) -> list[Expr | None]:
    """Return the data, and a mask that keeps all: a model that is imported does not learn."""
    x = node.input(0)
    training = node.optional(2)
    if training is not None and bool(np.any(node.constant(2, "whether it is training"))):
        ratio = node.optional(1)
        if ratio is None or float(np.ravel(node.constant(1, "its ratio"))[0]) != 0:
            node.fail("it drops elements at random, as in training")
    mask = node.call("broadcast_to", constant_of(np.asarray(True)), shape=node.shape(x))
    return [node.call("copy", x), node.cast(mask, "bool" if node.version >= 10 else node.dtype(x))]


def _where(node: Node) -> Expr:
    return node.call("where", node.input(0), node.input(1), node.input(2))


_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "IsNaN": "isnan", "Log": "log",
    "Neg": "negative", "Not": "logical_not", "Relu": "nn.relu", "Round": "round",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt",
    "Tan": "tan", "Tanh": "tanh", "BitwiseNot": "bitwise_not", "Softplus": "nn.softplus",
    "HardSwish": "nn.hard_swish",
}  # fmt: skip
_BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "And": "logical_and",
    "Or": "logical_or", "Xor": "logical_xor", "Equal": "equal", "Less": "less",
    "Greater": "greater", "LessOrEqual": "less_equal", "GreaterOrEqual": "greater_equal",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip

TABLE: dict[str, Callable[[Node], Any]] = {
    **{name: _unary(ours) for name, ours in _UNARY.items()},
    **{name: _binary(ours) for name, ours in _BINARY.items()},
    **{name: _folded(ours) for name, ours in (("Sum", "add"), ("Max", "maximum"),
                                              ("Min", "minimum"))},
    "Mean": _mean, "Pow": _pow, "Mod": _mod, "Reciprocal": _reciprocal, "Clip": _clip,
    "Cast": _cast, "CastLike": _cast_like, "BitCast": _bit_cast, "BitShift": _shift,
    "IsInf": _is_infinite,
    "LeakyRelu": _leaky_relu, "Elu": _elu, "HardSigmoid": _hard_sigmoid, "Selu": _selu,
    "PRelu": _prelu, "Gelu": _gelu, "Swish": _swish, "Mish": _mish, "Softsign": _softsign,
    "ThresholdedRelu": _thresholded_relu, "Dropout": _dropout, "Where": _where,
}  # fmt: skip
"""The converters of this module."""
