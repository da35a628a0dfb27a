"""Operators on images: convolutions, pooling, normalisation of channels, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.mxnet.node import MOST_NUMBERS, Converter, MxnetNode
from dlcompiler.graph.frontends.windows import LAYOUTS, spatial_rank
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array


def _spatial_rank(node: MxnetNode) -> int:
    """Return the number of spatial dimensions of the images; their layout must be the usual one."""
    rank = spatial_rank(node, node.input(0))
    node.choice("layout", LAYOUTS[rank])
    return rank


def _window(node: MxnetNode, name: str, rank: int, default: int, least: int = 1) -> tuple[int, ...]:
    """Return an attribute with a number for each spatial dimension."""
    found = node.integers(name, (default,) * rank)
    if len(found) != rank or min(found) < least:
        node.fail(f"{name} does not fit the images", got=repr(found)[:100],
                  expected=f"{rank} numbers from {least}")  # fmt: skip
    return found


def _sizes(node: MxnetNode) -> tuple[int, ...]:
    """Return the spatial extents of the images, which must be known; the batch may be open."""
    found = node.type(node.input(0)).shape[2:]
    known = tuple(n for n in found if isinstance(n, int))
    return known if len(known) == len(found) else node.shape(node.input(0))


def _biased(node: MxnetNode, made: Expr, *, is_plain: bool) -> Expr:
    if node.flag("no_bias", is_plain):
        return made
    return node.call("nn.bias_add", made, node.input(2), axis=1)


def _conv(node: MxnetNode) -> Expr:
    rank = _spatial_rank(node)
    pads = _window(node, "pad", rank, 0, 0)
    made = node.call(
        f"nn.conv{rank}d", node.input(0), node.input(1), strides=_window(node, "stride", rank, 1),
        padding=(*pads, *pads), dilation=_window(node, "dilate", rank, 1),
        groups=node.integer("num_group", 1), channels=node.integer("num_filter"),
        kernel_size=_window(node, "kernel", rank, 0), data_layout=LAYOUTS[rank],
    )  # fmt: skip
    return _biased(node, made, is_plain=False)


def _deconv(node: MxnetNode) -> Expr:
    """Return a transposed convolution; `target_shape` says how much of its result is cut off."""
    rank = _spatial_rank(node)
    kernel, strides = _window(node, "kernel", rank, 0), _window(node, "stride", rank, 1)
    dilation = _window(node, "dilate", rank, 1)
    pads, extra = _window(node, "pad", rank, 0, 0), _window(node, "adj", rank, 0, 0)
    wanted = _window(node, "target_shape", rank, 0, 0)
    if any(wanted):
        sizes = _sizes(node)
        cut = [
            (n - 1) * step + (k - 1) * d + 1 - want
            for n, step, k, d, want in zip(sizes, strides, kernel, dilation, wanted, strict=True)
        ]
        if min(cut) < 0:
            node.fail("its result is smaller than target_shape", got=repr(wanted))
        pads, extra = tuple((n + 1) // 2 for n in cut), tuple(n % 2 for n in cut)
    made = node.call(
        f"nn.conv{rank}d_transpose", node.input(0), node.input(1), strides=strides,
        padding=(*pads, *pads), dilation=dilation, output_padding=extra, kernel_size=kernel,
        groups=node.integer("num_group", 1), channels=node.integer("num_filter"),
        data_layout=LAYOUTS[rank],
    )  # fmt: skip
    return _biased(node, made, is_plain=True)


def _pool(node: MxnetNode) -> Expr:
    rank, x = _spatial_rank(node), node.input(0)
    kind = node.choice("pool_type", "max", "avg", "sum", "lp")
    rule = node.choice("pooling_convention", "valid", "full")
    counts_pads, order = node.flag("count_include_pad", True), node.integer("p_value", 2)
    if kind == "lp" and order == 1:
        kind = "sum"  # odd powers keep their signs
    elif kind == "lp" and order != 2:
        node.fail("no such norm of windows", got=f"p_value {order}", expected="1 or 2")
    for name in ("kernel", "stride", "pad"):
        node.text(name)  # they say nothing about a window that is the whole image
    if node.flag("global_pool"):
        return _global(node, kind, rank)
    kernel, strides = _window(node, "kernel", rank, 0), _window(node, "stride", rank, 1)
    pads = _window(node, "pad", rank, 0, 0)
    sizes = _sizes(node) if rule == "full" else ()
    after = _reached(sizes, kernel, strides, pads) if rule == "full" else pads
    is_longer = after != pads
    attrs: dict[str, Any] = {"pool_size": kernel, "strides": strides, "layout": LAYOUTS[rank]}
    if kind != "max" and counts_pads and is_longer:  # the last windows may be outside as a whole
        x = node.call("nn.pad", x, pad_width=((0, 0), (0, 0), *zip(pads, after, strict=True)))
        attrs["padding"] = (0,) * (2 * rank)
    else:
        attrs["padding"] = (*pads, *after)
    match kind:
        case "max":
            return node.call(f"nn.max_pool{rank}d", x, **attrs)
        case "lp":
            return node.call(f"nn.lp_pool{rank}d", x, **attrs, p=2.0)
        case "avg" if not (counts_pads and is_longer):
            return node.call(f"nn.avg_pool{rank}d", x, **attrs, count_include_pad=counts_pads)
    made = node.call(f"nn.avg_pool{rank}d", x, **attrs, count_include_pad=True)
    total = node.call("multiply", made, node.scalar(math.prod(kernel), x))
    if kind == "sum":
        return total
    counts = _counts(node, sizes, kernel, strides, pads)
    return node.call("divide", total, node.numbers(counts, node.dtype(x)))


def _reached(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int]
) -> tuple[int, ...]:
    """Return the padding behind images of which every element is in a window."""
    found = []
    for size, k, step, pad in zip(sizes, kernel, strides, pads, strict=True):
        more = -(-(size + 2 * pad - k) // step)  # windows after the first one
        found.append(max(more * step + k - size - pad, pad))
    return tuple(found)


def _counts(
    node: MxnetNode, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    pads: Sequence[int],
) -> Array:  # fmt: skip
    """Return how many elements each window has, with the padding but not with what is beyond it.

    A window that is beyond it as a whole has a sum of 0, which is divided by 1.
    """
    windows = list(zip(sizes, kernel, strides, pads, strict=True))
    out = [1 - (k - size - 2 * pad) // step for size, k, step, pad in windows]
    node.limited(out, MOST_NUMBERS)
    lines = []
    for (size, k, step, pad), count in zip(windows, out, strict=True):
        first = np.arange(count) * step - pad
        lines.append(np.maximum(np.minimum(first + k, size + pad) - first, 1))
    return np.asarray(reduce(np.multiply.outer, lines))


def _global(node: MxnetNode, kind: str, rank: int) -> Expr:
    x, axes = node.input(0), tuple(range(2, rank + 2))
    match kind:
        case "sum":
            return node.call("sum", x, axis=axes, keepdims=True)
        case "lp":
            return node.call("norm", x, ord=2.0, axis=axes, keepdims=True)
    return node.call(f"nn.global_{kind}_pool{rank}d", x, layout=LAYOUTS[rank])


def _adaptive_pool(node: MxnetNode) -> Expr:
    size = node.integers("output_size", (1,))
    size = size * 2 if len(size) == 1 else size
    if len(size) != 2 or min(size) < 1:
        node.fail("output_size does not fit the images", got=repr(size)[:100])
    return node.call("nn.adaptive_avg_pool2d", node.input(0), output_size=size, layout="NCHW")


def _upsampling(node: MxnetNode) -> Expr:
    """Repeat pixels, or interpolate by a transposed convolution of each channel."""
    x, scale = node.input(0), node.integer("scale")
    method = node.choice("sample_type", "", "nearest", "bilinear")
    node.choice("multi_input_mode", "concat", "sum")
    node.integer("num_filter", 0)
    _, channels, _, _ = node.shape(x)
    if not 1 <= scale <= 1024:
        node.fail("no such scale", got=str(scale), expected="1 to 1024")
    if method == "nearest" and len(node.inputs) == 1:
        return node.call("nn.upsampling", x, scale_h=float(scale), scale_w=float(scale))
    if method != "bilinear":
        node.fail(
            "it joins several images, or has no sample_type", got=f"{len(node.inputs)} images"
        )
    pad, size = (scale // 2,) * 4, (2 * scale - scale % 2,) * 2
    return node.call("nn.conv2d_transpose", x, node.input(1), strides=(scale, scale), padding=pad,
                     groups=channels, channels=channels, kernel_size=size)  # fmt: skip


def _resize(node: MxnetNode) -> Expr:
    node.choice("mode", "size")
    x, size = node.input(0), (node.integer("height"), node.integer("width"))
    mode = "align_corners" if node.flag("align_corners", True) else "half_pixel"
    for axis, extent in enumerate(size, 2):
        if extent == 1:  # the first row or column, not the middle
            x = node.call("strided_slice", x, begin=(0,), end=(1,), axes=(axis,))
    return node.call("image.resize2d", x, size=size, layout="NCHW", method="linear",
                     coordinate_transformation_mode=mode)  # fmt: skip


def _crop(node: MxnetNode) -> Expr:
    """Cut images to the size of the second operand, or to `h_w`."""
    *_, height, width = node.shape(node.input(0))
    given = node.integers("h_w", (0, 0))
    is_centred, (top, left) = node.flag("center_crop"), node.integers("offset", (0, 0))
    h, w = given if len(node.inputs) == 1 else node.shape(node.input(1))[2:]
    if is_centred:
        top, left = (height - h) // 2, (width - w) // 2
    if not (0 <= top <= top + h <= height and 0 <= left <= left + w <= width):
        node.fail("its part is outside of the images", got=f"{h} x {w} from {top}, {left}")
    return node.call("strided_slice", node.input(0), begin=(top, left), end=(top + h, left + w),
                     axes=(2, 3))  # fmt: skip


def _blocks(name: str) -> Converter:
    return lambda node: node.call(name, node.input(0), block_size=node.integer("block_size"))


def _batch_norm(node: MxnetNode) -> list[Expr]:
    """Normalise by the moments of the file; a fixed gamma is 1, whatever the file has."""
    x = node.input(0)
    node.flag("use_global_stats")  # in inference they are always used
    node.flag("output_mean_var")
    for name in ("min_calib_range", "max_calib_range", "key", "ndev"):
        node.text(name)
    given = [node.cast(node.input(i), node.dtype(x)) for i in range(1, 5)]
    made = node.call(
        "nn.batch_norm", x, *given, axis=node.axis(node.rank(x), 1),
        epsilon=node.number("eps", 1e-3), scale=not node.flag("fix_gamma", True),
    )  # fmt: skip
    return [made[0]]


def _instance_norm(node: MxnetNode) -> Expr:
    return node.call("nn.instance_norm", node.input(0), node.input(1), node.input(2), axis=1,
                     epsilon=node.number("eps", 1e-3))  # fmt: skip


def _group_norm(node: MxnetNode) -> list[Expr]:
    x, scale, shift = node.input(0), node.input(1), node.input(2)
    groups, channels = node.integer("num_groups", 1), node.shape(x)[1]
    node.flag("output_mean_var")
    if groups < 1 or channels % groups:
        node.fail("the channels are not divided by num_groups", got=f"{channels} by {groups}")
    if node.shape(scale) != (channels,):  # of a group, in version 1.6
        repeats = channels // groups
        scale, shift = (node.call("repeat", v, repeats=repeats, axis=0) for v in (scale, shift))
    return [node.call("nn.group_norm", x, scale, shift, num_groups=groups, axis=1,
                      epsilon=node.number("eps", 1e-5))]  # fmt: skip


def _lrn(node: MxnetNode) -> list[Expr]:
    return [node.call(
        "nn.lrn", node.input(0), size=node.integer("nsize"), axis=1,
        bias=node.number("knorm", 2.0), alpha=node.number("alpha", 1e-4),
        beta=node.number("beta", 0.75),
    )]  # fmt: skip


TABLE: dict[str, Converter] = {
    "Convolution": _conv, "Convolution_v1": _conv, "Deconvolution": _deconv, "Pooling": _pool,
    "_contrib_AdaptiveAvgPooling2D": _adaptive_pool, "_contrib_BilinearResize2D": _resize,
    "UpSampling": _upsampling, "Crop": _crop, "BatchNorm": _batch_norm,
    "BatchNorm_v1": _batch_norm, "_contrib_SyncBatchNorm": _batch_norm,
    "InstanceNorm": _instance_norm, "GroupNorm": _group_norm, "LRN": _lrn,
    "depth_to_space": _blocks("nn.depth_to_space"), "space_to_depth": _blocks("nn.space_to_depth"),
}  # fmt: skip
"""The converters of this module."""
