"""Images of another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.windows import LAYOUTS
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.resize import kernel
from dlcompiler.ops.resizing import Positions, Resize

MOST_WEIGHTS = 1 << 22
"""Most weights of a smoothed dimension; [1]."""
_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}


def _resize(node: Node) -> Expr:
    x = node.input(0)
    shape = node.shape(x)
    axes = [axis % len(shape) for axis in node.attr("axes") or range(len(shape))]
    scales, sizes = _wanted(node, shape, axes)
    mode = str(node.attr("coordinate_transformation_mode",
                         "half_pixel" if node.version >= 11 else "asymmetric"))  # fmt: skip
    attrs: dict[str, Any] = {
        "method": _method(node),
        "coordinate_transformation_mode": mode,
        "rounding_method": str(node.attr(
            "nearest_mode", "round_prefer_floor" if node.version >= 11 else "floor")),
        "cubic_alpha": float(node.attr("cubic_coeff_a", -0.75)),
        "cubic_exclude": bool(node.attr("exclude_outside", 0)),
    }  # fmt: skip
    if mode == "tf_crop_and_resize":
        roi = [float(n) for n in node.constant(1, "its region").reshape(-1)]
        full = [0.0] * len(shape) + [1.0] * len(shape)
        for n, axis in enumerate(axes):
            full[axis], full[len(shape) + axis] = roi[n], roi[len(axes) + n]
        attrs["roi"] = full
        attrs["extrapolation_value"] = float(node.attr("extrapolation_value", 0.0))
    if node.attr("antialias", 0) and attrs["method"] != "nearest_neighbor":
        return _smoothed(node, x, sizes, scales, attrs)
    return _resized(node, x, sizes, scales, attrs)


def _method(node: Node) -> str:
    mode = str(node.attr("mode", "nearest"))
    if mode not in _METHODS:
        node.fail("no such mode", got=repr(mode), expected=", ".join(_METHODS))
    return _METHODS[mode]


def _wanted(
    node: Node, shape: Sequence[int], axes: Sequence[int]
) -> tuple[list[float] | None, list[int]]:
    """Return the scales of all dimensions, if they are given, and the extents of the result."""
    place = 1 if node.version == 10 else 2
    sizes = [*shape]
    if node.optional(3) is not None and node.integers(3, "its sizes"):
        return None, _sizes(node, shape, axes)
    given = [float(n) for n in node.constant(place, "its scales").reshape(-1)]
    if len(given) != len(axes) or not all(0 < scale < math.inf for scale in given):
        node.fail("no positive scale for each axis", got=repr(given))
    scales = [1.0] * len(shape)
    for axis, scale in zip(axes, given, strict=True):
        scales[axis], sizes[axis] = scale, math.floor(shape[axis] * scale)
    return scales, sizes


def _sizes(node: Node, shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Return the extents of the result by the operand ``sizes``."""
    wanted = node.integers(3, "its sizes")
    if len(wanted) != len(axes):
        node.fail("it has another number of sizes than of axes", got=repr(wanted))
    policy = str(node.attr("keep_aspect_ratio_policy", "stretch"))
    found = list(shape)
    if policy == "stretch":
        for axis, size in zip(axes, wanted, strict=True):
            found[axis] = size
        return found
    ratios = [size / shape[axis] for axis, size in zip(axes, wanted, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    for axis in axes:
        found[axis] = math.floor(shape[axis] * scale + 0.5)
    return found


def _upsample(node: Node) -> Expr:
    x = node.input(0)
    shape = node.shape(x)
    scales = (
        [float(n) for n in node.attr("scales", ())]
        if node.version < 9
        else [float(n) for n in node.constant(1, "its scales").reshape(-1)]
    )
    if len(scales) != len(shape) or not all(0 < scale < math.inf for scale in scales):
        node.fail("no positive scale for each axis", got=repr(scales))
    sizes = [math.floor(n * scale) for n, scale in zip(shape, scales, strict=True)]
    attrs = {"method": _method(node), "coordinate_transformation_mode": "asymmetric",
             "rounding_method": "floor"}  # fmt: skip
    return _resized(node, x, sizes, scales, attrs)


def _resized(
    node: Node, x: Expr, sizes: Sequence[int], scales: Sequence[float] | None,
    attrs: dict[str, Any],
) -> Expr:  # fmt: skip
    """Return a tensor whose last one to three dimensions have other extents."""
    shape = node.shape(x)
    changed = [n for n, (a, b) in enumerate(zip(shape, sizes, strict=True)) if a != b]
    moves = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    rank = min(len(shape), 3) if moves else max(len(shape) - min(changed, default=len(shape)), 1)
    rank = max(rank, min(len(shape) - 2, 3)) if len(shape) > 2 else min(rank, len(shape))
    if changed and len(shape) - changed[0] > 3:
        node.fail("more than the last three dimensions change", got=f"{shape} to {tuple(sizes)}")
    rank = max(1, min(rank, 3))
    lead = shape[: len(shape) - rank]
    images = node.reshape(x, (1, math.prod(lead), *shape[-rank:]))
    more = dict(attrs)
    if scales is not None:
        more["scales"] = tuple(scales[-rank:])
    if "roi" in attrs:
        roi, own = attrs["roi"], len(shape)
        more["roi"] = (*roi[own - rank : own], *roi[2 * own - rank :])
    made = node.call(
        f"image.resize{rank}d", images, size=tuple(sizes[-rank:]), layout=LAYOUTS[rank], **more
    )
    return node.reshape(made, tuple(sizes))


def _smoothed(
    node: Node, x: Expr, sizes: Sequence[int], scales: Sequence[float] | None,
    attrs: dict[str, Any],
) -> Expr:  # fmt: skip
    """Return a tensor of other extents; where it is smaller, each element is a mean of many."""
    dtype, shape = node.dtype(x), node.shape(x)
    if not dtypes.is_float(dtype) or "roi" in attrs or 0 in shape:
        node.fail("it cannot be smoothed (antialias)", got=f"{node.type(x)}, {attrs}")
    x = node.cast(x, "float32") if dtypes.bytes_of(dtype) < 4 else x
    for axis, (extent, out) in enumerate(zip(shape, sizes, strict=True)):
        scale = scales[axis] if scales is not None else out / extent
        if (extent, scale) == (out, 1):
            continue
        line = Positions.of(extent, out, attrs["coordinate_transformation_mode"],
                            None if scales is None else scale)  # fmt: skip
        places, weights = _taps(node, line, out, max(1 / scale, 1.0), attrs)
        factors = weights.reshape(*weights.shape, *(1,) * (len(shape) - axis - 1))
        parts = node.call("take", x, constant_of(places, "int64"), axis=axis)
        parts = node.call("multiply", parts, constant_of(factors, node.dtype(x)))
        x = node.call("sum", parts, axis=(axis + 1,))
    return node.cast(x, dtype)


def _taps(
    node: Node, line: Positions, out: int, spread: float, attrs: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the elements of a dimension that each result combines, and their weights.

    The kernel of the interpolation is `spread` times as wide as the distance of elements.
    """
    of = Resize(attrs["method"], alpha=attrs["cubic_alpha"])
    reach = math.ceil((1 if of.method == "linear" else 2) * spread)
    if 2 * reach * out > MOST_WEIGHTS:
        node.fail("its kernel is too wide", got=f"{2 * reach} elements for each of {out}")
    at = np.arange(out)[:, None] * (line.factor / line.divisor) + line.offset / line.divisor
    places = np.floor(at).astype(np.int64) + np.arange(1 - reach, reach + 1)
    weights = kernel(np.abs(at - places) / spread, of)
    if attrs["cubic_exclude"]:
        weights[(places < 0) | (places >= line.size)] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, line.size - 1), weights


TABLE: dict[str, Callable[[Node], Any]] = {"Resize": _resize, "Upsample": _upsample}
"""The converters of this module."""
