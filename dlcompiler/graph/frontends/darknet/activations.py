"""The functions that Darknet applies to the elements of results, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dlcompiler.graph.frontends.origin import Origin
from dlcompiler.graph.ir import Expr

Activation: TypeAlias = Callable[[Origin, Expr], Expr]


def _plain(name: str, **attrs: Any) -> Activation:
    return lambda node, x: node.call(name, x, **attrs)


def _scaled(node: Origin, x: Expr, factor: float, offset: float = 0.0) -> Expr:
    if factor != 1:
        x = node.call("multiply", x, node.scalar(factor, x))
    return node.call("add", x, node.scalar(offset, x)) if offset else x


def _kinked(low: float, high: float, slope: float, offset: float, outside: float) -> Activation:
    """Return a line between two places, and flatter lines outside."""

    def convert(node: Origin, x: Expr) -> Expr:
        inner = node.call("clip", x, a_min=low, a_max=high)
        outer = _scaled(node, node.call("subtract", x, inner), outside)
        return node.call("add", _scaled(node, inner, slope, offset), outer)

    return convert


def _loggy(node: Origin, x: Expr) -> Expr:
    return _scaled(node, node.call("sigmoid", x), 2, -1)


def _ramp(node: Origin, x: Expr) -> Expr:
    return node.call("add", node.call("nn.relu", x), _scaled(node, x, 0.1))


def _selu(node: Origin, x: Expr) -> Expr:
    return _scaled(node, node.call("nn.elu", x, alpha=1.6732), 1.0507)


def _mish(node: Origin, x: Expr) -> Expr:
    return node.call("multiply", x, node.call("tanh", node.call("nn.softplus", x)))


def _hard_mish(node: Origin, x: Expr) -> Expr:
    """Return x above 0, x²/2 + x from -2 to 0, and 0 below."""
    inner = node.call("clip", x, a_min=-2.0, a_max=0.0)
    bent = node.call("multiply", inner, _scaled(node, inner, 0.5, 1))
    return node.call("add", node.call("nn.relu", x), bent)


def _stair(node: Origin, x: Expr) -> Expr:
    """Return half of an even floor; between an odd one and the next even one, a slope of 1."""
    floor, half = node.call("floor", x), node.call("floor", _scaled(node, x, 0.5))
    is_odd = node.call("subtract", floor, _scaled(node, half, 2))
    rise = node.call("multiply", is_odd, node.call("subtract", x, floor))
    return node.call("add", half, rise)


ACTIVATIONS: Mapping[str, Activation] = {
    "linear": lambda node, x: x, "logistic": _plain("sigmoid"), "loggy": _loggy,
    "relu": _plain("nn.relu"), "relu6": _plain("nn.relu6"), "elu": _plain("nn.elu", alpha=1.0),
    "selu": _selu, "gelu": _plain("nn.gelu_tanh"), "relie": _plain("nn.leaky_relu", alpha=0.01),
    "leaky": _plain("nn.leaky_relu", alpha=0.1), "ramp": _ramp, "tanh": _plain("tanh"),
    "hardtan": _plain("clip", a_min=-1.0, a_max=1.0), "lhtan": _kinked(0, 1, 1, 0, 0.001),
    "plse": _kinked(-4, 4, 0.125, 0.5, 0.01), "stair": _stair, "swish": _plain("nn.silu"),
    "mish": _mish, "hard_mish": _hard_mish,
}  # fmt: skip
"""Name -> what makes the expression. **Source:** ``activations.h`` and ``.c`` of Darknet."""
