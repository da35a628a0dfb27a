"""Dense layers, products, softmax and reductions."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.graph.frontends.files import MOST_ELEMENTS
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.tflite.node import Converter, TfliteNode
from dlcompiler.graph.ir import Expr


def _fully_connected(node: TfliteNode) -> Expr:
    """Multiply rows by the transposed weights; the dimensions before may be joined."""
    x, weight = node.input(0), node.input(1)
    if node.option("WeightsFormat"):
        node.fail("its weights are in a shuffled format")
    units, size = node.shape(weight)
    if not node.option("KeepNumDims", False) or node.shape(x)[-1:] != (size,):
        x = node.reshape(x, (-1 if size and 0 not in node.shape(x) else 0, size))
    made: Expr = node.call("nn.dense", x, weight, units=units)
    if node.optional(2) is not None:
        made = node.call("add", made, node.input(2))
    return node.activated(made)


def _batch_matmul(node: TfliteNode) -> Expr:
    return node.call(
        "nn.matmul", node.input(0), node.input(1), transpose_a=bool(node.option("AdjX", False)),
        transpose_b=bool(node.option("AdjY", False)),
    )  # fmt: skip


def _softmax(node: TfliteNode) -> Expr:
    x, beta = node.input(0), float(node.option("Beta", 1.0))
    if beta != 1:
        x = node.call("multiply", x, node.scalar(beta, x))
    return node.call("nn.softmax", x, axis=-1)


def _log_softmax(node: TfliteNode) -> Expr:
    return node.call("nn.log_softmax", node.input(0), axis=-1)


def _l2_normalize(node: TfliteNode) -> Expr:
    x = node.input(0)
    size = node.call("sum", node.call("square", x), axis=(-1,), keepdims=True)
    root = node.call("sqrt", node.call("maximum", size, node.scalar(1e-12, x)))
    return node.activated(node.call("divide", x, root))


def _axes(node: TfliteNode, rank: int) -> tuple[int, ...]:
    found = node.integers(1, "the axes")
    if any(not -rank <= axis < rank for axis in found):
        node.fail("there is no such axis", got=f"axes {found} of {rank} dimensions")
    return tuple(sorted({axis % rank for axis in found}))


def _reduction(name: str) -> Converter:
    def convert(node: TfliteNode) -> Expr:
        x = node.input(0)
        axes = _axes(node, node.rank(x))
        if not axes:
            return node.call("copy", x)
        return node.call(name, x, axis=axes, keepdims=bool(node.option("KeepDims", False)))

    return convert


def _position(name: str) -> Converter:
    def convert(node: TfliteNode) -> Expr:
        x = node.input(0)
        axes = _axes(node, node.rank(x))
        return node.cast(node.call(name, x, axis=axes, keepdims=False), node.out_dtype)

    return convert


def _top_k(node: TfliteNode) -> list[Expr]:
    k = node.integers(1, "the number of elements")[0]
    found = node.call("topk", node.input(0), k=k, axis=-1, ret_type="both", is_ascend=False,
                      dtype="int32")  # fmt: skip
    return [found[0], found[1]]


def _cumsum(node: TfliteNode) -> Expr:
    x = node.input(0)
    axis = node.integers(1, "the axis")[0] % max(node.rank(x), 1)
    is_turned = bool(node.option("Reverse", False))
    if is_turned:
        x = node.call("reverse", x, axis=axis)
    x = node.call("cumsum", x, axis=axis, exclusive=bool(node.option("Exclusive", False)))
    return node.call("reverse", x, axis=axis) if is_turned else x


def _one_hot(node: TfliteNode) -> Expr:
    depth = node.integers(1, "the depth")[0]
    on, off = (node.reshape(node.input(n), ()) for n in (2, 3))
    return node.call("one_hot", node.input(0), on, off, depth=depth,
                     axis=int(node.option("Axis", -1)), dtype=node.out_dtype)  # fmt: skip


def _range(node: TfliteNode) -> Expr:
    start, stop, step = (np.ravel(node.constant(n, "its bounds"))[0] for n in range(3))
    if not step:
        node.fail("its step is 0")
    count = max(math.ceil((float(stop) - float(start)) / float(step)), 0)
    if count > MOST_ELEMENTS:
        node.fail("its result is too large", got=str(count))
    return constant_of(np.asarray(start + np.arange(count) * step), node.out_dtype)


TABLE: dict[str, Converter] = {
    "FULLY_CONNECTED": _fully_connected, "BATCH_MATMUL": _batch_matmul, "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _log_softmax, "L2_NORMALIZATION": _l2_normalize, "MEAN": _reduction("mean"),
    "SUM": _reduction("sum"), "REDUCE_MAX": _reduction("max"), "REDUCE_MIN": _reduction("min"),
    "REDUCE_PROD": _reduction("prod"), "REDUCE_ANY": _reduction("any"),
    "REDUCE_ALL": _reduction("all"), "ARG_MAX": _position("argmax"),
    "ARG_MIN": _position("argmin"), "TOPK_V2": _top_k, "CUMSUM": _cumsum, "ONE_HOT": _one_hot,
    "RANGE": _range,
}  # fmt: skip
"""The converters of this module."""
