"""Operators on images in the layout NHWC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.graph.frontends.tflite.node import Converter, TfliteNode
from dlcompiler.graph.frontends.windows import same_pads
from dlcompiler.graph.ir import Expr

_SAME, _VALID = 0, 1


def _pads(
    node: TfliteNode, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> tuple[int, ...]:  # fmt: skip
    """Return what is added before and after images, by the rule ``SAME`` or ``VALID``."""
    rule = int(node.option("Padding"))
    if rule == _VALID:
        return (0, 0, 0, 0)
    if rule != _SAME:
        node.fail("no such rule of padding", got=str(rule))
    before, after = same_pads(sizes, kernel, strides, dilation)
    return (*before, *after)


def _steps(node: TfliteNode) -> tuple[int, int]:
    strides = (int(node.option("StrideH")), int(node.option("StrideW")))
    if min(strides) < 1:
        node.fail("its strides are not positive", got=repr(strides))
    return strides


def _dilation(node: TfliteNode) -> tuple[int, int]:
    found = (int(node.option("DilationHFactor", 1)), int(node.option("DilationWFactor", 1)))
    if min(found) < 1:
        node.fail("its dilation is not positive", got=repr(found))
    return found


def _images(node: TfliteNode, i: int) -> tuple[int, ...]:
    shape = node.shape(node.input(i))
    if len(shape) != 4:
        node.fail("the images have another number of dimensions", got=repr(shape), expected="4")
    return shape


def _finished(node: TfliteNode, made: Expr, bias: int) -> Expr:
    if node.optional(bias) is not None:
        made = node.call("add", made, node.input(bias))
    return node.activated(made)


def _conv(node: TfliteNode) -> Expr:
    images, weights = _images(node, 0), _images(node, 1)
    strides, dilation = _steps(node), _dilation(node)
    groups = images[3] // weights[3] if weights[3] and images[3] % weights[3] == 0 else 1
    made = node.call(
        "nn.conv2d", node.input(0), node.input(1), strides=strides, dilation=dilation,
        padding=_pads(node, images[1:3], weights[1:3], strides, dilation), groups=groups,
        data_layout="NHWC", kernel_layout="OHWI",
    )  # fmt: skip
    return _finished(node, made, 2)


def _depthwise(node: TfliteNode) -> Expr:
    """Convolve each channel on its own; weights are (1, kh, kw, channels · multiplier)."""
    images, weights = _images(node, 0), _images(node, 1)
    strides, dilation = _steps(node), _dilation(node)
    made = node.call(
        "nn.conv2d", node.input(0), node.transposed(node.input(1), (3, 1, 2, 0)),
        strides=strides, dilation=dilation, groups=images[3],
        padding=_pads(node, images[1:3], weights[1:3], strides, dilation),
        data_layout="NHWC", kernel_layout="OHWI",
    )  # fmt: skip
    return _finished(node, made, 2)


def _transpose_conv(node: TfliteNode) -> Expr:
    """Return a transposed convolution whose result has the extents of operand 0."""
    wanted = node.integers(0, "the extents")
    images, weights = _images(node, 2), _images(node, 1)
    strides = _steps(node)
    full = [(n - 1) * s + k for n, s, k in zip(images[1:3], strides, weights[1:3], strict=True)]
    if len(wanted) != 4 or any(w > f + s - 1 for w, f, s in zip(wanted[1:3], full, strides,
                                                                strict=True)):  # fmt: skip
        node.fail("its result cannot have such extents", got=repr(wanted))
    cut = [max(f - w, 0) for f, w in zip(full, wanted[1:3], strict=True)]
    before = [n // 2 for n in cut] if int(node.option("Padding")) == _SAME else [0, 0]
    after = [n - b for n, b in zip(cut, before, strict=True)]
    extra = [max(w - f, 0) for f, w in zip(full, wanted[1:3], strict=True)]
    made = node.call(
        "nn.conv2d_transpose", node.input(2), node.transposed(node.input(1), (3, 0, 1, 2)),
        strides=strides, padding=(*before, *after), output_padding=tuple(extra),
        data_layout="NHWC", kernel_layout="IOHW",
    )  # fmt: skip
    return _finished(node, made, 3)


def _pool(kind: str) -> Converter:
    def convert(node: TfliteNode) -> Expr:
        images = _images(node, 0)
        kernel = (int(node.option("FilterHeight")), int(node.option("FilterWidth")))
        strides = _steps(node)
        if min(kernel) < 1:
            node.fail("its windows are empty", got=repr(kernel))
        attrs: dict[str, Any] = {"count_include_pad": False} if kind == "avg" else {}
        made = node.call(
            f"nn.{kind}_pool2d", node.input(0), pool_size=kernel, strides=strides,
            padding=_pads(node, images[1:3], kernel, strides), layout="NHWC", **attrs,
        )  # fmt: skip
        return node.activated(made)

    return convert


def _resize(method: str) -> Converter:
    def convert(node: TfliteNode) -> Expr:
        _images(node, 0)
        size = tuple(node.integers(1, "the size"))
        corners, half = bool(node.option("AlignCorners")), bool(node.option("HalfPixelCenters"))
        attrs: dict[str, Any] = {}
        if method == "nearest_neighbor":
            attrs["rounding_method"] = "round" if corners else "floor"
            mode = "align_corners" if corners else "tf_half_pixel_for_nn" if half else "asymmetric"
        else:
            mode = "align_corners" if corners else "half_pixel" if half else "asymmetric"
        return node.call("image.resize2d", node.input(0), size=size, layout="NHWC", method=method,
                         coordinate_transformation_mode=mode, **attrs)  # fmt: skip

    return convert


def _blocks(name: str) -> Converter:
    return lambda node: node.call(
        name, node.input(0), block_size=int(node.option("BlockSize")), layout="NHWC"
    )


TABLE: dict[str, Converter] = {
    "CONV_2D": _conv, "DEPTHWISE_CONV_2D": _depthwise, "TRANSPOSE_CONV": _transpose_conv,
    "MAX_POOL_2D": _pool("max"), "AVERAGE_POOL_2D": _pool("avg"),
    "RESIZE_BILINEAR": _resize("linear"), "RESIZE_NEAREST_NEIGHBOR": _resize("nearest_neighbor"),
    "DEPTH_TO_SPACE": _blocks("nn.depth_to_space"), "SPACE_TO_DEPTH": _blocks("nn.space_to_depth"),
}  # fmt: skip
"""The converters of this module."""
