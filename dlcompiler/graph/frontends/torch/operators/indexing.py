"""Operators whose indices are data: parts at positions, and updates of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.frontends.torch.operators.views import part
from dlcompiler.graph.ir import Expr


def _index_select(node: AtenNode) -> Expr:
    x, indices = node.tensor("self"), node.tensor("index")
    if not node.rank(x):
        return node.call("copy", x)
    indices = node.reshape(indices, (node.shape(indices) or (1,)))
    made = node.call("take", x, indices, axis=node.axis("dim", node.rank(x)))
    return node.reshape(made, node.out_shape)


def _cut(node: AtenNode, x: Expr, shape: Sequence[int], but: int = -1) -> Expr:
    """Return the first elements of a tensor, as many as a shape has; all along one dimension."""
    for axis, extent in enumerate(shape):
        if axis != but:
            x = part(node, x, axis, 0, extent)
    return x


def _gather(node: AtenNode) -> Expr:
    x, index = node.tensor("self"), node.tensor("index")
    if not node.rank(x):
        return node.reshape(node.call("copy", x), node.out_shape)
    axis = node.axis("dim", node.rank(x))
    if 0 in node.out_shape:  # such an index may have any number of dimensions
        return node.call("full", node.number(0, node.out_dtype), shape=node.out_shape,
                         dtype=node.out_dtype)  # fmt: skip
    if not node.rank(index):
        index = node.reshape(index, (1,))
    x = _cut(node, x, node.shape(index), axis)
    return node.reshape(node.call("gather", x, index, axis=axis), node.out_shape)


def _from_front(node: AtenNode, index: Expr, extent: int) -> Expr:
    """Return indices that count from the front; negative ones count from the end."""
    is_negative = node.call("less", index, node.scalar(0, "int64"))
    behind = node.call("add", index, node.scalar(extent, "int64"))
    return node.call("where", is_negative, behind, index)


def _chosen(node: AtenNode, what: str) -> list[tuple[int, Expr]]:
    """Return the dimensions with indices, and these."""
    found = []
    for axis, index in enumerate(node["indices"]):
        if index is None:
            continue
        if node.dtype(index) in ("bool", "uint8"):
            node.fail(f"{what} are chosen by a mask, which decides about the shape",
                      hint="torch.where(mask, a, b) keeps the shape")  # fmt: skip
        found.append((axis, node.cast(index, "int64")))
    return found


def _lead(axes: Sequence[int]) -> int:
    """Return how many dimensions stay before those of the indices, by NumPy's rule.

    They stay where the indexed dimensions were if these are neighbours; else they come first.
    """
    is_together = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    return axes[0] if is_together else 0


def _index(node: AtenNode) -> Expr:
    """Return elements or slices, as NumPy's ``x[i, :, j]``."""
    x = node.tensor("self")
    chosen = _chosen(node, "elements")
    axes = [axis for axis, _ in chosen]
    rest = [n for n in range(node.rank(x)) if n not in axes]
    first = node.transposed(x, [*axes, *rest])
    made = node.call("adv_index", node.tuple([first, *(index for _, index in chosen)]))
    rank, lead = node.rank(made) - len(rest), _lead(axes)
    order = [*range(rank, rank + lead), *range(rank), *range(rank + lead, rank + len(rest))]
    return node.transposed(made, order)


def _index_put(node: AtenNode) -> Expr:
    """Return the tensor with elements or slices replaced, or added to."""
    x, values = node.tensor("self"), node.operand("values", node.out_dtype)
    masks = [index for index in node["indices"] if index is not None]
    if len(masks) == len(node["indices"]) == 1 and node.dtype(masks[0]) == "bool":
        return _masked(node, x, masks[0], values)
    chosen = _chosen(node, "elements")
    axes, shape = [axis for axis, _ in chosen], node.shape(x)
    rest = [n for n in range(len(shape)) if n not in axes]
    common = np.broadcast_shapes(*(node.shape(index) for _, index in chosen))
    places = [
        node.broadcast(_from_front(node, index, shape[axis]), common) for axis, index in chosen
    ]
    lead, rank = _lead(axes), len(common)
    extents = [shape[n] for n in rest]
    wanted = (*extents[:lead], *common, *extents[lead:])
    values = node.broadcast(values, wanted)
    order = [*range(lead, lead + rank), *range(lead), *range(lead + rank, len(wanted))]
    made = node.call(
        "scatter_nd", node.transposed(x, [*axes, *rest]),
        node.call("stack", node.tuple(places), axis=0), node.transposed(values, order),
        mode="add" if node["accumulate"] else "update",
    )  # fmt: skip
    return node.transposed(made, [int(n) for n in np.argsort([*axes, *rest])])


