"""Sums of products of blocks with a tail: the definition that all convolutions on blocks share."""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.packed.extents import Extents, extents_of
from dlcompiler.ops.packed.tail import tail_of
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

PADDED = "padded"
"""Name of the stage with zeros around images."""


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``weight``, the tensors of the tail, and the result.

    The shapes, in which ``b``, ``co`` and ``ci`` are the extents of blocks:

    - data ``(images, channels, height, width, b, ci)``, int8
    - weight ``(filters, channels of a group, rows, columns, co, ci)``, int8
    - bias ``(filters, b, co)``, int32, equal in all rows of a block
    - residual like the result, int32
    - result ``(images, filters, rows, columns, b, co)``, int8
    """
    e, tail = extents_of(workload), tail_of(workload)
    b = e.blocks
    data = te.placeholder(
        (e.images, e.channels, e.height, e.width, b.batch, b.inputs), "int8", "data"
    )
    given = {"data": data}
    if not e.scale:
        shape = (e.filters, e.depth, *e.weights, b.outputs, b.inputs)
        given["weight"] = te.placeholder(shape, "int8", "weight")
    if tail.bias:
        given["bias"] = te.placeholder((e.filters, b.batch, b.outputs), "int32", "bias")
    if tail.residual:
        shape = (e.images, e.filters, *e.out, b.batch, b.outputs)
        given["residual"] = te.placeholder(shape, "int32", "residual")
    return *given.values(), computed(workload, **given)


def computed(
    workload: Workload,
    data: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
) -> Tensor:
    """Return the result of given tensors in blocks.

    Parameters
    ----------
    workload : Workload
        Of an operator on blocks that adds products.
    data, weight, bias, residual : Tensor
        As `define` makes them; a sum of windows has no weights.
    """
    e = extents_of(workload)
    image = padded(data, e)
    weight = identity(e) if weight is None else weight
    c, i = over(e.depth, "c"), over(e.blocks.inputs, "i")
    p, q = over(e.taps[0], "p"), over(e.taps[1], "q")

    def element(n: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        channel = c if e.groups == 1 else e.start(o) + c
        (row, above), (column, left) = _place(e, 0, y, p), _place(e, 1, x, q)
        seen = image[n, channel, row, column, r, i].astype("int32")
        factor = weight[j, i] if e.scale else weight[o, c, above, left, j, i]
        return te.sum(seen * factor.astype("int32"), axis=[c, p, q, i])

    shape = (e.images, e.filters, *e.out, e.blocks.batch, e.blocks.outputs)
    return tail_of(workload).stages(tensor(shape, element, "sums"), bias, residual)


def _place(e: Extents, dim: int, at: Any, tap: Any) -> tuple[Any, Any]:
    """Return which row of the padded image, and of the weights, a tap of a result multiplies.

    The result of a transposed convolution at row ``y = up * t + r - padding`` is a convolution of
    image row ``t`` and those before it with rows ``r, r + up, …`` of the weights.
    """
    if not e.up:
        return at * e.stride + tap, tap
    whole, left = divmod(e.padding[dim], e.up)
    first = whole + e.frame[dim][0]
    return (at + left) // e.up - tap + first, (at + left) % e.up + tap * e.up


def identity(e: Extents) -> Tensor:
    """Return one block of weights that multiplies each channel of a block by `Extents.scale`."""

    def element(j: Any, i: Any) -> Any:
        return te.if_then_else(i.equal(j), te.const(e.scale, "int8"), te.const(0, "int8"))

    return tensor((e.blocks.outputs, e.blocks.inputs), element, "identity")


def padded(data: Tensor, e: Extents) -> Tensor:
    """Return the images with zeros around them; without padding, the images."""
    (above, below), (left, right) = e.frame
    if not any((above, below, left, right)):
        return data
    n, c, height, width, b, block = data.shape

    def element(i: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        inside = te.all(
            y >= above, y < e.height + above, x >= left, x < e.width + left,
        )  # fmt: skip
        return te.if_then_else(inside, data[i, o, y - above, x - left, r, j], te.const(0, "int8"))

    shape = (n, c, height + above + below, width + left + right, b, block)
    return tensor(shape, element, PADDED)
