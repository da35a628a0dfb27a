"""Operators that move blocks of images, or change how a tensor is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    finite,
    integer,
    layout,
    lengths,
    one_of,
    pairs,
    positive,
)
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.layouts import (
    Extents,
    Layouts,
    extents_of,
    layout_of,
    layout_with,
    shape_in,
)
from dlcompiler.graph.operators.relations import axis_of, static
from dlcompiler.graph.operators.values import number
from dlcompiler.ops import rearranging

# -- layout_transform -----------------------------------------------------------------------------


def _letters(call: CallTypes | Result) -> str:
    return "".join(layout_of(call.attrs["src_layout"]).dimensions)


def _transform_type(call: CallTypes) -> TensorType:
    letters = _letters(call)
    old = layout_with(call, "src_layout", letters)
    new = layout_with(call, "dst_layout", letters)
    found = extents_of(call, 0, old)
    return TensorType(shape_in(call, new, found), call.tensor(0).dtype)


def _transform(call: Result, x: Array) -> Array:
    letters, attrs = _letters(call), call.attrs
    plain = layout_of(attrs["src_layout"]).plain(x, letters)
    return layout_of(attrs["dst_layout"]).store(plain, letters)


# -- depth and space ------------------------------------------------------------------------------


def _depth_type(call: CallTypes) -> TensorType:
    found, block = _images(call)
    found["C"] = _divided(call, "C", found["C"], block * block)
    found |= {axis: _times(found[axis], block) for axis in "HW"}
    return TensorType(shape_in(call, layout_of(call.attrs["layout"]), found), call.tensor(0).dtype)


def _space_type(call: CallTypes) -> TensorType:
    found, block = _images(call)
    found["C"] = _times(found["C"], block * block)
    found |= {axis: _divided(call, axis, found[axis], block) for axis in "HW"}
    return TensorType(shape_in(call, layout_of(call.attrs["layout"]), found), call.tensor(0).dtype)


def _images(call: CallTypes) -> tuple[Extents, int]:
    return extents_of(call, 0, layout_with(call, "layout", "NCHW")), call.attrs["block_size"]


def _times(extent: Dimension, factor: int) -> Dimension:
    return extent * factor if isinstance(extent, int) else ANY


def _divided(call: CallTypes, axis: str | int, extent: Dimension, factor: int) -> Dimension:
    if not isinstance(extent, int):
        return ANY
    if extent % factor:
        call.fail(f"{factor} does not divide dimension {axis}, whose extent is {extent}")
    return extent // factor


def _depth_to_space(call: Result, x: Array) -> Array:
    stored, block = layout_of(call.attrs["layout"]), call.attrs["block_size"]
    plain = stored.plain(x, "NCHW")
    n, c, h, w = plain.shape
    less = c // block**2
    if call.attrs["mode"] == "DCR":
        parts = plain.reshape(n, block, block, less, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = plain.reshape(n, less, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return stored.store(parts.reshape(n, less, h * block, w * block), "NCHW")


def _space_to_depth(call: Result, x: Array) -> Array:
    stored, block = layout_of(call.attrs["layout"]), call.attrs["block_size"]
    plain = stored.plain(x, "NCHW")
    n, c, h, w = plain.shape
    parts = plain.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return stored.store(parts.reshape(n, c * block**2, h // block, w // block), "NCHW")


def _define_depth(call: Result, x: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    return rearranging.depth_to_space(
        x, attrs["block_size"], layout_of(attrs["layout"]), is_depth_first=attrs["mode"] == "DCR"
    )


def _image_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts for images in any layout without blocks."""
    del call, current
    new = layout_of(wanted)
    if sorted(new.dimensions) != sorted("NCHW") or new.is_blocked:
        return None
    return Layouts((wanted,), (wanted,), {"layout": wanted})


# -- batch and space ------------------------------------------------------------------------------


def _blocks(
    call: CallTypes, widths: str
) -> tuple[TensorType, Sequence[int], Sequence[tuple[int, int]]]:
    kind, blocks, width = call.tensor(0), call.attrs["block_shape"], call.attrs[widths]
    if len(blocks) != len(width) or kind.rank < len(blocks) + 1:
        call.fail(
            f"block_shape has {len(blocks)} numbers, {widths} {len(width)} pairs",
            expected="one of each for some dimensions behind the first",
        )
    if 0 in blocks:
        call.fail("a block has no elements", got=f"block_shape={blocks}")
    return kind, blocks, width


