"""Operators that read at indices, and those that sort."""

from __future__ import annotations

import math

from dlcompiler.graph.frontends.mxnet.node import Converter, MxnetNode
from dlcompiler.graph.ir import Expr


def _indices(node: MxnetNode, i: int) -> Expr:
    """Return an operand with indices, which are often floats in MXNet."""
    value = node.input(i)
    return value if "int" in node.dtype(value) else node.cast(value, "int32")


def _embedding(node: MxnetNode) -> Expr:
    """Return rows of the weights; an index outside is the first or the last row."""
    weight, size = node.input(1), (node.integer("input_dim"), node.integer("output_dim"))
    node.dtype_attr(node.dtype(weight))
    if node.shape(weight) != size:
        node.fail("its weights have another shape", got=repr(node.shape(weight)),
                  expected=repr(size))  # fmt: skip
    return node.call("take", weight, _indices(node, 0), axis=0, mode="clip")


def _take(node: MxnetNode) -> Expr:
    x = node.input(0)
    mode = "wrap" if node.choice("mode", "clip", "wrap", "raise") == "wrap" else "clip"
    return node.call("take", x, _indices(node, 1), axis=node.axis(node.rank(x), 0), mode=mode)


def _pick(node: MxnetNode) -> Expr:
    """Return one element along an axis for each place."""
    x = node.input(0)
    shape, axis = node.shape(x), node.axis(node.rank(x), -1)
    keeps, mode = node.flag("keepdims"), node.choice("mode", "clip", "wrap")
    places = node.reshape(_indices(node, 1), (*shape[:axis], 1, *shape[axis + 1 :]))
    if mode == "wrap":
        places = node.call("floor_mod", places, node.scalar(shape[axis], places))
    else:
        places = node.call("clip", places, a_min=0.0, a_max=float(shape[axis] - 1))
    made = node.call("gather", x, places, axis=axis)
    return made if keeps else node.reshape(made, (*shape[:axis], *shape[axis + 1 :]) or (1,))


def _gather_nd(node: MxnetNode) -> Expr:
    return node.call("gather_nd", node.input(0), _indices(node, 1))


def _one_hot(node: MxnetNode) -> Expr:
    dtype = node.dtype_attr("float32")
    on, off = node.number("on_value", 1.0), node.number("off_value", 0.0)
    return node.call("one_hot", _indices(node, 0), node.scalar(on, dtype), node.scalar(off, dtype),
                     depth=node.integer("depth"), axis=-1, dtype=dtype)  # fmt: skip


def _sorted_data(node: MxnetNode) -> tuple[Expr, int]:
    """Return the data and the axis to sort; all elements as one row if it is ``None``."""
    x = node.input(0)
    if node.attrs.get("axis") == "None":
        node.text("axis")
        return node.reshape(x, (math.prod(node.shape(x)),)), 0
    return x, node.axis(node.rank(x), -1)


def _sort(node: MxnetNode) -> Expr:
    x, axis = _sorted_data(node)
    return node.call("sort", x, axis=axis, is_ascend=node.flag("is_ascend", True))


def _argsort(node: MxnetNode) -> Expr:
    x, axis = _sorted_data(node)
    made = node.call("argsort", x, axis=axis, is_ascend=node.flag("is_ascend", True))
    return node.cast(made, node.dtype_attr("float32"))


def _topk(node: MxnetNode) -> Expr | list[Expr]:
    x, axis = _sorted_data(node)
    kind = node.choice("ret_typ", "indices", "value", "both")
    found = node.call("topk", x, k=node.integer("k", 1), axis=axis, ret_type="both",
                      is_ascend=node.flag("is_ascend"), dtype="int32")  # fmt: skip
    values, places = found[0], node.cast(found[1], node.dtype_attr("float32"))
    return [values, places] if kind == "both" else values if kind == "value" else places


def _sequence_mask(node: MxnetNode) -> Expr:
    x, value = node.input(0), node.number("value", 0.0)
    axis = node.axis(node.rank(x), 0)
    if not node.flag("use_sequence_length"):
        return x
    return node.call("sequence_mask", x, node.cast(node.input(1), "int32"), mask_value=value,
                     axis=axis)  # fmt: skip


def _sequence_reverse(node: MxnetNode) -> Expr:
    x = node.input(0)
    if node.axis(node.rank(x), 0):
        node.fail("its steps are not the first dimension")
    if not node.flag("use_sequence_length"):
        return node.call("reverse", x, axis=0)
    return node.call("reverse_sequence", x, node.cast(node.input(1), "int32"), seq_axis=0,
                     batch_axis=1)  # fmt: skip


def _sequence_last(node: MxnetNode) -> Expr:
    x = node.input(0)
    axis, shape = node.axis(node.rank(x), 0), node.shape(x)
    if node.flag("use_sequence_length"):
        node.fail("its sequences have several lengths")
    last = shape[axis]
    part = node.call("strided_slice", x, begin=(last - 1,), end=(last,), axes=(axis,))
    return node.reshape(part, (*shape[:axis], *shape[axis + 1 :]))


TABLE: dict[str, Converter] = {
    "Embedding": _embedding, "take": _take, "pick": _pick, "gather_nd": _gather_nd,
    "one_hot": _one_hot, "sort": _sort, "argsort": _argsort, "topk": _topk,
    "SequenceMask": _sequence_mask, "SequenceReverse": _sequence_reverse,
    "SequenceLast": _sequence_last,
}  # fmt: skip
"""The converters of this module."""
