"""The convolution as a matrix product, with pixels in the lanes of vectors; images in NCHW.

``sums[o, f] = sum over k of weight[o, k] * columns[k, f]``, where f counts the pixels of the result
row by row, and k the elements of the kernel. A 1x1 kernel with stride 1 reads the image itself.
Otherwise ``conv2d.columns`` copies, for each k, the elements that the pixels read (im2col), block
of rows by block of rows. Columns and sums are defined some pixels larger than needed, so that all
tiles have full size.

**Source:** K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for
document processing", IWFHR 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlcompiler import te
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device, given_weight
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.direct import packed_shape, packed_weight
from dlcompiler.ops.conv2d.gemm_schedule import (
    default_config,
    estimate,
    extra_pixels,
    schedule,
    space,
)
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.packing import panels
from dlcompiler.ops.rounding import Array
from dlcompiler.schedule import Schedule
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

NAME = "conv2d_gemm"
BLOCKS = (1, 2, 3, 4, 5, 6, 8)


def workload(*, block: int = 0, **params: Any) -> Workload:
    """Return the workload of a convolution as a matrix product.

    Parameters
    ----------
    block : int
        Output channels that are computed together, and lie side by side in the packed weights; by
        default 4, or fewer where a group has fewer.
    **params
        See `shapes.workload`.
    """
    found = shapes.workload(NAME, **params)
    block = block or max(min(4, found["o"] // found["groups"]), 1)
    if block not in BLOCKS:
        raise shapes.refused(NAME, "block", block, ", ".join(map(str, BLOCKS)))
    return Workload.of(NAME, **found.as_dict(), block=block)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return data, the packed weights, the operands of the epilogue, and the result."""
    shape, block = shape_of(workload), workload["block"]
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(packed_shape(shape, block), shape.dtype, "weight")
    operands = epilogue.placeholders(shape.result, shape.dtype)
    sums = _sums(shape, data, weight)
    width = max(shape.columns.out, 1)
    per_group = max(shape.o // shape.groups, 1)
    blocks = -(-per_group // block)

    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        group, rest = (o // per_group, o % per_group) if shape.groups > 1 else (0, o)
        value = sums[n, group * blocks + rest // block, rest % block, y * width + x]
        return epilogue.element(value, (n, o, y, x), operands)

    tag = f"{NAME}:{shape.groups}"
    return data, weight, *operands.values(), te.compute(shape.result, element, "result", tag=tag)


def _sums(shape: Shape, data: Tensor, weight: Tensor) -> Tensor:
    width = max(shape.columns.out, 1)
    columns = None if shape.reads_in_place else _columns(shape, data)
    channels = shape.c // shape.groups
    blocks = max(weight.static_shape[0] // shape.groups, 1)
    c, p, q = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip(shape.weight[1:], ("c", "p", "q"), strict=True)
    )

    def element(n: Any, b: Any, v: Any, f: Any) -> Any:
        channel = c + ((b // blocks) * channels if shape.groups > 1 else 0)
        read = data[n, channel, f // width, f % width] if columns is None else (
            columns[n, channel, p, q, f]
        )  # fmt: skip
        return te.sum(weight[b, c, p, q, v] * read, axis=[c, p, q])

    pixels = shape.rows.out * shape.columns.out if columns is None else columns.static_shape[4]
    extents = (shape.n, weight.static_shape[0], weight.static_shape[4], pixels)
    sums: Tensor = te.compute(extents, element, name="conv2d.sums")
    return sums


def _columns(shape: Shape, data: Tensor) -> Tensor:
    rows, columns = shape.rows, shape.columns
    width = max(columns.out, 1)
    pixels = rows.out * columns.out + extra_pixels(shape) if rows.out * columns.out else 0
    is_row = rows.out == 1
    ends: tuple[int | None, int | None]
    if is_row:  # its columns go on beyond the last pixel
        ends = None, (pixels - 1) * columns.stride + columns.reach - columns.before
    else:  # rows of the image follow, and then zeros
        ends = (pixels // width) * rows.stride + rows.reach - rows.before, None

    def element(n: Any, c: Any, p: Any, q: Any, f: Any) -> Any:
        row, column = (0, f) if is_row else (f // width, f % width)
        y = row * rows.stride + p * rows.dilation - rows.before
        x = column * columns.stride + q * columns.dilation - columns.before
        conditions = [
            condition
            for window, index, end in zip((rows, columns), (y, x), ends, strict=True)
            for condition in shapes.inside(window, index, end)
        ]
        read = data[n, c, y, x]
        zero = te.const(0, data.dtype)
        return te.if_then_else(te.all(*conditions), read, zero) if conditions else read

    extents = (shape.n, shape.c, rows.kernel, columns.kernel, pixels)
    found: Tensor = te.compute(extents, element, name="conv2d.columns")
    return found


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs with packed weights, the expected result, and its bound."""
    found = shapes.reference(workload, seed)
    return Reference(
        prepack(workload, found.inputs), found.expected, found.bound, plain=found.inputs
    )


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with weights (o, c / groups, kh, kw) as the kernel reads them."""
    shape = shape_of(workload)
    given = given_weight(workload, arrays, shape.weight)
    weight = packed_weight(shape, workload["block"], given)
    return {**arrays, "weight": weight}


def packing(workload: Workload, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
    """Return the kernel that packs weights as `prepack` does."""
    shape = shape_of(workload)
    return panels(shape.weight, shape.groups, workload["block"], shape.dtype, target)


CPU = DeviceSchedule(space, default_config, schedule, packing, estimate)
CONV2D_GEMM = Operator(
    NAME, workload, define, reference,
    by_device({"cpu": CPU, "gpu": "dlcompiler.ops.gpu.conv2d:GPU"}), prepack,
)  # fmt: skip
