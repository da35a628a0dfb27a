"""Normalisations, for operations and for layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.ir import Expr

Affine: TypeAlias = "tuple[Expr | None, Expr | None]"
"""Scale and shift of what is normalised; None: 1 and 0."""


def full(node: CoremlOrigin, value: float, count: int, like: Expr) -> Expr:
    """Return a vector of one value."""
    return node.call("full", node.scalar(value, like), shape=(count,), dtype=node.dtype(like))


def instance_norm(node: CoremlOrigin, x: Expr, affine: Affine, epsilon: float) -> Expr:
    """Normalise each channel of each image by its own moments."""
    if node.rank(x) < 3:
        node.fail("its data are no images", got=str(node.type(x)))
    channels = node.shape(x)[1]
    gamma, beta = (
        full(node, value, channels, x) if each is None else each
        for value, each in zip((1, 0), affine, strict=True)
    )
    return node.call("nn.instance_norm", x, gamma, beta, axis=1, epsilon=epsilon)


def layer_norm(
    node: CoremlOrigin, x: Expr, axes: Sequence[int], affine: Affine, epsilon: float
) -> Expr:
    """Normalise over the last dimensions by their own moments."""
    shape = node.shape(x)
    axes = node.axes(axes, len(shape))
    first = len(shape) - len(axes)
    if axes != tuple(range(first, len(shape))) or not axes:
        node.fail("it normalises over other dimensions than the last", got=repr(axes))
    size = math.prod(shape[first:])
    rows = node.reshape(x, (*shape[:first], size))
    gamma, beta = (
        full(node, value, size, x) if each is None else node.reshape(each, (size,))
        for value, each in zip((1, 0), affine, strict=True)
    )
    made = node.call("nn.layer_norm", rows, gamma, beta, axis=-1, epsilon=epsilon)
    return node.reshape(made, shape)


def l2_norm(node: CoremlOrigin, x: Expr, epsilon: float) -> Expr:
    """Divide by the root of the sum of squares of the last three dimensions."""
    axes = tuple(range(max(node.rank(x) - 3, 0), node.rank(x)))
    squares = node.call("sum", node.call("square", x), axis=axes, keepdims=True)
    root = node.call("rsqrt", node.call("add", squares, node.scalar(epsilon, x)))
    return node.call("multiply", x, root)
