"""Define the direct convolution for GPUs: a padded image, weights for each group, and sums.

=================  =============================================================================
``conv2d.image``   the padded image, ``(n, c, y, x)`` in any layout of the data
``conv2d.filter``  the packed weights as ``(g, c, p, q, o)``, o in a group of channels
``conv2d.sums``    ``(n, g, o, y, x)``
``result``         the epilogue of the sums
=================  =============================================================================
"""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.direct import NAME, packed_shape, weight_of
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.gpu.definition import refuse_stored
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.widening import centred, converted
from dlcompiler.space import Workload
from dlcompiler.te import Tensor


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return data, the packed weights, the operands of the epilogue, and the result."""
    refuse_stored(workload)
    shape, layout, block = shape_of(workload), Layout(workload["layout"]), workload["block"]
    data = te.placeholder(layout.shape(shape.image), shape.dtype, "data")
    weight = te.placeholder(packed_shape(shape, block), shape.dtype, "weight")
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    operands = {
        name: te.placeholder(
            layout.shape(shape.result) if name == "residual" else extents, shape.sums_dtype, name
        )
        for name, extents in epilogue.operands(shape.result).items()
    }
    sums = _sums(shape, _image(shape, layout, data), _filter(shape, block, weight))
    per_group = max(shape.o // shape.groups, 1)

    def element(*indices: Any) -> Any:
        n, o, y, x = layout.element(*indices)
        group, own = (o // per_group, o % per_group) if shape.groups > 1 else (0, o)
        value = epilogue.element(sums[n, group, own, y, x], indices, operands, channel=o)
        return converted(value, shape.result_dtype)

    tag = f"{NAME}:{layout.name}:{shape.groups}"
    result = te.compute(layout.shape(shape.result), element, name="result", tag=tag)
    return data, weight, *operands.values(), result


def _image(shape: Shape, layout: Layout, data: Tensor) -> Tensor:
    """Define the padded image, in the dtype of the sums."""
    rows, columns = shape.rows, shape.columns

    def element(n: Any, c: Any, y: Any, x: Any) -> Any:
        row, column = y - rows.before, x - columns.before
        place = layout.place(n, c, row, column)
        value = centred(data[place], shape.sums_dtype, shape.zero_point)
        inside = [*shapes.inside(rows, row), *shapes.inside(columns, column)]
        zero = te.const(0, shape.sums_dtype)
        return te.if_then_else(te.all(*inside), value, zero) if inside else value

    made: Tensor = tensor((shape.n, shape.c, rows.span, columns.span), element, "conv2d.image")
    return made


def _filter(shape: Shape, block: int, weight: Tensor) -> Tensor:
    """Define the weights in the dtype of the sums; the last block of a group is whole."""
    blocks = -(-(shape.o // shape.groups) // block)

    def element(g: Any, c: Any, p: Any, q: Any, o: Any) -> Any:
        return weight_of(shape, weight, g * blocks + o // block, c, p, q, o % block)

    extents = (shape.groups, *shape.weight[1:], blocks * block)
    made: Tensor = tensor(extents, element, "conv2d.filter")
    return made


def _sums(shape: Shape, image: Tensor, filters: Tensor) -> Tensor:
    rows, columns, channels = shape.rows, shape.columns, shape.weight[1]
    c, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip(shape.weight[1:], ("c", "p", "q"), strict=True)
    )

    def element(n: Any, g: Any, o: Any, y: Any, x: Any) -> Any:
        row, column = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
        first = g * channels if shape.groups > 1 else 0
        return te.sum(image[n, first + c, row, column] * filters[g, c, p, q, o], axis=[c, p, q])

    extents = (shape.n, shape.groups, filters.static_shape[-1], rows.out, columns.out)
    made: Tensor = tensor(extents, element, "conv2d.sums")
    return made
