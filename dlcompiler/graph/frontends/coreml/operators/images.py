"""Operations on images: convolutions, pools and resizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.graph.frontends.coreml.images import (
    ALIGNED,
    Windows,
    convolution,
    cropped,
    pads,
    positive,
    resized,
    scaled_size,
    transposed_convolution,
)
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.frontends.windows import LAYOUTS, spatial_rank
from dlcompiler.graph.ir import Expr

_MODES = {
    "STRICT_ALIGN_CORNERS": "align_corners", "ALIGN_CORNERS": ALIGNED,
    "DEFAULT": "asymmetric", "UNALIGN_CORNERS": "half_pixel",
}  # fmt: skip
"""Sampling mode -> how positions in the result become positions in the image."""


def _listed(node: Operation, name: str, rank: int) -> tuple[int, ...]:
    return positive(node, node.integers(name, [1] * rank), rank, name)


def _windows(node: Operation, kernel: Sequence[int]) -> Windows:
    rank = len(kernel)
    return Windows(
        kernel, _listed(node, "strides", rank), _listed(node, "dilations", rank),
        node.text("pad_type", "valid"), node.integers("pad", [0] * 2 * rank),
        node.integer("groups", 1),
    )  # fmt: skip


def _biased(node: Operation, made: Expr) -> Expr:
    return node.call("nn.bias_add", made, node.input("bias"), axis=1) if node.has("bias") else made


def _conv(node: Operation) -> Expr:
    x, weight = node.input(), node.input("weight")
    windows = _windows(node, _kernel(node, x, weight))
    return _biased(node, convolution(node, x, weight, windows))


def _conv_transpose(node: Operation) -> Expr:
    x, weight = node.input(), node.input("weight")
    windows = _windows(node, _kernel(node, x, weight))
    wanted = None
    if node.has("output_shape"):
        given = node.integers("output_shape")[2:]
        wanted = positive(node, given, len(windows.kernel), "output_shape")
    return _biased(node, transposed_convolution(node, x, weight, windows, wanted))


def _kernel(node: Operation, x: Expr, weight: Expr) -> tuple[int, ...]:
    return positive(node, node.shape(weight)[2:], spatial_rank(node, x), "weight")


def _pool(kind: str) -> OperationConverter:
    def convert(node: Operation) -> Expr:
        x = node.input()
        rank = spatial_rank(node, x)
        windows = _windows(node, _listed(node, "kernel_sizes", rank))
        attrs: dict[str, Any] = {}
        if kind == "avg":
            attrs["count_include_pad"] = not node.flag("exclude_padding_from_average")
        return node.call(
            f"nn.{kind}_pool{rank}d", x, pool_size=windows.kernel, strides=windows.strides,
            padding=pads(node, node.shape(x)[2:], windows), layout=LAYOUTS[rank],
            ceil_mode=node.flag("ceil_mode"), **attrs,
        )  # fmt: skip

    return convert


def _mode(node: Operation) -> str:
    name = node.text("sampling_mode", "DEFAULT")
    if name not in _MODES:
        node.fail("no such sampling mode", got=repr(name)[:100], expected=", ".join(_MODES))
    return _MODES[name]


def _scales(node: Operation) -> tuple[float, float]:
    return node.number("scale_factor_height", 1), node.number("scale_factor_width", 1)


def _target_size(node: Operation) -> tuple[int, int]:
    return node.integer("target_size_height", 1), node.integer("target_size_width", 1)


def _upsample_nearest(node: Operation) -> Expr:
    x = node.input()
    size = scaled_size(node, x, _scales(node))
    return resized(node, x, size, "nearest_neighbor", "asymmetric")


def _upsample_bilinear(node: Operation) -> Expr:
    x = node.input()
    is_aligned = node.flag("align_corners", True)
    has_centers = node.flag("half_pixel_centers", not is_aligned)
    if is_aligned and has_centers:
        node.fail("it aligns corners and centers of pixels")
    mode = "align_corners" if is_aligned else "half_pixel" if has_centers else "asymmetric"
    return resized(node, x, scaled_size(node, x, _scales(node)), "linear", mode)


def _resize_nearest(node: Operation) -> Expr:
    return resized(node, node.input(), _target_size(node), "nearest_neighbor", "asymmetric")


def _resize_bilinear(node: Operation) -> Expr:
    return resized(node, node.input(), _target_size(node), "linear", _mode(node))


def _resize(node: Operation) -> Expr:
    x, shape, count = node.input(), node.integers("shape"), node.integer("resized_dims")
    if count != 2 or len(shape) < 2:
        node.fail("it resizes another number of dimensions", got=str(count), expected="2")
    size = [n or own for n, own in zip(shape[-2:], node.shape(x)[-2:], strict=True)]
    method = node.text("interpolation_mode", "LINEAR").lower()
    if method == "nearest_neighbor" and _mode(node) != "asymmetric":
        node.fail("no such sampling mode of nearest neighbours", got=node.text("sampling_mode"))
    return resized(node, x, size, method, _mode(node))


def _crop(node: Operation) -> Expr:
    x = node.input()
    edges = [*node.integers("crop_height"), *node.integers("crop_width")]
    return cropped(node, x, edges)


def _blocks(name: str, parameter: str, **attrs: str) -> OperationConverter:
    return lambda node: node.call(name, node.input(), block_size=node.integer(parameter),
                                  layout="NCHW", **attrs)  # fmt: skip


def _pixel_unshuffle(node: Operation) -> Expr:
    """Move blocks of pixels into channels; those of one channel stay together."""
    x, size = node.input(), node.integer("downscale_factor")
    n, c, h, w = node.shape(x)
    if size < 1 or h % size or w % size:
        node.fail("its blocks do not fit the images", got=f"{size} in {node.type(x)}")
    parts = node.reshape(x, (n, c, h // size, size, w // size, size))
    moved = node.call("transpose", parts, axes=(0, 1, 3, 5, 2, 4))
    return node.reshape(moved, (n, c * size * size, h // size, w // size))


TABLE: dict[str, OperationConverter] = {
    "conv": _conv, "conv_transpose": _conv_transpose, "max_pool": _pool("max"),
    "avg_pool": _pool("avg"), "l2_pool": _pool("lp"),
    "upsample_nearest_neighbor": _upsample_nearest, "upsample_bilinear": _upsample_bilinear,
    "resize_nearest_neighbor": _resize_nearest, "resize_bilinear": _resize_bilinear,
    "resize": _resize, "crop": _crop, "depth_to_space": _blocks("nn.depth_to_space", "block_size"),
    "space_to_depth": _blocks("nn.space_to_depth", "block_size"),
    "pixel_shuffle": _blocks("nn.depth_to_space", "upscale_factor", mode="CRD"),
    "pixel_unshuffle": _pixel_unshuffle,
}  # fmt: skip
"""The converters of this module."""
