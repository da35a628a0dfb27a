"""Operators that make, shape, cut and join tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.reading import MOST_ELEMENTS, dtype_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr


def _shape(node: Node) -> Expr:
    x = node.input(0)
    kind = node.type(x)
    if not all(isinstance(n, int) for n in kind.shape):
        return node.cast(node.call("shape_of", x, dtype="int64"), "int64")
    first, last = int(node.attr("start", 0)), node.attr("end")
    found = kind.shape[first : None if last is None else int(last)]
    return constant_of(np.asarray(found, np.int64))


def _size(node: Node) -> Expr:
    return constant_of(np.asarray(math.prod(node.shape(node.input(0))), np.int64))


def _constant(node: Node) -> Expr:
    for name, dtype in (
        ("value", ""), ("value_float", "float32"), ("value_floats", "float32"),
        ("value_int", "int64"), ("value_ints", "int64"),
    ):  # fmt: skip
        if name in node.attrs:
            return constant_of(np.asarray(node.attrs[name]), dtype)
    node.fail("a constant of this kind is not known", got=", ".join(map(str, node.attrs)))


def _constant_of_shape(node: Node) -> Expr:
    shape = node.integers(0, "the shape")
    if math.prod(shape) > MOST_ELEMENTS or any(n < 0 for n in shape):
        node.fail("no tensor has such a shape", got=repr(shape))
    value = np.asarray(node.attr("value", np.zeros(1, np.float32))).reshape(())
    return node.call("full", constant_of(value), shape=tuple(shape),
                     dtype=dtypes.from_numpy(value.dtype))  # fmt: skip


def _reshape(node: Node) -> Expr:
    x = node.input(0)
    shape = node.listed("shape", 1, 5)
    if shape is None:
        node.fail("it has no shape")
    return node.call("reshape", x, newshape=tuple(shape), allowzero=bool(node.attr("allowzero", 0)))


def _flatten(node: Node) -> Expr:
    x = node.input(0)
    shape = node.shape(x)
    axis = int(node.attr("axis", 1))
    axis += len(shape) if axis < 0 else 0
    return node.call("reshape", x, newshape=(math.prod(shape[:axis]), math.prod(shape[axis:])),
                     allowzero=True)  # fmt: skip


def _squeeze(node: Node) -> Expr:
    axes = node.listed("axes", 1, 13)
    return node.call("squeeze", node.input(0), axis=None if axes is None else tuple(axes))


def _unsqueeze(node: Node) -> Expr:
    x = node.input(0)
    axes = node.listed("axes", 1, 13) or []
    rank = node.rank(x) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = node.call("expand_dims", x, axis=axis, num_newaxis=1)
    return x if axes else node.call("copy", x)


def _transpose(node: Node) -> Expr:
    order = node.attr("perm")
    return node.call("transpose", node.input(0), axes=None if order is None else tuple(order))


def _concat(node: Node) -> Expr:
    values = [node.input(i) for i in range(len(node.inputs))]
    axis = node.axis(1, node.rank(values[0]))
    return node.call("concatenate", node.tuple(values), axis=axis)


def _split(node: Node) -> list[Expr]:
    x = node.input(0)
    rank = node.rank(x)
    axis = node.axis(0, rank)
    sizes = node.listed("split", 1, 13)
    count = int(node.attr("num_outputs", len(node.outputs)))
    if sizes is None:
        extent = node.shape(x)[axis]
        size = -(-extent // count)
        sizes = [size] * (count - 1) + [extent - size * (count - 1)]
    if len(sizes) == 1:
        return [node.call("copy", x)]
    places = tuple(int(n) for n in np.cumsum(sizes)[:-1])
    parts = node.call("split", x, indices_or_sections=places, axis=axis)
    return [parts[i] for i in range(len(sizes))]


def _slice(node: Node) -> Expr:
    x = node.input(0)
    if node.version < 10:
        begin, end = list(node.attr("starts")), list(node.attr("ends"))
        axes = list(node.attr("axes", range(len(begin))))
        steps = [1] * len(begin)
    else:
        begin, end = node.integers(1, "its begins"), node.integers(2, "its ends")
        has_axes, has_steps = node.optional(3) is not None, node.optional(4) is not None
        axes = node.integers(3, "its axes") if has_axes else list(range(len(begin)))
        steps = node.integers(4, "its steps") if has_steps else [1] * len(begin)
    if not len(begin) == len(end) == len(axes) == len(steps):
        node.fail("begins, ends, axes and steps are not as many as each other")
    rank, most = node.rank(x), 2**31 - 1
    if any(not -rank <= axis < rank for axis in axes) or 0 in steps:
        node.fail("no such axis or step", got=f"axes {axes}, steps {steps}")
    if not begin:
        return node.call("copy", x)
    ends = [min(max(n, -most), most) for n in end]
    begins = [min(max(n, -most), most) for n in begin]
    return node.call("strided_slice", x, begin=tuple(begins), end=tuple(ends),
                     strides=tuple(steps), axes=tuple(axis % rank for axis in axes))  # fmt: skip


def _expand(node: Node) -> Expr:
    x, wanted = node.input(0), node.integers(1, "the shape")
    own = node.shape(x)
    rank = max(len(own), len(wanted))
    first = (1,) * (rank - len(own)) + own
    second = (1,) * (rank - len(wanted)) + tuple(wanted)
    shape = tuple(b if a == 1 else a for a, b in zip(first, second, strict=True))
    return node.call("broadcast_to", x, shape=shape)


def _tile(node: Node) -> Expr:
    return node.call("tile", node.input(0), reps=tuple(node.integers(1, "the repeats")))


def _range(node: Node) -> Expr:
    start, stop, step = (np.ravel(node.constant(i, "its bounds"))[0] for i in range(3))
    if step == 0 or math.ceil((float(stop) - float(start)) / float(step)) > MOST_ELEMENTS:
        node.fail("no such range", got=f"from {start} to {stop} by {step}")
    return constant_of(np.arange(start, stop, step, dtype=start.dtype))


def _pad(node: Node) -> Expr:
    x = node.input(0)
    rank = node.rank(x)
    pads = node.listed("pads" if node.version > 1 else "paddings", 1, 11) or []
    axes = list(range(rank))
    if node.version >= 18 and node.optional(3) is not None:
        axes = [axis % rank for axis in node.integers(3, "its axes")]
    if len(pads) != 2 * len(axes):
        node.fail("it has another number of pads than twice the axes", got=repr(pads))
    width = [(0, 0)] * rank
    for n, axis in enumerate(axes):
        width[axis] = (pads[n], pads[len(axes) + n])
    mode = str(node.attr("mode", "constant"))
    if any(n < 0 for pair in width for n in pair):
        x, width = _cropped(node, x, width)
    if mode == "wrap":
        return _wrapped(node, x, width)
    if mode not in ("constant", "reflect", "edge"):
        node.fail("no such mode", got=repr(mode))
    value = node.scalar(node.attr("value", 0.0), x)
    if node.version >= 11 and node.optional(2) is not None:
        value = node.reshape(node.input(2), ())  # type: ignore[assignment]  # an expression
    if mode == "constant":
        return node.call("nn.pad", x, value, pad_width=tuple(width))
    return node.call("nn.pad", x, pad_width=tuple(width), pad_mode=mode)


def _cropped(
    node: Node, x: Expr, width: list[tuple[int, int]]
) -> tuple[Expr, list[tuple[int, int]]]:
    """Cut off what negative pads remove; return the rest, and the pads that are left."""
    shape = node.shape(x)
    begin = [max(-a, 0) for a, _ in width]
    end = [max(n - max(-b, 0), 0) for n, (_, b) in zip(shape, width, strict=True)]
    cut = node.call("strided_slice", x, begin=tuple(begin), end=tuple(end))
    return cut, [(max(a, 0), max(b, 0)) for a, b in width]


def _wrapped(node: Node, x: Expr, width: list[tuple[int, int]]) -> Expr:
    """Pad a tensor by its other end."""
    for axis, (before, after) in enumerate(width):
        extent = node.shape(x)[axis]
        if before or after:
            places = np.arange(-before, extent + after) % max(extent, 1)
            x = node.call("take", x, constant_of(places.astype(np.int64)), axis=axis)
    return x


def _depth_to_space(node: Node) -> Expr:
    return node.call("nn.depth_to_space", node.input(0), block_size=int(node.attr("blocksize", 1)),
                     mode=str(node.attr("mode", "DCR")))  # fmt: skip


def _space_to_depth(node: Node) -> Expr:
    x, block = node.input(0), int(node.attr("blocksize", 1))
    if str(node.attr("mode", "DCR")) == "DCR":
        return node.call("nn.space_to_depth", x, block_size=block)
    n, c, h, w = node.shape(x)  # the place in a block counts fastest
    split = node.reshape(x, (n, c, h // block, block, w // block, block))
    turned = node.call("transpose", split, axes=(0, 1, 3, 5, 2, 4))
    return node.reshape(turned, (n, c * block * block, h // block, w // block))


def _trilu(node: Node) -> Expr:
    k = 0 if node.optional(1) is None else int(node.integers(1, "its diagonal")[0])
    return node.call("trilu", node.input(0), constant_of(np.asarray(k, np.int64)),
                     upper=bool(node.attr("upper", 1)))  # fmt: skip


def _eye_like(node: Node) -> Expr:
    x = node.input(0)
    rows, columns = node.shape(x)
    dtype = dtype_of(int(node.attr("dtype"))) if node.attr("dtype") else node.dtype(x)
    return constant_of(np.eye(rows, columns, int(node.attr("k", 0))), dtype)


def _reverse_sequence(node: Node) -> Expr:
    return node.call(
        "reverse_sequence", node.input(0), node.input(1),
        seq_axis=int(node.attr("time_axis", 0)), batch_axis=int(node.attr("batch_axis", 1)),
    )  # fmt: skip


def _non_zero(node: Node) -> Expr:
    found = np.nonzero(node.constant(0, "its elements"))
    return constant_of(np.asarray(found, np.int64))


def _unique(node: Node) -> list[Expr]:
    x, axis = node.constant(0, "its elements"), node.attr("axis")
    if axis is None:
        x = x.reshape(-1)
    place = node.axis(0, x.ndim)
    values, first, inverse, counts = np.unique(
        x, axis=place, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.arange(len(first)) if node.attr("sorted", 1) else np.argsort(first)
    numbers = (first[order], np.argsort(order)[inverse.reshape(-1)], counts[order])
    return [constant_of(values.take(order, place)), *(constant_of(n, "int64") for n in numbers)]


TABLE: dict[str, Callable[[Node], Any]] = {
    "Shape": _shape, "Size": _size, "Constant": _constant, "ConstantOfShape": _constant_of_shape,
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Transpose": _transpose, "Concat": _concat, "Split": _split, "Slice": _slice,
    "Expand": _expand, "Tile": _tile, "Range": _range, "Pad": _pad,
    "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth, "Trilu": _trilu,
    "EyeLike": _eye_like, "ReverseSequence": _reverse_sequence, "NonZero": _non_zero,
    "Unique": _unique,
}  # fmt: skip
"""The converters of this module."""
