"""Operators that make, shape, cut and join tensors."""

from __future__ import annotations

import numpy as np

from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.frontends.tflite.node import Converter, TfliteNode
from dlcompiler.graph.ir import Expr


def _reshape(node: TfliteNode) -> Expr:
    """Return the data in a shape that is an operand, or in older files an option."""
    if node.optional(1) is not None:
        shape = node.integers(1, "the shape")
    else:
        shape = [int(node.options.NewShape(n)) for n in range(node.option("NewShapeLength"))]
    return node.call("reshape", node.input(0), newshape=tuple(shape), allowzero=0 in shape)


def _squeeze(node: TfliteNode) -> Expr:
    x = node.input(0)
    axes = [int(node.options.SqueezeDims(n)) for n in range(node.option("SqueezeDimsLength"))]
    return node.call("squeeze", x, axis=tuple(axes) or None)


def _expand_dims(node: TfliteNode) -> Expr:
    axis = node.integers(1, "the axis")[0]
    return node.call("expand_dims", node.input(0), axis=axis, num_newaxis=1)


def _transpose(node: TfliteNode) -> Expr:
    return node.call("transpose", node.input(0), axes=tuple(node.integers(1, "the order")))


def _concatenation(node: TfliteNode) -> Expr:
    values = [node.input(n) for n in range(len(node.inputs))]
    rank = node.rank(values[0])
    axis = int(node.option("Axis")) % max(rank, 1)
    return node.activated(node.call("concatenate", node.tuple(values), axis=axis))


def _split(node: TfliteNode) -> list[Expr]:
    count = len(node.results)
    parts = node.call("split", node.input(1), indices_or_sections=count,
                      axis=node.integers(0, "the axis")[0])  # fmt: skip
    return [parts[n] for n in range(count)]


def _split_v(node: TfliteNode) -> list[Expr]:
    x, sizes, axis = node.input(0), node.integers(1, "the sizes"), node.integers(2, "the axis")[0]
    if -1 in sizes:  # one that takes the rest
        rest = node.shape(x)[axis % max(node.rank(x), 1)] - sum(n for n in sizes if n >= 0)
        sizes = [rest if n < 0 else n for n in sizes]
    ends = [int(n) for n in np.cumsum(sizes)]
    if len(ends) == 1:
        return [node.call("copy", x)]
    parts = node.call("split", x, indices_or_sections=tuple(ends[:-1]), axis=axis)
    return [parts[n] for n in range(len(ends))]


def _pack(node: TfliteNode) -> Expr:
    values = [node.input(n) for n in range(len(node.inputs))]
    axis = int(node.option("Axis")) % (node.rank(values[0]) + 1)
    return node.call("stack", node.tuple(values), axis=axis)


def _unpack(node: TfliteNode) -> list[Expr]:
    x = node.input(0)
    shape = node.shape(x)
    axis = int(node.option("Axis")) % max(len(shape), 1)
    if len(node.results) != shape[axis]:
        node.fail("it has another number of results than elements", got=str(len(node.results)))
    return [
        node.reshape(
            node.call("strided_slice", x, begin=(n,), end=(n + 1,), axes=(axis,)),
            (*shape[:axis], *shape[axis + 1 :]),
        )
        for n in range(shape[axis])
    ]


def _slice(node: TfliteNode) -> Expr:
    x = node.input(0)
    begin, size = node.integers(1, "its begins"), node.integers(2, "its sizes")
    shape = node.shape(x)
    if not len(begin) == len(size) == len(shape):
        node.fail("it has other numbers of bounds than dimensions", got=f"{begin}, {size}")
    end = [b + s if s >= 0 else n for b, s, n in zip(begin, size, shape, strict=True)]
    if any(not 0 <= b <= e <= n for b, e, n in zip(begin, end, shape, strict=True)):
        node.fail("its bounds are outside of the data", got=f"{begin}, {size}")
    return node.call("strided_slice", x, begin=tuple(begin), end=tuple(end))


