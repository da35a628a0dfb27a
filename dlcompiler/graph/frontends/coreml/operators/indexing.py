"""Operations whose indices are data."""

from __future__ import annotations

from dlcompiler.graph.frontends.coreml import tensors
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.ir import Expr

_MODES = {"update": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _indices(node: Operation) -> Expr:
    """Return the indices, as signed integers that hold the extent of any axis."""
    value = node.input("indices")
    return value if node.dtype(value) == "int64" else node.cast(value, "int32")


def _gather(node: Operation) -> Expr:
    return tensors.taken(node, node.input(), _indices(node), node.integer("axis", 0),
                         node.integer("batch_dims", 0))  # fmt: skip


def _gather_along_axis(node: Operation) -> Expr:
    x = node.input()
    return node.call("gather", x, _indices(node),
                     axis=node.axis(node.integer("axis", 0), node.rank(x)))  # fmt: skip


def _gather_nd(node: Operation) -> Expr:
    """Return elements at positions, whose indices are the last dimension."""
    indices = _indices(node)
    rank = node.rank(indices)
    moved = node.transposed(indices, (rank - 1, *range(rank - 1)))
    return node.call("gather_nd", node.input(), moved, batch_dims=node.integer("batch_dims", 0))


def _scatter_along_axis(node: Operation) -> Expr:
    x = node.input("data")
    mode = node.text("mode", "add")
    if mode not in _MODES:
        node.fail("no such mode", got=repr(mode)[:100], expected=", ".join(_MODES))
    return node.call(
        "scatter_elements", x, _indices(node), node.input("updates"),
        axis=node.axis(node.integer("axis", 0), node.rank(x)), reduction=_MODES[mode],
    )  # fmt: skip


def _one_hot(node: Operation) -> Expr:
    on, off = (
        node.scalar(node.number(name, value), node.out_dtype)
        for name, value in (("on_value", 1), ("off_value", 0))
    )
    return node.call(
        "one_hot", _indices(node), on, off, depth=node.integer("one_hot_vector_size"),
        axis=node.integer("axis", -1), dtype=node.out_dtype,
    )  # fmt: skip


TABLE: dict[str, OperationConverter] = {
    "gather": _gather, "gather_along_axis": _gather_along_axis, "gather_nd": _gather_nd,
    "scatter_along_axis": _scatter_along_axis, "one_hot": _one_hot,
}  # fmt: skip
"""The converters of this module."""
