"""Operations that make, shape, cut and join tensors."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.graph.frontends.coreml import tensors
from dlcompiler.graph.frontends.coreml.conversion import MOST_FOLDED
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.ir import Expr


def _reshape(node: Operation) -> Expr:
    return tensors.reshaped(node, node.input(), node.integers("shape"))


def _expand_dims(node: Operation) -> Expr:
    return tensors.expanded(node, node.input(), node.integers("axes"))


def _squeeze(node: Operation) -> Expr:
    return tensors.squeezed(node, node.input(), node.integers("axes", []))


def _flatten2d(node: Operation) -> Expr:
    return tensors.flattened(node, node.input(), node.integer("axis", 1))


def _transpose(node: Operation) -> Expr:
    return tensors.permuted(node, node.input(), node.integers("perm"))


def _concat(node: Operation) -> Expr:
    return tensors.concatenated(node, node.inputs_of("values"), node.integer("axis"),
                                is_interleaved=node.flag("interleave"))  # fmt: skip


def _stack(node: Operation) -> Expr:
    values = node.inputs_of("values")
    axis = node.axis(node.integer("axis"), node.rank(values[0]) + 1)
    return node.call("stack", node.tuple(values), axis=axis)


def _split(node: Operation) -> list[Expr]:
    count = len(node.results)
    if node.integer("num_splits", count) != count:
        node.fail("it has another number of results than parts", got=str(count))
    return tensors.split(node, node.input(), node.integer("axis"), count,
                         node.integers("split_sizes", []))  # fmt: skip


def _slice_by_index(node: Operation) -> Expr:
    x = node.input()
    rank = node.rank(x)
    no = [0] * rank
    masks = (node.integers(f"{name}_mask", no) for name in ("begin", "end", "squeeze"))
    return tensors.sliced(node, x, tensors.Bounds(
        node.integers("begin"), node.integers("end"), node.integers("stride", [1] * rank), *masks
    ))  # fmt: skip


def _slice_by_size(node: Operation) -> Expr:
    x = node.input()
    begin, size, shape = node.integers("begin"), node.integers("size"), node.shape(x)
    if not len(begin) == len(size) == len(shape):
        node.fail("it has other numbers of bounds than dimensions", got=f"{begin}, {size}"[:100])
    begin = [b + n if b < 0 else b for b, n in zip(begin, shape, strict=True)]
    end = [n if s == -1 else b + s for b, s, n in zip(begin, size, shape, strict=True)]
    if any(not 0 <= b <= e <= n for b, e, n in zip(begin, end, shape, strict=True)):
        node.fail("its bounds are outside of the data", got=f"{begin}, {size}"[:100])
    return cut(node, x, [slice(b, e) for b, e in zip(begin, end, strict=True)])


def _pad(node: Operation) -> Expr:
    mode = node.text("mode", "constant")
    value = node.number("constant_val", 0) if mode == "constant" else 0.0
    return tensors.padded(node, node.input(), node.integers("pad"), mode, value)


def _tile(node: Operation) -> Expr:
    return node.call("tile", node.input(), reps=tuple(node.integers("reps")))


def _reverse(node: Operation) -> Expr:
    x = node.input()
    for axis in node.axes(node.integers("axes", range(node.rank(x))), node.rank(x)):
        x = node.call("reverse", x, axis=axis)
    return x


def _shape(node: Operation) -> Expr:
    return constant_of(np.asarray(node.shape(node.input())), node.out_dtype)


def _fill(node: Operation) -> Expr:
    value = node.scalar(node.number("value", 0), node.out_dtype)
    return node.call("full", value, shape=tuple(node.integers("shape")), dtype=node.out_dtype)


def _fill_like(node: Operation) -> Expr:
    value = node.scalar(node.number("value", 0), node.out_dtype)
    shape = node.shape(node.input("ref_tensor"))
    return node.call("full", value, shape=shape, dtype=node.out_dtype)


def _range(node: Operation) -> Expr:
    start, end, step = (node.number(name) for name in ("start", "end", "step"))
    if not step or not math.isfinite((end - start) / step):
        node.fail("its bounds give no count", got=f"{start}, {end}, {step}")
    count = max(math.ceil((end - start) / step), 0)
    if count > MOST_FOLDED:
        node.fail("its result is too large", got=str(count))
    return constant_of(start + np.arange(count) * step, node.out_dtype)


def _band_part(node: Operation) -> Expr:
    """Keep the diagonals near the main one; -1: all of a side."""
    x, lower, upper = node.input(), node.integer("lower", -1), node.integer("upper", -1)
    for count, is_upper in ((lower, True), (upper, False)):
        if count >= 0:
            k = constant_of(np.asarray(-count if is_upper else count), "int64")
            x = node.call("trilu", x, k, upper=is_upper)
    return x


TABLE: dict[str, OperationConverter] = {
    "reshape": _reshape, "expand_dims": _expand_dims, "squeeze": _squeeze,
    "flatten2d": _flatten2d, "transpose": _transpose, "concat": _concat, "stack": _stack,
    "split": _split, "slice_by_index": _slice_by_index, "slice_by_size": _slice_by_size,
    "pad": _pad, "tile": _tile, "reverse": _reverse, "shape": _shape, "fill": _fill,
    "fill_like": _fill_like, "range_1d": _range, "band_part": _band_part,
}  # fmt: skip
"""The converters of this module."""
