"""Operators that read and write elements at computed places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr

_UPDATES = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _positive(node: Node, indices: Expr, extent: int) -> Expr:
    """Return indices that count from the front."""
    if node.dtype(indices).startswith("u"):
        return indices
    turned = node.call("add", indices, node.scalar(extent, indices))
    return node.call("where", node.call("less", indices, node.scalar(0, indices)), turned, indices)


def _gather(node: Node) -> Expr:
    x, indices = node.input(0), node.input(1)
    axis = node.axis(0, node.rank(x))
    places = _positive(node, indices, node.shape(x)[axis])
    return node.call("take", x, places, axis=axis)


def _gather_elements(node: Node) -> Expr:
    x = node.input(0)
    return node.call("gather", x, node.input(1), axis=node.axis(0, node.rank(x)))


def _gather_nd(node: Node) -> Expr:
    x, indices = node.input(0), node.input(1)
    batch, rank = int(node.attr("batch_dims", 0)), node.rank(indices)
    extents = node.shape(x)[batch : batch + node.shape(indices)[-1]]
    limits = constant_of(np.asarray(extents, np.int64))
    is_below = node.call("less", indices, node.scalar(0, indices))
    places = node.call("where", is_below, node.call("add", indices, limits), indices)
    first = node.call("transpose", places, axes=(rank - 1, *range(rank - 1)))
    return node.call("gather_nd", x, first, batch_dims=batch)


def _scatter_elements(node: Node) -> Expr:
    x = node.input(0)
    axis = node.axis(0, node.rank(x))
    return node.call("scatter_elements", x, node.input(1), node.input(2), axis=axis,
                     reduction=_update(node))  # fmt: skip


def _scatter_nd(node: Node) -> Expr:
    x, indices = node.input(0), node.input(1)
    rank = node.rank(indices)
    extents = constant_of(np.asarray(node.shape(x)[: node.shape(indices)[-1]], np.int64))
    is_below = node.call("less", indices, node.scalar(0, indices))
    places = node.call("where", is_below, node.call("add", indices, extents), indices)
    first = node.call("transpose", places, axes=(rank - 1, *range(rank - 1)))
    return node.call("scatter_nd", x, first, node.input(2), mode=_update(node))


def _update(node: Node) -> str:
    name = str(node.attr("reduction", "none"))
    if name not in _UPDATES:
        node.fail("no such reduction", got=repr(name), expected=", ".join(_UPDATES))
    return _UPDATES[name]


def _one_hot(node: Node) -> Expr:
    indices, values = node.input(0), node.input(2)
    depth = int(np.ravel(node.constant(1, "its depth"))[0])
    dtype = node.dtype(values)
    off, on = (
        node.reshape(node.call("strided_slice", values, begin=(n,), end=(n + 1,)), ())
        for n in (0, 1)
    )
    places = _positive(node, node.cast(indices, "int64"), depth)
    axis = int(node.attr("axis", -1))
    return node.call("one_hot", places, on, off, depth=depth, axis=axis, dtype=dtype)


def _top_k(node: Node) -> list[Expr]:
    x = node.input(0)
    k = node.attr("k") if node.version < 10 else node.integers(1, "the number of elements")[0]
    found = node.call(
        "topk", x, k=int(k), axis=node.axis(-1, node.rank(x)), ret_type="both",
        is_ascend=not node.attr("largest", 1), dtype="int64",
    )  # fmt: skip
    return [found[0], found[1]]


def _compress(node: Node) -> Expr:
    x, chosen = node.input(0), np.nonzero(np.ravel(node.constant(1, "its condition")))[0]
    axis = node.attr("axis")
    if axis is None:
        x = node.call("reshape", x, newshape=(-1,))
    places = constant_of(chosen.astype(np.int64))
    return node.call("take", x, places, axis=node.axis(0, node.rank(x)) if axis is not None else 0)


def _tensor_scatter(node: Node) -> Expr:
    """Write an update into a cache: each element of the result chooses one of the two."""
    cache, update = node.input(0), node.input(1)
    rank, shape = node.rank(cache), node.shape(cache)
    axis = node.axis(-2, rank)
    if axis == 0 or node.rank(update) != rank:
        node.fail("no such axis, or no such update", got=f"axis {axis}, {node.type(update)}")
    count, mode = node.shape(update)[axis], str(node.attr("mode", "linear"))
    if mode not in ("linear", "circular") or not 0 < count <= shape[axis]:
        node.fail("no such mode, or no such update", got=f"{mode!r}, {node.type(update)}")
    line = [1] * rank
    line[axis] = shape[axis]
    places: Expr = constant_of(np.arange(shape[axis]).reshape(line), "int64")
    if node.optional(2) is not None:
        first = node.reshape(node.cast(node.input(2), "int64"), (shape[0],) + (1,) * (rank - 1))
        places = node.call("subtract", places, first)
    if mode == "circular":
        places = node.call("floor_mod", places, node.scalar(shape[axis], places))
    zero, last = node.scalar(0, places), node.scalar(count - 1, places)
    is_new = node.call("logical_and", node.call("greater_equal", places, zero),
                       node.call("less_equal", places, last))  # fmt: skip
    inside = node.call("minimum", node.call("maximum", places, zero), last)
    chosen = node.call("gather", update, node.call("broadcast_to", inside, shape=shape), axis=axis)
    return node.call("where", is_new, chosen, cache)


TABLE: dict[str, Callable[[Node], Any]] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements, "Scatter": _scatter_elements, "ScatterND": _scatter_nd,
    "OneHot": _one_hot, "TopK": _top_k, "Compress": _compress,
    "TensorScatter": _tensor_scatter,
}  # fmt: skip
"""The converters of this module."""
