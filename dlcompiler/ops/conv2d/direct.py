"""The direct convolution: the definition, with output channels in the lanes of vectors.

A register tile is a few pixels times one to four vectors of output channels. Each step of the
reduction loads these contiguous vectors of weights, and one element of the image for each pixel.
Strides, dilations and narrow images therefore cost nothing. In NCHW the sums are transposed when
they are copied into the result.

The definition has up to two stages before the result: ``conv2d.image``, the padded image in the
dtype of the sums, where windows reach beyond the edges or the dtypes differ, and ``conv2d.sums``.
Both are defined some rows larger than needed, so that all blocks of rows have full size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device, given_weight
from dlcompiler.ops.conv2d import fours, shapes
from dlcompiler.ops.conv2d.direct_schedule import (
    EXTRA_ROWS,
    default_config,
    estimate,
    schedule,
    space,
)
from dlcompiler.ops.conv2d.layouts import Layout, layout_of, stored
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.packing import panels
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.widening import DTYPES, centred, converted, zero_point_of
from dlcompiler.ops.widening import stored as stored_in
from dlcompiler.schedule import Schedule
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

NAME = "conv2d_direct"
BLOCKS = (4, 8, 16, 24, 32)


def workload(
    *,
    block: int = 0,
    layout: str = "NCHW",
    weight_dtype: str = "",
    zero_point: int = 0,
    **params: Any,
) -> Workload:
    """Return the workload of a direct convolution.

    Parameters
    ----------
    block : int
        Output channels that are computed together, and lie side by side in the packed weights; by
        default 16, or fewer where a group has fewer.
    layout : {"NCHW", "NHWC", "NCHW8c", "NCHW16c"}
        Of the images and the result.
    weight_dtype : {"", "float16", "bfloat16"}
        Dtype of the weights alone, where images are of float32: weights take half the memory, and
        are converted as they are read; "": that of the images.
    zero_point : int
        What images of int8 hold in place of 0: see `dlcompiler.ops.widening.zero_point_of`.
    **params
        See `shapes.workload`.
    """
    found = shapes.workload(NAME, **params, allowed=DTYPES)
    c, o, groups = found["c"], found["o"], found["groups"]
    channels = layout_of(NAME, layout, c // groups, o // groups).channels
    if block == 0:
        block = max(_default_block(o // groups), channels)
    if block not in BLOCKS or (channels and block % channels):
        raise shapes.refused(NAME, "block", block, ", ".join(map(str, BLOCKS)))
    stored = stored_in(NAME, found["dtype"], weight_dtype)
    moved = zero_point_of(NAME, zero_point, found["dtype"])
    return Workload.of(NAME, **found.as_dict(), layout=layout, block=block, **stored, **moved)


def _default_block(channels: int) -> int:
    """Return the smallest block that holds all channels, at most 16."""
    return next((block for block in BLOCKS if channels <= block), 16) if channels < 16 else 16


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return data, the packed weights, the operands of the epilogue, and the result."""
    return _defined(workload, is_for_cpu=False)


def define_for_cpu(workload: Workload) -> tuple[Tensor, ...]:
    """Return what `define` returns; int8 is computed through the stages of `fours`."""
    return _defined(workload, is_for_cpu=True)


