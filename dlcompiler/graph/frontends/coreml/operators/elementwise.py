"""Operations that compute element by element."""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.coreml import functions
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.ir import Expr

_NAMES = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}


def _unary(name: str) -> OperationConverter:
    return lambda node: node.call(name, node.input())


def _binary(name: str) -> OperationConverter:
    return lambda node: node.call(name, node.input("x"), node.input("y"))


def _shifted(name: str, epsilon: float) -> OperationConverter:
    """Return the converter of a function of the element and a small number."""

    def convert(node: Operation) -> Expr:
        x = node.input()
        small = np.asarray(node.number("epsilon", epsilon), dtypes.to_numpy(node.dtype(x)))
        if small:
            x = node.call("add", x, node.scalar(float(small), x))
        return functions.inverse(node, x) if name == "inverse" else node.call(name, x)

    return convert


def _clip(node: Operation) -> Expr:
    return node.call("clip", node.input(), a_min=node.number("alpha"), a_max=node.number("beta"))


def _cast(node: Operation) -> Expr:
    name = node.text("dtype")
    dtype = _NAMES.get(name, name)
    if not dtypes.is_dtype(dtype):
        node.fail("there is no such dtype", got=repr(name)[:100])
    return node.cast(node.input(), dtype)


def _gelu(node: Operation) -> Expr:
    return functions.gelu(node, node.input(), node.text("mode", "EXACT"))


def _with_numbers(name: str) -> OperationConverter:
    """Return the converter of an activation with the numbers alpha, and perhaps beta."""

    def convert(node: Operation) -> Expr:
        numbers = [node.number(part) for part in ("alpha", "beta") if node.has(part)]
        return functions.ACTIVATIONS[name](node, node.input(), *numbers)

    return convert


def _prelu(node: Operation) -> Expr:
    return node.call("nn.prelu", node.input(), node.input("alpha"), axis=1)


def _softplus_parametric(node: Operation) -> Expr:
    x = node.input()
    shape = (-1, *(1,) * (node.rank(x) - 2))
    alpha, beta = (node.reshape(node.input(name), shape) for name in ("alpha", "beta"))
    return node.call("multiply", node.call("nn.softplus", node.call("multiply", x, beta)), alpha)


def _threshold(node: Operation) -> Expr:
    x = node.input()
    return node.call("maximum", x, node.scalar(node.number("alpha"), x))


def _select(node: Operation) -> Expr:
    return node.call("where", node.input("cond"), node.input("a"), node.input("b"))


_UNARY = {
    "abs": "abs", "acos": "acos", "asin": "asin", "atan": "atan", "atanh": "atanh",
    "ceil": "ceil", "cos": "cos", "cosh": "cosh", "erf": "erf", "exp": "exp", "exp2": "exp2",
    "floor": "floor", "identity": "copy", "logical_not": "logical_not", "relu": "nn.relu",
    "relu6": "nn.relu6", "round": "round", "sigmoid": "sigmoid", "sign": "sign",
    "silu": "nn.silu", "sin": "sin", "sinh": "sinh", "softplus": "nn.softplus", "sqrt": "sqrt",
    "square": "square", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "real_div": "divide", "pow": "power",
    "maximum": "maximum", "minimum": "minimum", "floor_div": "floor_divide", "mod": "floor_mod",
    "equal": "equal", "not_equal": "not_equal", "less": "less", "less_equal": "less_equal",
    "greater": "greater", "greater_equal": "greater_equal", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip

TABLE: dict[str, OperationConverter] = {
    **{name: _unary(ours) for name, ours in _UNARY.items()},
    **{name: _binary(ours) for name, ours in _BINARY.items()},
    **{name: _with_numbers(name) for name in functions.ACTIVATIONS},
    "inverse": _shifted("inverse", 1e-4), "log": _shifted("log", 1e-45),
    "rsqrt": _shifted("rsqrt", 1e-12), "clip": _clip, "cast": _cast, "gelu": _gelu,
    "prelu": _prelu, "softplus_parametric": _softplus_parametric, "threshold": _threshold,
    "select": _select,
}  # fmt: skip
"""The converters of this module."""
