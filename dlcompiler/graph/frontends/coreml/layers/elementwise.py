"""Layers that compute element by element; truth values are float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlcompiler.graph.frontends.coreml import functions
from dlcompiler.graph.frontends.coreml.messages import Message
from dlcompiler.graph.frontends.coreml.node import Layer, LayerConverter
from dlcompiler.graph.frontends.coreml.weights import count_of, weights_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr


def _unary(name: str) -> LayerConverter:
    return lambda node: node.call(name, node.input())


def _binary(name: str) -> LayerConverter:
    return lambda node: node.call(name, node.input(0), node.input(1))


def _several(name: str) -> LayerConverter:
    """Return the converter of an operator on all operands, or on one and a number."""

    def convert(node: Layer) -> Expr:
        x = node.input()
        if len(node.inputs) == 1:
            return node.call(name, x, node.scalar(node.params["alpha"], x))
        for other in node.inputs[1:]:
            x = node.call(name, x, other)
        return x

    return convert


def _average(node: Layer) -> Expr:
    x = _several("add")(node)
    assert isinstance(x, Expr)
    return functions.linear(node, x, 1 / len(node.inputs), 0)


def _truth(node: Layer, x: Expr) -> Expr:
    return node.call("not_equal", x, node.scalar(0, x))


def _comparison(name: str) -> LayerConverter:
    def convert(node: Layer) -> Expr:
        x = node.input()
        is_alone = len(node.inputs) == 1
        other = node.scalar(node.params["alpha"], x) if is_alone else node.input(1)
        return node.cast(node.call(name, x, other), "float32")

    return convert


def _logical(name: str) -> LayerConverter:
    return lambda node: node.cast(
        node.call(name, *(_truth(node, each) for each in node.inputs)), "float32"
    )


def _where(node: Layer) -> Expr:
    return node.call("where", _truth(node, node.input(0)), node.input(1), node.input(2))


def _clip(node: Layer) -> Expr:
    return node.call("clip", node.input(), a_min=node.params["minVal"],
                     a_max=node.params["maxVal"])  # fmt: skip


def _gelu(node: Layer) -> Expr:
    modes = {0: "EXACT", 1: "TANH_APPROXIMATION", 2: "SIGMOID_APPROXIMATION"}
    number = node.params["mode"]
    return functions.gelu(node, node.input(), modes.get(number, f"number {number}"))


def _clamped_relu(node: Layer) -> Expr:
    return functions.ACTIVATIONS["clamped_relu"](
        node, node.input(), node.params["alpha"], node.params["beta"]
    )


def _unary_function(node: Layer) -> Expr:
    """Return a function of scale·x + shift."""
    given = node.params
    x = functions.linear(node, node.input(), given["scale"] or 1.0, given["shift"])
    alpha, small = node.scalar(given["alpha"], x), given["epsilon"] or 1e-6
    match given["type"]:
        case 0:
            return node.call("sqrt", x)
        case 1:
            return node.call("rsqrt", functions.linear(node, x, 1, small))
        case 2:
            return functions.inverse(node, functions.linear(node, x, 1, small))
        case 3:
            return node.call("power", x, alpha)
        case 4:
            return node.call("exp", x)
        case 5:
            return node.call("log", functions.linear(node, x, 1, small))
        case 6:
            return node.call("abs", x)
        case 7:
            return node.call("maximum", x, alpha)
    node.fail("there is no such function", got=f"number {given['type']}")


def _activation(node: Layer) -> Expr:
    name = node.params.chosen()
    if name is None or name not in _ACTIVATIONS:
        node.fail("it has no activation that is known")
    return _ACTIVATIONS[name](node, node.input(), node.params[name])


def _plain(name: str) -> Callable[[Layer, Expr, Message], Expr]:
    return lambda node, x, _: node.call(name, x)


def _numbers(name: str, *parts: str) -> Callable[[Layer, Expr, Message], Expr]:
    return lambda node, x, given: functions.ACTIVATIONS[name](
        node, x, *(given[part] for part in parts)
    )


def _of_channels(node: Layer, given: Message, name: str) -> Expr:
    """Return a number for each channel, which is the last dimension but two."""
    if given[name] is None:
        node.fail(f"its {name} are missing")
    count = count_of(given[name])
    weights = weights_of(given[name], (count,), f"array {name} of {node.name!r}")
    return constant_of(weights.reshape(-1, 1, 1))


def _prelu(node: Layer, x: Expr, given: Message) -> Expr:
    scaled = node.call("multiply", x, _of_channels(node, given, "alpha"))
    return node.call("where", node.call("less", x, node.scalar(0, x)), scaled, x)


def _parametric_softplus(node: Layer, x: Expr, given: Message) -> Expr:
    inner = node.call("multiply", x, _of_channels(node, given, "beta"))
    return node.call("multiply", node.call("nn.softplus", inner),
                     _of_channels(node, given, "alpha"))  # fmt: skip


_ACTIVATIONS: Mapping[str, Callable[[Layer, Expr, Message], Expr]] = {
    "linear": _numbers("linear_activation", "alpha", "beta"), "ReLU": _plain("nn.relu"),
    "leakyReLU": _numbers("leaky_relu", "alpha"), "PReLU": _prelu, "tanh": _plain("tanh"),
    "thresholdedReLU": _numbers("thresholded_relu", "alpha"), "sigmoid": _plain("sigmoid"),
    "scaledTanh": _numbers("scaled_tanh", "alpha", "beta"), "softplus": _plain("nn.softplus"),
    "sigmoidHard": _numbers("sigmoid_hard", "alpha", "beta"), "ELU": _numbers("elu", "alpha"),
    "softsign": _numbers("softsign"), "parametricSoftplus": _parametric_softplus,
}  # fmt: skip
_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "copy", "cos", "cosh", "erf",
    "exp2", "floor", "round", "sign", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
_BINARY = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide",
    "floorDiv": "floor_divide", "mod": "floor_mod", "pow": "power", "min": "minimum",
    "max": "maximum",
}  # fmt: skip
_COMPARISONS = {
    "equal": "equal", "notEqual": "not_equal", "lessThan": "less", "lessEqual": "less_equal",
    "greaterThan": "greater", "greaterEqual": "greater_equal",
}  # fmt: skip
_LOGICAL = {"logicalAnd": "logical_and", "logicalOr": "logical_or", "logicalXor": "logical_xor",
            "logicalNot": "logical_not"}  # fmt: skip

TABLE: dict[str, LayerConverter] = {
    **{name: _unary(name) for name in _UNARY},
    **{f"{name}Broadcastable": _binary(ours) for name, ours in _BINARY.items()},
    **{name: _comparison(ours) for name, ours in _COMPARISONS.items()},
    **{name: _logical(ours) for name, ours in _LOGICAL.items()},
    "activation": _activation, "add": _several("add"), "multiply": _several("multiply"),
    "max": _several("maximum"), "min": _several("minimum"), "average": _average, "clip": _clip,
    "gelu": _gelu, "clampedReLU": _clamped_relu, "unary": _unary_function,
    "whereBroadcastable": _where,
}  # fmt: skip
"""The converters of this module."""
