"""Operators on images: pooling, borders, other sizes, and positions to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.frontends.windows import LAYOUTS
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array
from dlcompiler.ops.resizing import Positions


def _batched(node: AtenNode, x: Expr, rank: int) -> Expr:
    """Return images with a first dimension, which a single one lacks."""
    return node.reshape(x, (1, *node.shape(x))) if node.rank(x) == rank + 1 else x


def _pool(kind: str, rank: int, *, has_places: bool = False) -> Converter:
    def convert(node: AtenNode) -> Any:
        x = _batched(node, node.tensor("self"), rank)
        kernel, pads = node.listed("kernel_size", rank), node.listed("padding", rank, 0)
        has_steps = node.get("stride") not in (None, [])
        steps = node.listed("stride", rank) if has_steps else kernel
        attrs: dict[str, Any] = {
            "pool_size": kernel, "strides": steps, "padding": (*pads, *pads),
            "layout": LAYOUTS[rank], "ceil_mode": bool(node["ceil_mode"]),
        }  # fmt: skip
        divisor = node.get("divisor_override")
        if kind == "max":
            attrs["dilation"] = node.listed("dilation", rank)
        else:
            attrs["count_include_pad"] = bool(node["count_include_pad"]) or divisor is not None
        made: Expr = node.call(f"nn.{kind}_pool{rank}d", x, **attrs)
        if divisor is not None:
            if node["ceil_mode"]:
                node.fail("it has a divisor of its own, and windows beyond the images")
            factor = math.prod(kernel) / int(divisor)
            made = node.call("multiply", made, node.number(factor, node.out_dtype))
        made = node.reshape(made, node.out_shape)
        return [made, None] if has_places else made

    return convert


def _adaptive(kind: str, rank: int, *, has_places: bool = False) -> Converter:
    def convert(node: AtenNode) -> Any:
        x = _batched(node, node.tensor("self"), rank)
        made = node.call(f"nn.adaptive_{kind}_pool{rank}d", x,
                         output_size=node.out_shape[-rank:], layout=LAYOUTS[rank])  # fmt: skip
        made = node.reshape(made, node.out_shape)  # type: ignore[assignment]  # an expression
        return [made, None] if has_places else made

    return convert


def _padding(node: AtenNode, rank: int) -> list[tuple[int, int]]:
    """Return what is added to each dimension; PyTorch begins with the last one."""
    pads = list(node["padding"] if "padding" in node.given else node["pad"])
    width = [(0, 0)] * rank
    for n in range(len(pads) // 2):
        width[rank - 1 - n] = (int(pads[2 * n]), int(pads[2 * n + 1]))
    return width


def _pad(mode: str) -> Converter:
    def convert(node: AtenNode) -> Expr:
        x = node.tensor("self")
        width = _padding(node, node.rank(x))
        begins = [max(-a, 0) for a, _ in width]
        ends = [n - max(-b, 0) for n, (_, b) in zip(node.shape(x), width, strict=True)]
        if any(begins) or tuple(ends) != node.shape(x):  # negative: elements are cut off
            x = node.call("strided_slice", x, begin=tuple(begins), end=tuple(ends))
        width = [(max(a, 0), max(b, 0)) for a, b in width]
        if not any(n for pair in width for n in pair):
            return x
        if mode != "constant":
            return node.call("nn.pad", x, pad_width=tuple(width), pad_mode=mode)
        value = node.operand("value", node.out_dtype)
        return node.call("nn.pad", x, value, pad_width=tuple(width))

    return convert


def _resize(method: str, rank: int, *, is_exact: bool = False) -> Converter:
    """Return the converter of an interpolation; a scale that is given is used as it is."""

    def convert(node: AtenNode) -> Expr:
        x = node.tensor("input" if "input" in node.given else "self")
        shape, out = node.shape(x), node.out_shape
        corners = bool(node.get("align_corners", False))
        given = _scales(node, rank)
        if method == "nearest_neighbor":
            mode = "half_pixel" if is_exact else "asymmetric"
        else:
            mode = "align_corners" if corners else "half_pixel"
        attrs: dict[str, Any] = {
            "size": out[2:], "method": method, "layout": LAYOUTS[rank],
            "coordinate_transformation_mode": mode, "cubic_alpha": -0.75,
        }  # fmt: skip
        if method == "nearest_neighbor":
            sizes = zip(shape[2:], out[2:], given, strict=True)
            places = [_nearest(*each, is_exact=is_exact) for each in sizes]
            if not all(agrees for _, agrees in places):
                for axis, (chosen, _) in enumerate(places):
                    x = node.call("take", x, constant_of(chosen), axis=2 + axis)
                return x
            attrs["rounding_method"] = "round_prefer_ceil" if is_exact else "floor"
        if not corners and any(given):
            attrs["scales"] = tuple(
                scale or b / a for scale, a, b in zip(given, shape[2:], out[2:], strict=True)
            )
        return node.call(f"image.resize{rank}d", x, **attrs)

    return convert


def _nearest(size: int, out: int, scale: float | None, *, is_exact: bool) -> tuple[Array, bool]:
    """Return which pixels PyTorch reads, and whether exact positions give the same ones.

    PyTorch computes positions with float32: where 17/1.7 is 10, it reads pixel 10, though the
    float32 next to 1.7 is above it.
    """
    step = np.float32(1 / scale) if scale else np.float32(size) / np.float32(max(out, 1))
    half = np.float32(0.5 if is_exact else 0)
    at = step * (np.arange(out, dtype="float32") + half) - half + half
    chosen = np.clip(np.floor(at).astype("int64"), 0, size - 1)
    exact = Positions.of(size, out, "half_pixel" if is_exact else "asymmetric", scale)
    twice = 2 * exact.at(np.arange(out)) + (exact.divisor if is_exact else 0)
    others = np.clip(twice // (2 * exact.divisor), 0, size - 1)
    return chosen, bool(np.array_equal(chosen, others))


def _scales(node: AtenNode, rank: int) -> list[float | None]:
    """Return the scales of the dimensions; None where only the size is given."""
    if "scale_factors" in node.given:
        return list(node["scale_factors"] or [None] * rank)
    if rank == 1:
        return [node.get("scales")]
    return [node.get(f"scales_{axis}") for axis in "dhw"[-rank:]]


def _grid_sample(rank: int) -> Converter:
    def convert(node: AtenNode) -> Expr:
        linear = "bilinear" if rank == 2 else "trilinear"
        method = (linear, "nearest", "bicubic")[int(node["interpolation_mode"])]
        padding = ("zeros", "border", "reflection")[int(node["padding_mode"])]
        order = (0, rank + 1, *range(1, rank + 1))
        return node.call(
            "image.grid_sample", node.tensor("input"),
            node.call("transpose", node.tensor("grid"), axes=order), method=method,
            layout=LAYOUTS[rank], padding_mode=padding, align_corners=bool(node["align_corners"]),
        )  # fmt: skip

    return convert


def _pixel_shuffle(node: AtenNode) -> Expr:
    """Move channels into blocks of pixels, the channel outermost."""
    x, n = node.tensor("self"), int(node["upscale_factor"])
    images = node.reshape(x, (math.prod(node.shape(x)[:-3]), *node.shape(x)[-3:]))
    made = node.call("nn.depth_to_space", images, block_size=n, mode="CRD")
    return node.reshape(made, node.out_shape)


TABLE: dict[str, Converter] = {
    **{f"max_pool{n}d": _pool("max", n) for n in LAYOUTS},
    **{f"max_pool{n}d_with_indices": _pool("max", n, has_places=True) for n in LAYOUTS},
    **{f"avg_pool{n}d": _pool("avg", n) for n in LAYOUTS},
    **{f"{lead}adaptive_avg_pool{n}d": _adaptive("avg", n) for n in LAYOUTS for lead in ("", "_")},
    **{f"adaptive_max_pool{n}d": _adaptive("max", n, has_places=True) for n in LAYOUTS},
    **{f"reflection_pad{n}d": _pad("reflect") for n in LAYOUTS},
    **{f"replication_pad{n}d": _pad("edge") for n in LAYOUTS},
    "constant_pad_nd": _pad("constant"),
    **{f"upsample_nearest{n}d": _resize("nearest_neighbor", n) for n in LAYOUTS},
    **{f"_upsample_nearest_exact{n}d": _resize("nearest_neighbor", n, is_exact=True)
       for n in LAYOUTS},
    "upsample_linear1d": _resize("linear", 1), "upsample_bilinear2d": _resize("linear", 2),
    "upsample_trilinear3d": _resize("linear", 3), "upsample_bicubic2d": _resize("cubic", 2),
    "grid_sampler_2d": _grid_sample(2), "grid_sampler_3d": _grid_sample(3),
    "pixel_shuffle": _pixel_shuffle,
}  # fmt: skip
"""The converters of this module."""
