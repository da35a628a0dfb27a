"""Layers that shape, cut, join and reduce tensors."""

from __future__ import annotations

import math

from dlcompiler.graph.frontends.coreml import functions, tensors
from dlcompiler.graph.frontends.coreml.node import Layer, LayerConverter
from dlcompiler.graph.frontends.coreml.operators.reductions import reduced
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.ir import Expr

_REDUCTIONS = {
    "reduceSum": "reduce_sum", "reduceMean": "reduce_mean", "reduceProd": "reduce_prod",
    "reduceMax": "reduce_max", "reduceMin": "reduce_min", "reduceL1": "reduce_l1_norm",
    "reduceL2": "reduce_l2_norm", "reduceLogSum": "reduce_log_sum",
    "reduceSumSquare": "reduce_sum_square", "reduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip
_OLD_MODES = (
    "reduce_sum", "reduce_mean", "reduce_prod", "reduce_log_sum", "reduce_sum_square",
    "reduce_l1_norm", "reduce_l2_norm", "reduce_max", "reduce_min", "argmax",
)  # fmt: skip
_OLD_AXES = ((-3, -2, -1), (-2, -1), (-3,), (-2,), (-1,))


def _reduction(node: Layer) -> Expr:
    given, x = node.params, node.input()
    axes = range(node.rank(x)) if given["reduceAll"] else node.integers("axes")
    return reduced(node, _REDUCTIONS[node.op_name], x, axes, given["keepDims"])


def _reduce(node: Layer) -> Expr:
    """Reduce images by the layer of the first versions, which keeps the dimensions."""
    given, x = node.params, node.input()
    if not (0 <= given["mode"] < len(_OLD_MODES) and 0 <= given["axis"] < len(_OLD_AXES)):
        node.fail("no such reduction", got=f"mode {given['mode']}, axis {given['axis']}")
    mode, axes = _OLD_MODES[given["mode"]], _OLD_AXES[given["axis"]]
    if mode == "argmax":
        places = node.axes(axes, node.rank(x))
        return node.cast(node.call(mode, x, axis=places, keepdims=True), "float32")
    if mode == "reduce_log_sum":
        x = node.call("log", functions.linear(node, x, 1, given["epsilon"] or 1e-6))
        mode = "reduce_sum"
    return reduced(node, mode, x, axes, True)


def _position(name: str) -> LayerConverter:
    def convert(node: Layer) -> Expr:
        x = node.input()
        axis = node.axis(node.params["axis"], node.rank(x))
        made = node.call(name, x, axis=(axis,), keepdims=not node.params["removeDim"])
        return node.cast(made, "float32")

    return convert


def _reshape(node: Layer) -> Expr:
    return tensors.reshaped(node, node.input(), node.integers("targetShape"))


def _old_reshape(node: Layer) -> Expr:
    """Reshape (steps, batch, channels, height, width) to (channels, …) or (steps, channels, …)."""
    if node.params["mode"]:
        node.fail("it moves channels to the end")
    shape = node.integers("targetShape")
    if len(shape) not in (3, 4):
        node.fail("its shape has another number of extents", got=repr(shape)[:100])
    x = node.input()
    first = (shape[0], 1) if len(shape) == 4 or node.rank(x) != 5 else node.shape(x)[:2]
    return tensors.reshaped(node, x, [*first, *shape[-3:]])


def _flatten(node: Layer) -> Expr:
    x = node.input()
    shape = node.shape(x)
    if len(shape) < 3:
        node.fail("it takes three dimensions or more", got=str(node.type(x)))
    if node.params["mode"]:
        last = len(shape) - 1
        x = node.transposed(x, (*range(last - 2), last - 1, last, last - 2))
    return node.reshape(x, (*shape[:-3], math.prod(shape[-3:]), 1, 1))


def _flatten_to_2d(node: Layer) -> Expr:
    return tensors.flattened(node, node.input(), node.params["axis"])


def _permute(node: Layer) -> Expr:
    """Permute steps, channels, height and width; the batch stays the second dimension."""
    places = node.integers("axis", range(4))
    if sorted(places) != [0, 1, 2, 3]:
        node.fail("it is no order of four dimensions", got=repr(places)[:100])
    first, *rest = ((0, 2, 3, 4)[n] for n in places)
    return tensors.permuted(node, node.input(), [first, 1, *rest])


def _transpose(node: Layer) -> Expr:
    return tensors.permuted(node, node.input(), node.integers("axes"))


def _expand_dims(node: Layer) -> Expr:
    return tensors.expanded(node, node.input(), node.integers("axes"))


def _squeeze(node: Layer) -> Expr:
    axes = [] if node.params["squeezeAll"] else node.integers("axes")
    return tensors.squeezed(node, node.input(), axes)


def _concat(node: Layer) -> Expr:
    node.input()
    return tensors.concatenated(node, node.inputs, -5 if node.params["sequenceConcat"] else -3)


def _concat_nd(node: Layer) -> Expr:
    node.input()
    return tensors.concatenated(node, node.inputs, node.params["axis"],
                                is_interleaved=node.params["interleave"])  # fmt: skip


def _stack(node: Layer) -> Expr:
    axis = node.axis(node.params["axis"], node.rank(node.input()) + 1)
    return node.call("stack", node.tuple(node.inputs), axis=axis)


def _split(node: Layer) -> list[Expr]:
    return tensors.split(node, node.input(), -3, node.count, [])


def _split_nd(node: Layer) -> list[Expr]:
    sizes = node.integers("splitSizes")
    return tensors.split(node, node.input(), node.params["axis"], node.count, sizes)


def _slice(node: Layer) -> Expr:
    """Cut channels, height or width."""
    given, x = node.params, node.input()
    if given["axis"] not in (0, 1, 2) or given["stride"] < 0:
        node.fail("no such axis or stride", got=f"{given['axis']}, {given['stride']}")
    axis = node.axis(given["axis"] - 3, node.rank(x))
    bounds = slice(given["startIndex"], given["endIndex"], given["stride"] or 1)
    return cut(node, x, [*[slice(None)] * axis, bounds])


def _slice_static(node: Layer) -> Expr:
    no = [0] * node.rank(node.input())
    masks = (node.integers(name, no) for name in ("beginMasks", "endMasks", "squeezeMasks"))
    bounds = (node.integers(name) for name in ("beginIds", "endIds", "strides"))
    return tensors.sliced(node, node.input(), tensors.Bounds(*bounds, *masks))


def _constant_pad(node: Layer) -> Expr:
    given = node.params
    if given["padToGivenOutputSizeMode"]:
        node.fail("its borders are given by the size of the result")
    pad = node.integers("padAmounts")
    return tensors.padded(node, node.input(), pad, "constant", given["value"])


def _tile(node: Layer) -> Expr:
    return node.call("tile", node.input(), reps=tuple(node.integers("reps")))


def _reverse(node: Layer) -> Expr:
    x = node.input()
    turned = node.params["reverseDim"]
    if len(turned) != node.rank(x):
        node.fail("it has another number of truth values than dimensions", got=str(len(turned)))
    for axis, is_turned in enumerate(turned):
        if is_turned:
            x = node.call("reverse", x, axis=axis)
    return x


def _fill(node: Layer) -> Expr:
    shape = node.shape(node.input()) if node.op_name == "fillLike" else (
        node.integers("targetShape")
    )  # fmt: skip
    return node.call("full", node.scalar(node.params["value"], "float32"), shape=tuple(shape),
                     dtype="float32")  # fmt: skip


def _broadcast(node: Layer) -> Expr:
    return node.broadcast(node.input(), node.integers("targetShape"))


def _gather(node: Layer) -> Expr:
    x, indices = node.input(0), node.cast(node.input(1), "int32")
    axis = node.params["axis"]
    if node.op_name == "gather":
        return tensors.taken(node, x, indices, axis)
    return node.call("gather", x, indices, axis=node.axis(axis, node.rank(x)))


TABLE: dict[str, LayerConverter] = {
    **dict.fromkeys(_REDUCTIONS, _reduction), "reduce": _reduce, "argMax": _position("argmax"),
    "argMin": _position("argmin"), "reshape": _old_reshape, "reshapeStatic": _reshape,
    "rankPreservingReshape": _reshape, "flatten": _flatten, "flattenTo2D": _flatten_to_2d,
    "permute": _permute, "transpose": _transpose, "expandDims": _expand_dims,
    "squeeze": _squeeze, "concat": _concat, "concatND": _concat_nd, "stack": _stack,
    "split": _split, "splitND": _split_nd, "slice": _slice, "sliceStatic": _slice_static,
    "constantPad": _constant_pad, "tile": _tile, "reverse": _reverse, "fillLike": _fill,
    "fillStatic": _fill, "broadcastToStatic": _broadcast, "gather": _gather,
    "gatherAlongAxis": _gather,
}  # fmt: skip
"""The converters of this module."""
