"""Operators that compute element by element."""

from __future__ import annotations

from dlcompiler.graph.frontends.tflite.node import Converter, TfliteNode
from dlcompiler.graph.ir import Expr


def _unary(name: str) -> Converter:
    return lambda node: node.call(name, node.input(0))


def _binary(name: str) -> Converter:
    return lambda node: node.activated(node.call(name, node.input(0), node.input(1)))


def _plain(name: str) -> Converter:
    """Return the converter of a binary operator without an activation."""
    return lambda node: node.call(name, node.input(0), node.input(1))


def _squared_difference(node: TfliteNode) -> Expr:
    return node.call("square", node.call("subtract", node.input(0), node.input(1)))


def _bounded(low: float, high: float) -> Converter:
    return lambda node: node.call("clip", node.input(0), a_min=low, a_max=high)


def _leaky_relu(node: TfliteNode) -> Expr:
    return node.call("nn.leaky_relu", node.input(0), alpha=float(node.option("Alpha")))


def _prelu(node: TfliteNode) -> Expr:
    x = node.input(0)
    scaled = node.call("multiply", x, node.input(1))
    return node.call("where", node.call("less", x, node.scalar(0, x)), scaled, x)


def _gelu(node: TfliteNode) -> Expr:
    return node.call("nn.gelu_tanh" if node.option("Approximate") else "nn.gelu", node.input(0))


def _select(node: TfliteNode) -> Expr:
    condition, x = node.input(0), node.input(1)
    if node.op_name == "SELECT" and node.rank(condition) == 1 and node.rank(x) > 1:
        condition = node.reshape(condition, (*node.shape(condition), *(1,) * (node.rank(x) - 1)))
    return node.call("where", condition, x, node.input(2))


def _cast(node: TfliteNode) -> Expr:
    x = node.input(0)
    return node.call("cast", x, dtype=node.out_dtype)


def _dequantize(node: TfliteNode) -> Expr:
    """Return weights of 16 bits as float32; the importer dequantizes integers."""
    x = node.input(0)
    if not node.dtype(x).startswith("float"):
        node.fail("its integers have no scale", got=node.dtype(x))
    return node.cast(x, node.out_dtype)


def _quantize(node: TfliteNode) -> Expr:
    """Return numbers as they are; the importer quantizes results."""
    return node.input(0)


_UNARY = {
    "ABS": "abs", "CEIL": "ceil", "COS": "cos", "ELU": "nn.elu", "EXP": "exp", "FLOOR": "floor",
    "HARD_SWISH": "nn.hard_swish", "LOG": "log", "LOGICAL_NOT": "logical_not",
    "LOGISTIC": "sigmoid", "NEG": "negative", "RELU": "nn.relu", "RELU6": "nn.relu6",
    "ROUND": "round", "RSQRT": "rsqrt", "SIGN": "sign", "SIN": "sin", "SQRT": "sqrt",
    "SQUARE": "square", "TANH": "tanh",
}  # fmt: skip
_PLAIN = {
    "MAXIMUM": "maximum", "MINIMUM": "minimum", "POW": "power", "FLOOR_DIV": "floor_divide",
    "FLOOR_MOD": "floor_mod", "EQUAL": "equal", "NOT_EQUAL": "not_equal", "LESS": "less",
    "LESS_EQUAL": "less_equal", "GREATER": "greater", "GREATER_EQUAL": "greater_equal",
    "LOGICAL_AND": "logical_and", "LOGICAL_OR": "logical_or", "ATAN2": "atan2",
    "BITWISE_XOR": "bitwise_xor", "RIGHT_SHIFT": "right_shift",
}  # fmt: skip

TABLE: dict[str, Converter] = {
    **{name: _unary(ours) for name, ours in _UNARY.items()},
    **{name: _plain(ours) for name, ours in _PLAIN.items()},
    "ADD": _binary("add"), "SUB": _binary("subtract"), "MUL": _binary("multiply"),
    "DIV": _binary("divide"), "SQUARED_DIFFERENCE": _squared_difference,
    "RELU_N1_TO_1": _bounded(-1.0, 1.0), "RELU_0_TO_1": _bounded(0.0, 1.0),
    "LEAKY_RELU": _leaky_relu, "PRELU": _prelu, "GELU": _gelu, "SELECT": _select,
    "SELECT_V2": _select, "CAST": _cast, "DEQUANTIZE": _dequantize, "QUANTIZE": _quantize,
}  # fmt: skip
"""The converters of this module."""
