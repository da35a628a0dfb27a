"""Functions of elements that operations and layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.ir import Expr


def linear(node: CoremlOrigin, x: Expr, alpha: float, beta: float) -> Expr:
    """Return alpha·x + beta; what changes nothing is left out."""
    if alpha != 1:
        x = node.call("multiply", x, node.scalar(alpha, x))
    return node.call("add", x, node.scalar(beta, x)) if beta else x


def inverse(node: CoremlOrigin, x: Expr) -> Expr:
    """Return 1/x."""
    return node.call("divide", node.scalar(1, x), x)


def gelu(node: CoremlOrigin, x: Expr, mode: str) -> Expr:
    """Return the activation gelu, exact or by one of its approximations."""
    match mode:
        case "EXACT":
            return node.call("nn.gelu", x)
        case "TANH_APPROXIMATION":
            return node.call("nn.gelu_tanh", x)
        case "SIGMOID_APPROXIMATION":
            return node.call("multiply", x, node.call("sigmoid", linear(node, x, 1.702, 0)))
    node.fail("no such mode", got=repr(mode)[:100])


def _leaky_relu(node: CoremlOrigin, x: Expr, alpha: float) -> Expr:
    return node.call("nn.leaky_relu", x, alpha=alpha)


def _elu(node: CoremlOrigin, x: Expr, alpha: float) -> Expr:
    return node.call("nn.elu", x, alpha=alpha)


def _clamped_relu(node: CoremlOrigin, x: Expr, alpha: float, beta: float) -> Expr:
    made = node.call("nn.leaky_relu", x, alpha=alpha)
    return node.call("minimum", made, node.scalar(beta, x))


def _thresholded_relu(node: CoremlOrigin, x: Expr, alpha: float) -> Expr:
    is_kept = node.call("greater_equal", x, node.scalar(alpha, x))
    return node.call("where", is_kept, x, node.scalar(0, x))


def _scaled_tanh(node: CoremlOrigin, x: Expr, alpha: float, beta: float) -> Expr:
    return linear(node, node.call("tanh", linear(node, x, beta, 0)), alpha, 0)


def _sigmoid_hard(node: CoremlOrigin, x: Expr, alpha: float, beta: float) -> Expr:
    return node.call("nn.hard_sigmoid", x, alpha=alpha, beta=beta)


def softsign(node: CoremlOrigin, x: Expr) -> Expr:
    """Return x / (1 + |x|)."""
    return node.call("divide", x, linear(node, node.call("abs", x), 1, 1))


ACTIVATIONS: Mapping[str, Callable[..., Expr]] = {
    "clamped_relu": _clamped_relu, "elu": _elu, "leaky_relu": _leaky_relu,
    "linear_activation": linear, "scaled_tanh": _scaled_tanh, "sigmoid_hard": _sigmoid_hard,
    "softsign": softsign, "thresholded_relu": _thresholded_relu,
}  # fmt: skip
"""Activations of an element and of the numbers alpha and beta, if they have them."""
