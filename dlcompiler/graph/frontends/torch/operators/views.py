"""Operators that cut, join and rearrange tensors; most are views in PyTorch."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Constant, Expr


def _shaped(node: AtenNode) -> Expr:
    """Return the tensor in the shape that PyTorch found for it."""
    x = node.tensor("self")
    if isinstance(x, Constant):
        return Constant(x.value.reshape(node.out_shape), x.name)
    return node.reshape(x, node.out_shape)


def _permute(node: AtenNode) -> Expr:
    x = node.tensor("self")
    rank = node.rank(x)
    return node.transposed(x, [axis % max(rank, 1) for axis in node["dims"]])


def _swap(node: AtenNode) -> Expr:
    x = node.tensor("self")
    rank = node.rank(x)
    order = list(range(rank))
    first, second = ("dim0", "dim1") if "dim0" in node.given else ("axis0", "axis1")
    if rank:
        a, b = node.axis(first, rank), node.axis(second, rank)
        order[a], order[b] = order[b], order[a]
    return node.transposed(x, order)


def _t(node: AtenNode) -> Expr:
    x = node.tensor("self")
    return node.transposed(x, range(node.rank(x))[::-1])


def _expand(node: AtenNode) -> Expr:
    return node.broadcast(node.tensor("self"), node.out_shape)


def _repeat(node: AtenNode) -> Expr:
    x, repeats = node.tensor("self"), tuple(node["repeats"])
    lead = len(repeats) - node.rank(x)
    x = node.reshape(x, (*(1,) * lead, *node.shape(x)))
    return node.call("tile", x, reps=repeats) if repeats else x


def _cat(node: AtenNode) -> Expr:
    dtype, shape = node.out_dtype, node.out_shape
    values = [node.cast(x, dtype) for x in node.tensors("tensors")]
    kept = [x for x in values if node.shape(x) != (0,) or len(shape) == 1]
    if not kept:
        return values[0]
    return node.call("concatenate", node.tuple(kept), axis=node.axis("dim", len(shape)))


def _stack(node: AtenNode) -> Expr:
    values = [node.cast(x, node.out_dtype) for x in node.tensors("tensors")]
    return node.call("stack", node.tuple(values), axis=node.axis("dim", node.rank(values[0]) + 1))


def part(node: AtenNode, x: Expr, axis: int, begin: int, end: int, step: int = 1) -> Expr:
    """Return a part of a tensor along a dimension; bounds count from the front."""
    extent = node.shape(x)[axis]
    if (begin, step) == (0, 1) and end >= extent:
        return x
    return node.call("strided_slice", x, begin=(begin,), end=(end,), strides=(step,), axes=(axis,))


def _bounds(node: AtenNode, extent: int) -> tuple[int, int]:
    """Return the bounds of a slice, as Python cuts lists."""
    begin, end, _ = slice(node["start"], node["end"], 1).indices(extent)
    return begin, max(end, begin)


def _slice(node: AtenNode) -> Expr:
    x = node.tensor("self")
    axis = node.axis("dim", node.rank(x))
    return part(node, x, axis, *_bounds(node, node.shape(x)[axis]), int(node["step"]))


def _select(node: AtenNode) -> Expr:
    x = node.tensor("self")
    shape = node.shape(x)
    axis = node.axis("dim", len(shape))
    index = int(node["index"]) % shape[axis]
    return node.reshape(part(node, x, axis, index, index + 1), node.out_shape)


def _slice_scatter(node: AtenNode) -> Expr:
    """Return the tensor with a slice replaced: what is before it, the new one, what is behind."""
    x, step = node.tensor("self"), int(node["step"])
    shape = node.shape(x)
    axis = node.axis("dim", len(shape))
    begin, end = _bounds(node, shape[axis])
    new = node.operand("src", node.out_dtype)
    wanted = (*shape[:axis], len(range(begin, end, step)), *shape[axis + 1 :])
    new = node.broadcast(new, wanted)
    if step == 1:
        return _replaced(node, x, axis, begin, new)
    places = np.arange(shape[axis])
    inside = (places >= begin) & (places < end) & ((places - begin) % step == 0)
    spread = node.call(
        "take", new, constant_of(np.where(inside, (places - begin) // step, 0)), axis=axis
    )
    mask = inside.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return node.call("where", constant_of(mask), spread, x)


def _replaced(node: AtenNode, x: Expr, axis: int, begin: int, new: Expr) -> Expr:
    extent, end = node.shape(x)[axis], begin + node.shape(new)[axis]
    if begin == end:
        return node.call("copy", x)
    parts = [
        *([part(node, x, axis, 0, begin)] if begin else []),
        new,
        *([part(node, x, axis, end, extent)] if end < extent else []),
    ]
    return node.call("concatenate", node.tuple(parts), axis=axis) if len(parts) > 1 else new


def _select_scatter(node: AtenNode) -> Expr:
    x = node.tensor("self")
    shape = node.shape(x)
    axis = node.axis("dim", len(shape))
    index = int(node["index"]) % shape[axis]
    new = node.reshape(node.operand("src", node.out_dtype), (*shape[:axis], 1, *shape[axis + 1 :]))
    return _replaced(node, x, axis, index, new)


def _split(node: AtenNode) -> list[Expr]:
    """Return the parts of a tensor, with the extents that PyTorch found."""
    x = node.tensor("self")
    axis = node.axis("dim", node.rank(x), 0)
    ends = np.cumsum([value.shape[axis] for value in node.result])
    begins = [0, *ends[:-1]]
    return [
        part(node, x, axis, int(a), int(b)) for a, b in zip(begins, ends, strict=True)
    ]  # fmt: skip


def _unbind(node: AtenNode) -> list[Expr]:
    x = node.tensor("self")
    axis = node.axis("dim", node.rank(x), 0)
    return [
        node.reshape(part(node, x, axis, n, n + 1), value.shape)
        for n, value in enumerate(node.result)
    ]


def _flip(node: AtenNode) -> Expr:
    x = node.tensor("self")
    for axis in node["dims"] if node.rank(x) else ():
        x = node.call("reverse", x, axis=axis % node.rank(x))
    return x


def _roll(node: AtenNode) -> Expr:
    x, shape = node.tensor("self"), node.out_shape
    if not node["dims"]:
        x, axes = node.reshape(x, (math.prod(shape),)), [0]
    else:
        axes = [axis % max(len(shape), 1) for axis in node["dims"]]
    for axis, shift in zip(axes, node["shifts"], strict=True):
        extent = node.shape(x)[axis] if node.rank(x) else 0
        cut = -int(shift) % extent if extent else 0
        if cut:
            halves = [part(node, x, axis, cut, extent), part(node, x, axis, 0, cut)]
            x = node.call("concatenate", node.tuple(halves), axis=axis)
    return node.reshape(x, shape)


def _diagonal(node: AtenNode) -> Expr:
    x = node.tensor("self")
    shape = node.shape(x)
    first, second = (node.axis(name, len(shape)) for name in ("dim1", "dim2"))
    offset, count = int(node["offset"]), node.out_shape[-1]
    rest = [n for n in range(len(shape)) if n not in (first, second)]
    x = node.transposed(x, [*rest, first, second])
    flat = node.reshape(x, (*(shape[n] for n in rest), shape[first] * shape[second]))
    places = np.arange(count) * (shape[second] + 1)
    places += offset if offset >= 0 else -offset * shape[second]
    return node.call("take", flat, constant_of(places.astype("int64")), axis=len(rest))


def _as_strided(node: AtenNode) -> Expr:
    """Return elements at regular distances, of a tensor that lies in memory in its order."""
    x, shape = node.tensor("self"), node.out_shape
    traced = node.meanings["self"]
    if not traced.is_contiguous() or traced.storage_offset():
        node.fail("it reads the memory of a tensor that is a view")
    places = np.full(shape, int(node["storage_offset"] or 0), "int64")
    for axis, (extent, step) in enumerate(zip(shape, node["stride"], strict=True)):
        steps = (np.arange(extent) * int(step)).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + steps
    flat = node.reshape(x, (math.prod(node.shape(x)),))
    return node.call("take", flat, constant_of(places), axis=0)


def _unfold(node: AtenNode) -> Expr:
    x = node.tensor("self")
    rank = node.rank(x)
    axis = node.axis("dimension", rank)
    size, step = int(node["size"]), int(node["step"])
    if not rank:
        return node.reshape(x, node.out_shape)
    count = node.out_shape[axis]
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows = node.call("take", x, constant_of(places.astype("int64")), axis=axis)
    order = [n for n in range(rank + 1) if n != axis + 1]
    return node.transposed(windows, [*order, axis + 1])


TABLE: dict[str, Converter] = {
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "_reshape_alias", "squeeze", "unsqueeze", "flatten",
         "unflatten"), _shaped
    ),
    "permute": _permute, "transpose": _swap, "swapaxes": _swap, "t": _t, "numpy_T": _t,
    "expand": _expand, "repeat": _repeat, "cat": _cat, "stack": _stack, "slice": _slice,
    "select": _select, "slice_scatter": _slice_scatter, "select_scatter": _select_scatter,
    "split": _split, "split_with_sizes": _split, "chunk": _split, "unbind": _unbind,
    "flip": _flip, "roll": _roll, "diagonal": _diagonal, "as_strided": _as_strided,
    "unfold": _unfold,
}  # fmt: skip
"""The converters of this module."""