def _strided_slice(node: TfliteNode) -> Expr:
    """Return a part as Python cuts lists; bits of masks leave a bound out, or drop a dimension."""
    x = node.input(0)
    begin, end, steps = (node.integers(n, "its bounds") for n in (1, 2, 3))
    shape = node.shape(x)
    if node.option("EllipsisMask") or node.option("NewAxisMask"):
        node.fail("its bounds have an ellipsis or new axes")
    if not len(begin) == len(end) == len(steps) <= len(shape) or 0 in steps:
        node.fail("it has other numbers of bounds than dimensions, or a step of 0")
    shrink = int(node.option("ShrinkAxisMask"))
    bounds = []
    for n, (a, b, step) in enumerate(zip(begin, end, steps, strict=True)):
        if shrink >> n & 1:
            first = a % shape[n] if shape[n] else 0
            bounds.append(slice(first, first + 1))
            continue
        bounds.append(slice(
            None if int(node.option("BeginMask")) >> n & 1 else a,
            None if int(node.option("EndMask")) >> n & 1 else b, step,
        ))  # fmt: skip
    x = cut(node, x, bounds)
    kept = [extent for n, extent in enumerate(node.shape(x)) if not shrink >> n & 1]
    return node.reshape(x, kept)


def _width(node: TfliteNode) -> tuple[tuple[int, int], ...]:
    found = node.constant(1, "the pads")
    if found.shape != (node.rank(node.input(0)), 2) or (found < 0).any():
        node.fail("its pads do not fit the data", got=repr(found.tolist())[:100])
    return tuple((int(a), int(b)) for a, b in found)


def _pad(node: TfliteNode) -> Expr:
    x = node.input(0)
    value = node.scalar(0, x) if node.optional(2) is None else node.reshape(node.input(2), ())
    return node.call("nn.pad", x, value, pad_width=_width(node))


def _mirror_pad(node: TfliteNode) -> Expr:
    mode = ("REFLECT", "SYMMETRIC")[int(node.option("Mode"))]
    return node.call("nn.mirror_pad", node.input(0), pad_width=_width(node), mode=mode)


def _gather(node: TfliteNode) -> Expr:
    x = node.input(0)
    if node.option("BatchDims"):
        node.fail("it has batches of indices")
    axis = int(node.option("Axis")) % max(node.rank(x), 1)
    return node.call("take", x, node.input(1), axis=axis)


def _tile(node: TfliteNode) -> Expr:
    return node.call("tile", node.input(0), reps=tuple(node.integers(1, "the repeats")))


def _broadcast_to(node: TfliteNode) -> Expr:
    return node.call("broadcast_to", node.input(0), shape=tuple(node.integers(1, "the shape")))


def _reverse(node: TfliteNode) -> Expr:
    x = node.input(0)
    for axis in node.integers(1, "the axes"):
        x = node.call("reverse", x, axis=axis % max(node.rank(x), 1))
    return x


def _shape(node: TfliteNode) -> Expr:
    return constant_of(np.asarray(node.shape(node.input(0))), node.out_dtype)


def _fill(node: TfliteNode) -> Expr:
    value, shape = node.reshape(node.input(1), ()), node.integers(0, "the shape")
    return node.call("full", value, shape=tuple(shape), dtype=node.out_dtype)


def _like(name: str) -> Converter:
    return lambda node: node.call(name, node.input(0))


TABLE: dict[str, Converter] = {
    "RESHAPE": _reshape, "SQUEEZE": _squeeze, "EXPAND_DIMS": _expand_dims, "TRANSPOSE": _transpose,
    "CONCATENATION": _concatenation, "SPLIT": _split, "SPLIT_V": _split_v, "PACK": _pack,
    "UNPACK": _unpack, "SLICE": _slice, "STRIDED_SLICE": _strided_slice, "PAD": _pad,
    "PADV2": _pad, "MIRROR_PAD": _mirror_pad, "GATHER": _gather, "TILE": _tile,
    "BROADCAST_TO": _broadcast_to, "REVERSE_V2": _reverse, "SHAPE": _shape, "FILL": _fill,
    "ZEROS_LIKE": _like("zeros_like"),
}  # fmt: skip
"""The converters of this module."""