def _defined(workload: Workload, *, is_for_cpu: bool) -> tuple[Tensor, ...]:
    shape, layout, block = shape_of(workload), Layout(workload["layout"]), workload["block"]
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    data = te.placeholder(layout.shape(shape.image), shape.dtype, "data")
    kind = shapes.weight_dtype_of(workload)
    weight = te.placeholder(packed_shape(shape, block), kind, "weight")
    operands = {
        name: te.placeholder(
            layout.shape(shape.result) if name == "residual" else extents, shape.sums_dtype, name
        )
        for name, extents in epilogue.operands(shape.result).items()
    }
    offsets = None
    if is_for_cpu and fours.goes_by_fours(shape, block):
        sums, offsets = fours.define_sums(shape, layout, data, weight, _tall(shape))
    else:
        sums = _sums(shape, layout, data, weight)
    per_group = max(shape.o // shape.groups, 1)
    blocks = -(-per_group // block)

    def element(*indices: Any) -> Any:
        n, o, y, x = layout.element(*indices)
        group, rest = (o // per_group, o % per_group) if shape.groups > 1 else (0, o)
        place = group * blocks + rest // block, rest % block
        value = sums[n, place[0], y, x, place[1]]
        value = value if offsets is None else value - offsets[place]
        value = epilogue.element(value, indices, operands, channel=o)
        return converted(value, shape.result_dtype)

    tag = f"{NAME}:{layout.name}:{shape.groups}"
    result = te.compute(layout.shape(shape.result), element, name="result", tag=tag)
    return data, weight, *operands.values(), result


def packed_shape(shape: Shape, block: int) -> tuple[int, ...]:
    """Return the shape of packed weights: ``(blocks, c / groups, kh, kw, block)``.

    Those of int8 may have another one: `fours.packed_shape`.
    """
    if fours.goes_by_fours(shape, block):
        return fours.packed_shape(shape, block)
    blocks = -(-(shape.o // shape.groups) // block)
    return shape.groups * blocks, *shape.weight[1:], block


def weight_of(shape: Shape, weight: Tensor, b: Any, c: Any, p: Any, q: Any, v: Any) -> Any:
    """Return an element of packed weights in the dtype of the sums."""
    is_by_fours = weight.ndim > len(shape.weight) + 1
    place = (b, c // 4, p, q, v, c % 4) if is_by_fours else (b, c, p, q, v)
    return converted(weight[place], shape.sums_dtype)


def _tall(shape: Shape) -> int:
    return shape.rows.out + EXTRA_ROWS if shape.rows.out else 0


def _sums(shape: Shape, layout: Layout, data: Tensor, weight: Tensor) -> Tensor:
    rows, columns = shape.rows, shape.columns
    tall = _tall(shape)
    image = _copied(shape, layout, data, tall) if shape.is_copied else data
    channels = shape.c // shape.groups
    blocks = max(weight.static_shape[0] // shape.groups, 1)
    c, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip(shape.weight[1:], ("c", "p", "q"), strict=True)
    )

    def element(n: Any, b: Any, y: Any, x: Any, v: Any) -> Any:
        first = (b // blocks) * channels if shape.groups > 1 else 0
        # Rows beyond the last are computed, but not used. Without a copy, they read the last row.
        last = te.minimum(y, max(rows.out - 1, 0))
        row = y * rows.stride if shape.is_copied else last * rows.stride - rows.before
        column = x * columns.stride - (0 if shape.is_copied else columns.before)
        place = layout.place(n, first + c, row + p * rows.dilation, column + q * columns.dilation)
        return te.sum(image[place] * weight_of(shape, weight, b, c, p, q, v), axis=[c, p, q])

    extents = (shape.n, weight.static_shape[0], tall, columns.out, weight.static_shape[4])
    sums: Tensor = te.compute(extents, element, name="conv2d.sums")
    return sums


def _copied(shape: Shape, layout: Layout, data: Tensor, tall: int) -> Tensor:
    rows, columns = shape.rows, shape.columns
    height = (tall - 1) * rows.stride + rows.reach if tall else 0
    extents = layout.shape((shape.n, shape.c, height, columns.span))

    def element(*indices: Any) -> Any:
        n, c, y, x = layout.element(*indices)
        place = layout.place(n, c, y - rows.before, x - columns.before)
        value: Any = centred(data[place], shape.sums_dtype, shape.zero_point)
        # Nested choices: the row is tested once per row, the columns become constant masks.
        for conditions in (
            shapes.inside(columns, x - columns.before),
            shapes.inside(rows, y - rows.before, height - rows.before),
        ):
            if conditions:
                value = te.if_then_else(te.all(*conditions), value, te.const(0, shape.sums_dtype))
        return value

    image: Tensor = te.compute(extents, element, name="conv2d.image")
    return image


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in the kernel's layouts, the expected result, and its bound."""
    return stored(shapes.reference(workload, seed), workload, prepack)


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with weights (o, c / groups, kh, kw) as the kernel reads them."""
    shape = shape_of(workload)
    given = given_weight(workload, arrays, shape.weight)
    weight = packed_weight(shape, workload["block"], given)
    return {**arrays, "weight": weight}


def packed_weight(shape: Shape, block: int, weight: Array) -> Array:
    """Pack weights (o, c / groups, kh, kw) into the shape of `packed_shape`."""
    if fours.goes_by_fours(shape, block):
        return fours.packed_weight(shape, block, weight)
    per_group = shape.o // shape.groups
    blocks = -(-per_group // block)
    grouped = weight.reshape(shape.groups, per_group, *shape.weight[1:])
    missing = blocks * block - per_group
    whole = np.pad(grouped, [(0, 0), (0, missing), (0, 0), (0, 0), (0, 0)])
    split = whole.reshape(shape.groups * blocks, block, *shape.weight[1:])
    return np.ascontiguousarray(split.transpose(0, 2, 3, 4, 1))


def packing(workload: Workload, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
    """Return the kernel that packs weights as `prepack` does."""
    shape, block = shape_of(workload), workload["block"]
    if fours.goes_by_fours(shape, block):
        return fours.packing_kernel(shape, block, target)
    kind = shapes.weight_dtype_of(workload)
    return panels(shape.weight, shape.groups, block, kind, target)


CPU = DeviceSchedule(space, default_config, schedule, packing, estimate, define_for_cpu)
GPU = "dlcompiler.ops.gpu.conv2d_direct:CONV2D_DIRECT"
CONV2D_DIRECT = Operator(
    NAME, workload, define, reference, by_device({"cpu": CPU, "gpu": GPU}), prepack
)
