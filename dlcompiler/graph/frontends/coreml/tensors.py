"""Tensors in other shapes, their parts and borders, for operations and for layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.ir import Expr


def reshaped(node: CoremlOrigin, x: Expr, wanted: Sequence[int]) -> Expr:
    """Return a tensor in another shape.

    0 is the extent of the data, counted from the last dimension, or 1 where there is none; -1 is
    what is left.
    """
    own = node.shape(x)
    known = [
        n or (own[i - len(wanted)] if len(wanted) - i <= len(own) else 1)
        for i, n in enumerate(wanted)
    ]
    if known.count(-1) == 1:
        rest, size = math.prod(n for n in known if n != -1), math.prod(own)
        if rest <= 0 or size % rest:
            node.fail("the data do not fit its shape", got=f"{node.type(x)} as {wanted}"[:200])
        known[known.index(-1)] = size // rest
    if any(n < 0 for n in known) or math.prod(known) != math.prod(own):
        node.fail("the data do not fit its shape", got=f"{node.type(x)} as {wanted}"[:200])
    return node.reshape(x, known)


def expanded(node: CoremlOrigin, x: Expr, axes: Sequence[int]) -> Expr:
    """Insert dimensions of extent 1, at places in the result."""
    rank = node.rank(x) + len(axes)
    places = node.axes(axes, rank)
    if len(places) != len(axes):
        node.fail("its axes stand twice", got=repr(axes)[:100])
    rest = iter(node.shape(x))
    return node.reshape(x, [1 if n in places else next(rest) for n in range(rank)])


def squeezed(node: CoremlOrigin, x: Expr, axes: Sequence[int]) -> Expr:
    """Remove dimensions of extent 1: all of them, if no axes are given."""
    shape = node.shape(x)
    found = node.axes(axes, len(shape)) or [n for n, extent in enumerate(shape) if extent == 1]
    if any(shape[axis] != 1 for axis in found):
        node.fail("a dimension has another extent than 1", got=f"axes {found} of {shape}"[:200])
    return node.reshape(x, [extent for n, extent in enumerate(shape) if n not in found])


def flattened(node: CoremlOrigin, x: Expr, axis: int) -> Expr:
    """Return a matrix: the dimensions before an axis, and the others."""
    shape = node.shape(x)
    split = node.axis(axis, len(shape) + 1) if axis >= 0 else node.axis(axis, len(shape))
    return node.reshape(x, (math.prod(shape[:split]), math.prod(shape[split:])))


def permuted(node: CoremlOrigin, x: Expr, axes: Sequence[int]) -> Expr:
    """Return a tensor with its dimensions in another order."""
    rank = node.rank(x)
    found = [node.axis(axis, rank) for axis in axes]
    if sorted(found) != list(range(rank)):
        node.fail("it is no order of the dimensions", got=repr(list(axes))[:100])
    return node.transposed(x, found)


def concatenated(
    node: CoremlOrigin, values: Sequence[Expr], axis: int, *, is_interleaved: bool = False
) -> Expr:
    """Join tensors along an axis; interleaved, by turns one slice of each."""
    shape = node.shape(values[0])
    axis = node.axis(axis, len(shape))
    if not is_interleaved:
        return node.call("concatenate", node.tuple(values), axis=axis)
    stacked = node.call("stack", node.tuple(values), axis=axis + 1)
    return node.reshape(stacked, (*shape[:axis], -1, *shape[axis + 1 :]))


def split(
    node: CoremlOrigin, x: Expr, axis: int, count: int, sizes: Sequence[int]
) -> list[Expr]:  # fmt: skip
    """Cut a tensor along an axis into equal parts, or into parts of given sizes."""
    shape = node.shape(x)
    axis = node.axis(axis, len(shape))
    extent = shape[axis]
    if not sizes:
        if not 0 < count <= max(extent, 1) or extent % count:
            node.fail("its parts are not equal", got=f"{count} parts of {extent}")
        sizes = [extent // count] * count
    if any(n < 0 for n in sizes) or sum(sizes) != extent:
        node.fail("its parts do not fit the data", got=f"{list(sizes)} of {extent}"[:200])
    whole = [slice(None)] * axis
    ends = list(accumulate(sizes))
    return [
        cut(node, x, [*whole, slice(end - size, end)])
        for size, end in zip(sizes, ends, strict=True)
    ]


@dataclass(frozen=True)
class Bounds:
    """Bounds of a part, with a number for each dimension."""

    begin: Sequence[int]
    end: Sequence[int]
    steps: Sequence[int]
    begin_mask: Sequence[int]
    """Where the part begins with the data."""
    end_mask: Sequence[int]
    """Where the part ends with the data."""
    squeeze_mask: Sequence[int]
    """Where one element is taken, and the dimension is dropped."""


def sliced(node: CoremlOrigin, x: Expr, given: Bounds) -> Expr:
    """Return a part as Python cuts lists."""
    shape = node.shape(x)
    if any(len(part) != len(shape) for part in vars(given).values()) or 0 in given.steps:
        node.fail("it has other numbers of bounds than dimensions, or a step of 0",
                  got=f"{given.begin}, {given.end}, {given.steps}"[:200])  # fmt: skip
    bounds = []
    for n, (a, b, step) in enumerate(zip(given.begin, given.end, given.steps, strict=True)):
        if given.squeeze_mask[n]:
            first = 0 if given.begin_mask[n] else node.axis(a, shape[n])
            bounds.append(slice(first, first + 1))
            continue
        start, stop = None if given.begin_mask[n] else a, None if given.end_mask[n] else b
        bounds.append(slice(start, stop, step))
    made = cut(node, x, bounds)
    kept = [extent for n, extent in enumerate(node.shape(made)) if not given.squeeze_mask[n]]
    return node.reshape(made, kept)


def taken(
    node: CoremlOrigin, x: Expr, indices: Expr, axis: int, batch_dims: int = 0
) -> Expr:  # fmt: skip
    """Return slices at indices of an axis; negative indices count from its end."""
    axis = node.axis(axis, node.rank(x))
    behind = node.call("add", indices, node.scalar(node.shape(x)[axis], indices))
    is_negative = node.call("less", indices, node.scalar(0, indices))
    places = node.call("where", is_negative, behind, indices)
    return node.call("take", x, places, axis=axis, batch_dims=batch_dims)


def padded(node: CoremlOrigin, x: Expr, pad: Sequence[int], mode: str, value: float) -> Expr:
    """Add a border to the last dimensions: for each, elements before and behind."""
    rank = node.rank(x)
    if len(pad) % 2 or len(pad) > 2 * rank or min(pad, default=0) < 0:
        node.fail("its borders do not fit the data", got=f"{list(pad)} of {node.type(x)}"[:200])
    inner = list(zip(pad[::2], pad[1::2], strict=True))
    width = ((0, 0),) * (rank - len(inner)) + tuple(inner)
    match mode:
        case "constant":
            return node.call("nn.pad", x, node.scalar(value, x), pad_width=width)
        case "reflect":
            return node.call("nn.mirror_pad", x, pad_width=width, mode="REFLECT")
        case "replicate":
            return node.call("nn.pad", x, pad_width=width, pad_mode="edge")
    node.fail("no such mode", got=repr(mode)[:100], expected="constant, reflect, replicate")