def _to_batch_type(call: CallTypes) -> TensorType:
    kind, blocks, width = _blocks(call, "paddings")
    shape = [_times(kind.shape[0], math.prod(blocks)), *kind.shape[1:]]
    for n, (block, pair) in enumerate(zip(blocks, width, strict=True), 1):
        extent = shape[n]
        if isinstance(extent, int):
            shape[n] = _divided(call, n, extent + sum(pair), block)
    return TensorType(tuple(shape), kind.dtype)


def _from_batch_type(call: CallTypes) -> TensorType:
    kind, blocks, width = _blocks(call, "crops")
    shape = [_divided(call, 0, kind.shape[0], math.prod(blocks)), *kind.shape[1:]]
    for n, (block, pair) in enumerate(zip(blocks, width, strict=True), 1):
        extent = shape[n]
        if isinstance(extent, int):
            shape[n] = extent * block - sum(pair)
            if extent * block < sum(pair):
                call.fail(f"more is cut off than dimension {n} has")
    return TensorType(tuple(shape), kind.dtype)


def _to_batch(call: Result, x: Array) -> Array:
    attrs, blocks = call.attrs, call.attrs["block_shape"]
    count = len(blocks)
    edges = [(0, 0), *attrs["paddings"], *[(0, 0)] * (x.ndim - 1 - count)]
    value = number(attrs["pad_value"], call.tensor.dtype)
    framed = np.pad(x, edges, constant_values=value[()])
    split = [len(x)]
    for size, block in zip(framed.shape[1:], blocks, strict=False):
        split += [size // block, block]
    parts = framed.reshape([*split, *x.shape[count + 1 :]])
    inner, outer = [2 * n + 2 for n in range(count)], [2 * n + 1 for n in range(count)]
    rest = range(2 * count + 1, parts.ndim)
    return parts.transpose([*inner, 0, *outer, *rest]).reshape(static(call.tensor))


def _from_batch(call: Result, x: Array) -> Array:
    blocks, crops = call.attrs["block_shape"], call.attrs["crops"]
    count = len(blocks)
    parts = x.reshape([*blocks, len(x) // math.prod(blocks), *x.shape[1:]])
    order = [count]
    for n in range(count):
        order += [count + 1 + n, n]
    order += range(2 * count + 1, parts.ndim)
    sizes = [size * block for size, block in zip(x.shape[1:], blocks, strict=False)]
    whole = parts.transpose(order).reshape([parts.shape[count], *sizes, *x.shape[count + 1 :]])
    kept = [slice(first, size - last) for (first, last), size in zip(crops, sizes, strict=True)]
    return np.ascontiguousarray(whole[(slice(None), *kept)])


# -- dilate and windows ---------------------------------------------------------------------------


def _dilated(call: CallTypes) -> TensorType:
    kind, strides = call.tensor(0), call.attrs["strides"]
    if len(strides) != kind.rank or min(strides, default=1) < 1:
        call.fail(f"strides are {strides}", expected=f"{kind.rank} integers of at least 1")
    shape = tuple(
        (extent - 1) * step + 1 if isinstance(extent, int) and extent else extent
        for extent, step in zip(kind.shape, strides, strict=True)
    )
    return TensorType(shape, kind.dtype)


def _dilate(call: Result, x: Array) -> Array:
    made = np.full(static(call.tensor), number(call.attrs["dilation_value"], call.tensor.dtype))
    made[tuple(slice(None, None, step) for step in call.attrs["strides"])] = x
    return made


def _windows_type(call: CallTypes) -> TensorType:
    kind, attrs = call.tensor(0), call.attrs
    axis = axis_of(call, attrs["axis"], kind.rank)
    window, strides = attrs["window_shape"], attrs["strides"]
    if not len(window) == len(strides) == kind.rank - axis or 0 in (*window, *strides):
        call.fail(
            f"window_shape {window}, strides {strides}",
            expected=f"{kind.rank - axis} positive numbers each",
        )
    counts: list[Dimension] = []
    for n, (size, extent, step) in enumerate(zip(window, kind.shape[axis:], strides, strict=True)):
        if isinstance(extent, int) and extent < size:
            call.fail(f"dimension {axis + n} has {extent} elements, a window {size}")
        counts.append((extent - size) // step + 1 if isinstance(extent, int) else ANY)
    return TensorType((*kind.shape[:axis], *counts, *window), kind.dtype)


def _windows(call: Result, x: Array) -> Array:
    axis = call.attrs["axis"] % x.ndim
    view = np.lib.stride_tricks.sliding_window_view(
        x, call.attrs["window_shape"], tuple(range(axis, x.ndim))
    )
    steps = [slice(None, None, step) for step in call.attrs["strides"]]
    return view[(*[slice(None)] * axis, *steps)].copy()


def _define_windows(call: Result, x: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    return rearranging.sliding_window(
        x, attrs["axis"] % x.ndim, attrs["window_shape"], attrs["strides"]
    )


# -- the table ------------------------------------------------------------------------------------

_BLOCK = Attribute("block_size", positive, doc="height and width of a block [pixel]")
_LAYOUT = Attribute("layout", layout, "NCHW", "layout of the images")
_BLOCKS = Attribute("block_shape", lengths, doc="extents of a block, for the spatial dimensions")

TABLE = (
    GraphOperator(
        "layout_transform", ("data",), _transform_type, _transform, Pattern.INJECTIVE,
        lambda call, x: rearranging.layout_transform(
            x, call.attrs["src_layout"], call.attrs["dst_layout"]),
        (Attribute("src_layout", layout, doc="how the data is stored"),
         Attribute("dst_layout", layout, doc="how the result is stored")),
        "The same tensor in another layout.",
    ),
    GraphOperator(
        "nn.depth_to_space", ("data",), _depth_type, _depth_to_space, Pattern.INJECTIVE,
        _define_depth,
        (_BLOCK, _LAYOUT, Attribute("mode", one_of("DCR", "CRD"), "DCR", "the place in a block is "
                                    "the outer part of a channel, or the inner one")),
        "Move channels into blocks of pixels.", _image_layouts,
    ),
    GraphOperator(
        "nn.space_to_depth", ("data",), _space_type, _space_to_depth, Pattern.INJECTIVE,
        lambda call, x: rearranging.space_to_depth(
            x, call.attrs["block_size"], layout_of(call.attrs["layout"])),
        (_BLOCK, _LAYOUT), "Move blocks of pixels into channels.", _image_layouts,
    ),
    GraphOperator(
        "nn.space_to_batch_nd", ("data",), _to_batch_type, _to_batch, Pattern.INJECTIVE,
        lambda call, x: rearranging.space_to_batch(
            x, call.attrs["block_shape"], call.attrs["paddings"], call.attrs["pad_value"]),
        (_BLOCKS, Attribute("paddings", pairs, doc="elements before and after them"),
         Attribute("pad_value", finite, 0.0, "value of these elements")),
        "Move blocks of the dimensions behind the first into the first.",
    ),
    GraphOperator(
        "nn.batch_to_space_nd", ("data",), _from_batch_type, _from_batch, Pattern.INJECTIVE,
        lambda call, x: rearranging.batch_to_space(
            x, call.attrs["block_shape"], call.attrs["crops"]),
        (_BLOCKS, Attribute("crops", pairs, doc="elements cut off before and after them")),
        "The inverse of `nn.space_to_batch_nd`.",
    ),
    GraphOperator(
        "nn.dilate", ("data",), _dilated, _dilate, Pattern.INJECTIVE,
        lambda call, x: rearranging.dilate(
            x, call.attrs["strides"], call.attrs["dilation_value"]),
        (Attribute("strides", lengths, doc="distance of neighbours, for each dimension"),
         Attribute("dilation_value", finite, 0.0, "what stands between them")),
        "Insert elements between neighbours.",
    ),
    GraphOperator(
        "sliding_window", ("data",), _windows_type, _windows, Pattern.INJECTIVE, _define_windows,
        (Attribute("axis", integer, doc="the first dimension that windows slide over"),
         Attribute("window_shape", lengths, doc="extents of a window"),
         Attribute("strides", lengths, doc="distance of windows")),
        "All windows over the last dimensions, each as new last dimensions.",
    ),
)  # fmt: skip
"""The operators of this module."""
