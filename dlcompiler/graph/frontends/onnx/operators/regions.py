"""Images that are read between their elements, at computed places: regions, deformed kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators.windows import kernel_of, listed, pads_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr


def _neighbours(node: Node, at: Expr, extent: int) -> list[tuple[Expr, Expr]]:
    """Return the elements beside places in a dimension, and their weights: 0 for one outside."""
    first = node.call("floor", at)
    fraction = node.call("subtract", at, first)
    one, zero, last = (node.scalar(n, at) for n in (1, 0, extent - 1))
    found: list[tuple[Expr, Expr]] = []
    for place, weight in (
        (first, node.call("subtract", one, fraction)), (node.call("add", first, one), fraction),
    ):  # fmt: skip
        is_inside = _is_between(node, place, zero, last)
        inside = node.call("minimum", node.call("maximum", place, zero), last)
        found.append((node.cast(inside, "int64"), node.call("where", is_inside, weight, zero)))
    return found


def _is_between(node: Node, x: Expr, low: Expr, high: Expr) -> Expr:
    return node.call("logical_and", node.call("greater_equal", x, low),
                     node.call("less_equal", x, high))  # fmt: skip


def _corners(
    node: Node, images: Expr, rows: Sequence[tuple[Expr, Expr]],
    columns: Sequence[tuple[Expr, Expr]], width: int,
) -> list[Expr]:  # fmt: skip
    """Return the elements around places, times their weights; images are ``(batch, c, h · w)``.

    Places in rows and in columns are broadcast: of shape ``(batch, …)``.
    """
    found: list[Expr] = []
    for (row, by), (column, bx) in itertools.product(rows, columns):
        place = node.call("add", node.call("multiply", row, node.scalar(width, row)), column)
        weight = node.call("multiply", by, bx)
        batch, *rest = node.shape(place)
        count = math.prod(rest)
        read = node.call("take", images, node.reshape(place, (batch, count)), axis=2, batch_dims=1)
        factor = node.cast(node.reshape(weight, (batch, 1, count)), node.dtype(images))
        found.append(node.call("multiply", read, factor))
    return found


def _roi_align(node: Node) -> Expr:
    """Return the mean, or the largest, of points in each cell of regions of images."""
    x, rois, batch = node.input(0), node.input(1), node.input(2)
    count, mode = int(node.attr("sampling_ratio", 0)), str(node.attr("mode", "avg"))
    if count < 1 or mode not in ("avg", "max"):
        node.fail("its points are not known", got=f"sampling_ratio {count}, mode {mode!r}",
                  expected="a positive sampling_ratio, mode 'avg' or 'max'")  # fmt: skip
    if node.rank(x) != 4 or node.rank(rois) != 2 or node.shape(rois)[1] != 4:
        node.fail("no regions of images", got=f"{node.type(x)}, {node.type(rois)}")
    _, channels, *image = node.shape(x)
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    is_shifted = str(node.attr("coordinate_transformation_mode", default)) == "half_pixel"
    out = [int(node.attr(f"output_{name}", 1)) for name in ("height", "width")]
    lines = []
    for n, extent in enumerate(image):
        at = _points(node, rois, 1 - n, out[n] * count, is_shifted)
        low, zero, last, high = (node.scalar(v, at) for v in (-1, 0, extent - 1, extent))
        at = node.call("expand_dims", at, axis=2 - n, num_newaxis=1)  # rows, then columns
        is_near = _is_between(node, at, low, high)
        at = node.call("minimum", node.call("maximum", at, zero), last)
        lines.append([
            (place, node.call("where", is_near, weight, zero))
            for place, weight in _neighbours(node, at, extent)
        ])  # fmt: skip
    regions = node.shape(rois)[0]
    images = node.call("take", x, batch, axis=0)
    flat = node.reshape(images, (regions, channels, math.prod(image)))
    parts = _corners(node, flat, lines[0], lines[1], image[1])
    made = reduce(lambda a, b: node.call("add" if mode == "avg" else "maximum", a, b), parts)
    made = node.reshape(made, (regions, channels, out[0], count, out[1], count))
    return node.call("mean" if mode == "avg" else "max", made, axis=(3, 5))


def _points(node: Node, rois: Expr, column: int, count: int, is_shifted: bool) -> Expr:
    """Return points at equal distances in one dimension of regions: ``(region, count)``."""
    scale = node.scalar(float(node.attr("spatial_scale", 1.0)), rois)
    shift = node.scalar(0.5 if is_shifted else 0.0, rois)
    begin, end = (
        node.call("subtract", node.call("multiply", node.call(
            "strided_slice", rois, begin=(n,), end=(n + 1,), axes=(1,)), scale), shift)
        for n in (column, column + 2)
    )  # fmt: skip
    size = node.call("subtract", end, begin)
    if not is_shifted:
        size = node.call("maximum", size, node.scalar(1, size))
    steps = constant_of((np.arange(count) + 0.5)[None] / count, node.dtype(rois))
    return node.call("add", begin, node.call("multiply", size, steps))


def _deform_conv(node: Node) -> Expr:
    """Convolve images whose elements are read at places moved by offsets."""
    x, weight, offset = node.input(0), node.input(1), node.input(2)
    if node.rank(x) != 4 or node.rank(weight) != 4:
        node.fail("no images of two dimensions", got=f"{node.type(x)}, {node.type(weight)}")
    batch, channels, *image = node.shape(x)
    filters, depth = node.shape(weight)[:2]
    kernel = kernel_of(node, weight)
    strides, dilations = listed(node, "strides", 2), listed(node, "dilations", 2)
    groups, parts = int(node.attr("group", 1)), int(node.attr("offset_group", 1))
    out, taps = node.shape(offset)[2:], math.prod(kernel)
    if min(parts, groups) < 1 or groups * depth != channels or channels % parts or filters % groups:
        node.fail("the groups do not divide the channels", got=f"{groups}, {parts} groups")
    pads = pads_of(node, image, kernel, strides, dilations)
    wanted = tuple(
        (image[n] + pads[n] + pads[2 + n] - dilations[n] * (kernel[n] - 1) - 1) // strides[n] + 1
        for n in range(2)
    )
    if out != wanted:
        node.fail("the offsets do not fit the windows", got=str(out), expected=str(wanted))
    moved = node.reshape(offset, (batch * parts, taps, 2, *out))
    lines = []
    for n, extent in enumerate(image):
        grid = np.zeros((1, *kernel, *out))
        grid += (np.arange(kernel[n]) * dilations[n] - pads[n]).reshape(-1, *(1,) * (3 - n))
        grid += (np.arange(out[n]) * strides[n]).reshape(-1, *(1,) * (1 - n))
        fixed = constant_of(grid.reshape(1, taps, *out), node.dtype(offset))
        own = node.call("squeeze", node.call("strided_slice", moved, begin=(n,), end=(n + 1,),
                                             axes=(2,)), axis=(2,))  # fmt: skip
        lines.append(_neighbours(node, node.call("add", own, fixed), extent))
    flat = node.reshape(x, (batch * parts, channels // parts, math.prod(image)))
    read: Expr = reduce(lambda a, b: node.call("add", a, b),
                        _corners(node, flat, lines[0], lines[1], image[1]))  # fmt: skip
    count = math.prod(out)
    if node.optional(4) is not None:
        mask = node.reshape(node.input(4), (batch * parts, 1, taps * count))
        read = node.call("multiply", read, mask)
    columns = node.reshape(read, (batch, groups, depth * taps, count))
    rows = node.reshape(weight, (1, groups, filters // groups, depth * taps))
    made = node.reshape(node.call("nn.matmul", rows, columns), (batch, filters, *out))
    bias = node.optional(3)
    return made if bias is None else node.call("nn.bias_add", made, bias, axis=1)


TABLE: dict[str, Callable[[Node], Any]] = {"RoiAlign": _roi_align, "DeformConv": _deform_conv}
"""The converters of this module."""
