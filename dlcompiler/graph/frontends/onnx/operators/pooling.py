"""Pooling, the positions of the largest elements, and what puts these back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators.windows import (
    MOST_PLACES,
    joined,
    listed,
    pads_of,
)
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.windows import LAYOUTS, spatial_rank
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array


def _pool(kind: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> Any:
        x = node.input(0)
        rank = spatial_rank(node, x)
        kernel = listed(node, "kernel_shape", rank)
        strides, dilation = listed(node, "strides", rank), listed(node, "dilations", rank)
        sizes = node.shape(x)[2:] if str(node.attr("auto_pad", "NOTSET")) != "NOTSET" else ()
        attrs: dict[str, Any] = {
            "pool_size": kernel, "strides": strides, "dilation": dilation,
            "padding": pads_of(node, sizes, kernel, strides, dilation),
            "layout": LAYOUTS[rank], "ceil_mode": bool(node.attr("ceil_mode", 0)),
        }  # fmt: skip
        if kind == "avg":
            attrs["count_include_pad"] = bool(node.attr("count_include_pad", 0))
        if kind == "lp":
            attrs["p"] = float(node.attr("p", 2))
        made = node.call(f"nn.{kind}_pool{rank}d", x, **attrs)
        if kind != "max" or len(node.outputs) < 2 or not node.outputs[1]:
            return made
        out, is_row_major = node.shape(made)[2:], not node.attr("storage_order", 0)
        return [made, _positions(node, x, attrs, out, is_row_major)]

    return convert


def _global(kind: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> Expr:
        x = node.input(0)
        rank = spatial_rank(node, x)
        return node.call(f"nn.global_{kind}_pool{rank}d", x, layout=LAYOUTS[rank])

    return convert


def _global_lp(node: Node) -> Expr:
    x = node.input(0)
    axes = tuple(range(2, node.rank(x)))
    return node.call("norm", x, ord=float(node.attr("p", 2)), axis=axes, keepdims=True)


def _positions(
    node: Node, x: Expr, windows: dict[str, Any], out: Sequence[int], is_row_major: bool
) -> Expr:
    """Return where the largest elements of windows are, in the tensor with all its dimensions.

    Parameters
    ----------
    node : Node
        The pooling.
    x : Expr
        Images, with the spatial dimensions last.
    windows : dict
        ``pool_size``, ``strides``, ``dilation`` and ``padding``.
    out : sequence of int
        Number of windows along each spatial dimension.
    is_row_major : bool
        Whether places in an image are counted along its last dimension first, or its first.
    """
    batch, channels, *image = node.shape(x)
    size, count = math.prod(windows["pool_size"]), math.prod(out)
    if size * count > MOST_PLACES or 0 in image:
        node.fail("no positions in such windows", got=f"{size} x {count} elements of {image}")
    found = np.zeros((1, 1), np.int64)
    for n, extent in enumerate(image):
        found = joined(found, _line(windows, n, extent, out[n]), extent)
    order = "C" if is_row_major else "F"
    named = np.ravel_multi_index(np.unravel_index(found, image), image, order=order)  # type: ignore[call-overload]  # a text
    rows = node.reshape(x, (batch * channels, math.prod(image)))
    parts = node.call("take", rows, constant_of(found.T.copy(), "int64"), axis=1)
    chosen = node.cast(node.call("argmax", parts, axis=(2,)), "int64")
    first = constant_of(np.arange(count) * size, "int64")
    table = constant_of(named.T.reshape(-1), "int64")
    inside = node.call("take", table, node.call("add", chosen, first), axis=0)
    images = constant_of(np.arange(batch * channels)[:, None] * math.prod(image), "int64")
    return node.reshape(node.call("add", inside, images), (batch, channels, *out))


def _line(windows: dict[str, Any], n: int, extent: int, out: int) -> Array:
    """Return the places in a dimension of the elements of windows: a row for each element.

    An element outside counts as the first one inside: the largest stays the first largest.
    """
    kernel, step = np.arange(windows["pool_size"][n])[:, None], windows["strides"][n]
    places = np.arange(out) * step - windows["padding"][n] + kernel * windows["dilation"][n]
    is_inside = (places >= 0) & (places < extent)
    first = np.take_along_axis(places, is_inside.argmax(axis=0)[None], 0)
    return np.clip(np.where(is_inside, places, first), 0, extent - 1)


def _max_unpool(node: Node) -> Expr:
    x, places = node.input(0), node.input(1)
    rank = spatial_rank(node, x)
    kernel, strides = listed(node, "kernel_shape", rank), listed(node, "strides", rank)
    pads = tuple(node.attr("pads") or (0,) * (2 * rank))
    if len(pads) != 2 * rank:
        node.fail("it has another number of pads than twice the dimensions", got=repr(pads))
    batch, channels, *image = node.shape(x)
    inner = [
        (image[n] - 1) * strides[n] - pads[n] - pads[rank + n] + kernel[n] for n in range(rank)
    ]
    shape = [batch, channels, *inner]
    wanted = shape if node.optional(2) is None else node.integers(2, "its shape")
    width = [(0, b - a) for a, b in zip(shape, wanted, strict=False)]
    if len(wanted) != len(shape) or any(n < 0 for n in (*inner, *(b for _, b in width))):
        node.fail("no such result", got=f"{wanted}, from windows of {shape}")
    total = math.prod(shape)
    zeros = node.call("full", node.scalar(0, x), shape=(total,), dtype=node.dtype(x))
    count = math.prod(node.shape(x))
    made = node.call("scatter_elements", zeros, node.reshape(places, (count,)),
                     node.reshape(x, (count,)), axis=0)  # fmt: skip
    made = node.reshape(made, shape)  # type: ignore[assignment]  # an expression
    return made if wanted == shape else node.call("nn.pad", made, pad_width=tuple(width))


TABLE: dict[str, Callable[[Node], Any]] = {
    "MaxPool": _pool("max"), "AveragePool": _pool("avg"), "LpPool": _pool("lp"),
    "GlobalMaxPool": _global("max"), "GlobalAveragePool": _global("avg"),
    "GlobalLpPool": _global_lp, "MaxUnpool": _max_unpool,
}  # fmt: skip
"""The converters of this module."""
