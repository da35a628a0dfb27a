"""The direct convolution of int8 by dot products of four numbers, on CPUs.

Each sum takes the products of four input channels of a group at a time (`dlcompiler.ops.fours`);
missing ones have weights that are 0. The stages before the result are:

===================  ===========================================================================
``conv2d.image``     the padded image plus 128, as uint8; four channels lie side by side
``conv2d.sums``      as of `dlcompiler.ops.conv2d.direct`
``conv2d.constant``  128 for each input channel of a group
``conv2d.offsets``   what the sums of an output channel are too large by: 128 times the sum of its
                     weights, since the padding is 128, too
===================  ===========================================================================

With a zero point z, 128 + z takes the place of 128 in the padding and the constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.fours import LONGEST_VECTOR, ZERO, product, unsigned, zeros
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.packing import GIVEN
from dlcompiler.ops.rounding import Array
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor


def goes_by_fours(shape: Shape, block: int) -> bool:
    """Tell whether a convolution adds four products at a time on CPUs.

    Parameters
    ----------
    shape : Shape
        The convolution.
    block : int
        Output channels that are computed together: whole vectors, whatever the target.
    """
    if shape.dtype != "int8" or 0 in (*shape.weight, *shape.result):
        return False
    together = min(block, shape.o // shape.groups)
    return block % LONGEST_VECTOR == together % LONGEST_VECTOR == 0


def packed_shape(shape: Shape, block: int) -> tuple[int, ...]:
    """Return the shape of packed weights: ``(blocks, ceil(c / groups / 4), kh, kw, block, 4)``."""
    blocks = -(-(shape.o // shape.groups) // block)
    _, channels, *taps = shape.weight
    return shape.groups * blocks, -(-channels // 4), *taps, block, 4


def packed_weight(shape: Shape, block: int, weight: Array) -> Array:
    """Pack weights (o, c / groups, kh, kw) into the shape of `packed_shape`."""
    panels, groups_of_four, *taps, _, _ = packed_shape(shape, block)
    blocks, per_group = panels // shape.groups, shape.o // shape.groups
    grouped = weight.reshape(shape.groups, per_group, *shape.weight[1:])
    missing = blocks * block - per_group, 4 * groups_of_four - shape.weight[1]
    whole = np.pad(grouped, [(0, 0), (0, missing[0]), (0, missing[1]), (0, 0), (0, 0)])
    split = whole.reshape(panels, block, groups_of_four, 4, *taps)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def packing_kernel(
    shape: Shape, block: int, target: Target
) -> tuple[Schedule, tuple[Tensor, Tensor]]:
    """Return a kernel that packs weights as `packed_weight` does; see `packing.panels`."""
    rows, channels = shape.o // shape.groups, shape.weight[1]
    taps = shape.rows.kernel * shape.columns.kernel
    panels, fours, *_ = packed_shape(shape, block)
    blocks = panels // shape.groups
    given = te.placeholder((shape.groups, rows, channels * taps), "int8", "weight" + GIVEN)

    def element(b: Any, c: Any, tap: Any, v: Any, q: Any) -> Any:
        row, channel = b % blocks * block + v, 4 * c + q
        value = given[b // blocks, row, channel * taps + tap]
        is_inside = te.all(row < rows, channel < channels)
        return te.if_then_else(is_inside, value, te.const(0, "int8"))

    packed = te.compute((panels, fours, taps, block, 4), element, name="weight")
    s = create_schedule(packed)
    if target.cores > 1:
        s[packed].parallel(packed.op.axis[0])
    return s, (given, packed)


def define_sums(
    shape: Shape, layout: Layout, data: Tensor, weight: Tensor, tall: int
) -> tuple[Tensor, Tensor]:
    """Define the sums of `tall` rows, and the offsets of all output channels.

    Parameters
    ----------
    shape : Shape
        The convolution.
    layout : Layout
        Of the images.
    data, weight : Tensor
        The images, and the packed weights.
    tall : int
        Rows of the sums.

    Returns
    -------
    sums, offsets : Tensor
        Of shapes ``(n, blocks, tall, columns, block)`` and ``(blocks, block)``.
    """
    rows, columns = shape.rows, shape.columns
    image = _image(shape, layout, data, (tall - 1) * rows.stride + rows.reach)
    panels, fours, *taps, block, _ = weight.static_shape
    constant = zeros(fours, "conv2d.constant", shape.zero_point)
    per_group = panels // shape.groups

    def dots(b: Any, v: Any, factor: Any) -> Any:
        c, p, q, j = (over(n, k) for n, k in zip((fours, *taps, 4), "cpqj", strict=True))
        first = b // per_group * fours if shape.groups > 1 else 0
        dot = product(factor(first, c, p, q, j), weight[b, c, p, q, v, j])
        return te.sum(dot, axis=[c, p, q, j])

    def total(n: Any, b: Any, y: Any, x: Any, v: Any) -> Any:
        def factor(first: Any, c: Any, p: Any, q: Any, j: Any) -> Any:
            place = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
            return image[(*_of_fours(layout, n, first + c, *place), j)]

        return dots(b, v, factor)

    def offset(b: Any, v: Any) -> Any:
        return dots(b, v, lambda first, c, p, q, j: constant[c, j])

    extents = (shape.n, panels, tall, columns.out, block)
    sums = tensor(extents, total, "conv2d.sums")
    return sums, tensor((panels, block), offset, "conv2d.offsets")


def _of_fours(layout: Layout, n: Any, c: Any, y: Any, x: Any) -> tuple[Any, ...]:
    """Return the order of the dimensions of the image stage, without the innermost one."""
    return (n, y, x, c) if layout.name == "NHWC" else (n, c, y, x)


def _image(shape: Shape, layout: Layout, data: Tensor, height: int) -> Tensor:
    rows, columns, channels = shape.rows, shape.columns, shape.weight[1]
    fours = -(-channels // 4)
    zero = te.const(ZERO + shape.zero_point, "uint8")

    def element(*indices: Any) -> Any:
        *places, j = indices
        n, c, y, x = places if layout.name != "NHWC" else (places[i] for i in (0, 3, 1, 2))
        own = 4 * (c % fours) + j
        channel = c // fours * channels + own if shape.groups > 1 else own
        row, column = y - rows.before, x - columns.before
        value = unsigned(data[layout.place(n, channel, row, column)])
        # Nested choices: the row is tested once per row, the columns become constant masks.
        for conditions in (
            [own < channels] if channels % 4 else [],
            shapes.inside(columns, column),
            shapes.inside(rows, row, height - rows.before),
        ):
            if conditions:
                value = te.if_then_else(te.all(*conditions), value, zero)
        return value

    extents = _of_fours(layout, shape.n, shape.groups * fours, height, columns.span)
    return tensor((*extents, 4), element, "conv2d.image")