def _masked(node: AtenNode, x: Expr, mask: Expr, values: Expr) -> Expr:
    """Return the tensor with one value where a mask is true."""
    if node.shape(values) not in ((), (1,)):
        node.fail("a mask chooses where several values go")
    mask = node.reshape(mask, (*node.shape(mask), *(1,) * (node.rank(x) - node.rank(mask))))
    new = node.reshape(values, ())
    if node["accumulate"]:
        new = node.call("add", x, new)
    return node.call("where", mask, new, x)


_UPDATES = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add",
            "add": "add", "multiply": "mul", None: "update"}  # fmt: skip


def _scatter(node: AtenNode) -> Expr:
    """Return the tensor with elements at indices along a dimension updated."""
    x, index = node.tensor("self"), node.tensor("index")
    mode = "sum" if node.op_name.startswith("scatter_add") else node.get("reduce")
    if mode not in _UPDATES:
        node.fail("no such update", got=repr(mode), expected=", ".join(map(str, _UPDATES)))
    shape = node.shape(index)
    if 0 in shape:
        return node.call("copy", x)
    if not node.rank(x):
        x, index, shape = node.reshape(x, (1,)), node.reshape(index, (1,)), (1,)
    source = node.get("src", node.get("value"))
    if isinstance(source, Expr):
        source = node.cast(source, node.out_dtype)
        new = _cut(node, source if node.rank(source) else node.reshape(source, (1,)), shape)
    else:
        new = node.call("full", node.number(source, node.out_dtype), shape=shape,
                        dtype=node.out_dtype)  # fmt: skip
    made = _scattered(node, x, index, new, mode)
    return node.reshape(made, node.out_shape)


def _scattered(node: AtenNode, x: Expr, index: Expr, new: Expr, mode: str | None) -> Expr:
    """Return the updated tensor; its own elements count among those that are combined, or not."""
    dtype, axis = node.out_dtype, node.axis("dim", node.rank(x))
    includes = bool(node.get("include_self", True))
    shape = node.shape(index)

    def scatter(data: Expr, updates: Expr, how: str) -> Expr:
        return node.call("scatter_elements", data, index, updates, axis=axis, reduction=how)

    def filled(value: float) -> Expr:
        return node.call("full", node.number(value, dtype), shape=shape, dtype=dtype)

    if not includes:
        x = scatter(x, filled(_neutral(mode, dtype)), "update")
    made = scatter(x, new, _UPDATES[mode])
    if mode != "mean":
        return made
    first: Expr = node.call("ones_like", x)
    if not includes:
        first = scatter(first, filled(0), "update")
    count = scatter(first, filled(1), "add")
    name = "divide" if dtypes.is_float(dtype) else "floor_divide"
    return node.call(name, made, count)


def _neutral(mode: str | None, dtype: str) -> float:
    """Return the number that changes nothing when it is combined."""
    if mode == "prod":
        return 1
    if mode not in ("amax", "amin"):
        return 0
    if dtypes.is_float(dtype):
        return -math.inf if mode == "amax" else math.inf
    return dtypes.min_value(dtype) if mode == "amax" else dtypes.max_value(dtype)


def _one_hot(node: AtenNode) -> Expr:
    depth = node.out_shape[-1]
    return node.call("one_hot", node.tensor("self"), node.scalar(1, "int64"),
                     node.scalar(0, "int64"), depth=depth, axis=-1, dtype="int64")  # fmt: skip


def _take(node: AtenNode) -> Expr:
    """Return elements of the tensor, laid out as one row."""
    x, index = node.tensor("self"), node.tensor("index")
    count = int(np.prod(node.shape(x)))
    return node.call("take", node.reshape(x, (count,)), _from_front(node, index, count), axis=0)


def _index_fill(node: AtenNode) -> Expr:
    """Return the tensor with one value at indices of a dimension."""
    x, index = node.tensor("self"), node.tensor("index")
    index = node.reshape(index, node.shape(index) or (1,))
    shape = node.shape(x)
    if not shape:
        node.fail("the tensor is a number")
    axis = node.axis("dim", len(shape))
    places = constant_of(np.arange(shape[axis]).reshape(-1, 1))
    front = _from_front(node, index, shape[axis])
    hits = node.call("any", node.call("equal", places, front), axis=(1,), keepdims=False)
    mask = node.reshape(hits, (shape[axis], *(1,) * (len(shape) - axis - 1)))
    value = node.operand("value", node.out_dtype)
    return node.call("where", mask, value, x)


TABLE: dict[str, Converter] = {
    "index_select": _index_select, "gather": _gather, "index": _index, "index_put": _index_put,
    "_unsafe_index": _index, "scatter": _scatter, "scatter_add": _scatter,
    "scatter_reduce": _scatter, "one_hot": _one_hot, "take": _take, "index_fill": _index_fill,
}  # fmt: skip
"""The converters of this module."""
