"""The GPU schedule of the convolution as a matrix product; images in NCHW.

``sums[o, f] = sum over k of weight[o, k] * columns[k, f]``: f counts the pixels of all images row
by row, and k the elements of the kernel. The matrix of columns is never in memory: its elements are
read from the images while a block copies a tile to shared memory, 0 where windows reach beyond the
edges (implicit im2col).

**Source:** S. Chetlur and others, "cuDNN: Efficient Primitives for Deep Learning", 2014,
arXiv:1410.0759, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.direct import packed_shape
from dlcompiler.ops.conv2d.shapes import shape_of
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.gpu.default import default_of, seconds_of
from dlcompiler.ops.gpu.definition import EXTRA, beyond, filled, padded_depth, sums_of, with_names
from dlcompiler.ops.gpu.model import Machine
from dlcompiler.ops.gpu.products import anchor_of, multiply, multiply_before
from dlcompiler.ops.gpu.space import Shape, block_of, space_of, tile_of
from dlcompiler.ops.gpu.tiles import Loops
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.widening import converted
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

NAME = "conv2d_gemm"


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return data, the packed weights, the operands of the epilogue, and the result."""
    shape, block = shape_of(workload), workload["block"]
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(packed_shape(shape, block), shape.dtype, "weight")
    operands = epilogue.placeholders(shape.result, shape.sums_dtype)
    left, right = _weights(shape, block, weight), _columns(shape, data)
    sums = sums_of(left, right, shape.sums_dtype, "conv2d.sums")
    per_group = max(shape.o // shape.groups, 1)
    height, width = shape.rows.out, shape.columns.out

    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        pixel = (n * height + y) * width + x
        place = (o // per_group, o % per_group, pixel) if shape.groups > 1 else (o, pixel)
        return converted(epilogue.element(sums[place], (n, o, y, x), operands), shape.result_dtype)

    tag = f"{NAME}:{shape.groups}"
    return data, weight, *operands.values(), te.compute(shape.result, element, "result", tag=tag)


def _weights(shape: shapes.Shape, block: int, weight: Tensor) -> Tensor:
    """Define the weights as ``(k, o)``, for each group."""
    rows, columns = shape.rows.kernel, shape.columns.kernel
    per_group, depth = shape.o // shape.groups, padded_depth(shape.terms, shape.dtype)
    blocks = -(-per_group // block)

    def element(*indices: Any) -> Any:
        *group, k, o = indices
        first = group[0] * blocks if group else 0
        lane = o % block if block > 1 else 0
        value = weight[
            first + o // block, k // (rows * columns), k // columns % rows, k % columns, lane
        ]
        return filled(
            value, [o < blocks * block, *([k < shape.terms] if depth != shape.terms else [])]
        )

    stack = (shape.groups,) if shape.groups > 1 else ()
    extents = (*stack, depth, beyond(per_group))
    made: Tensor = tensor(extents, with_names(element, len(stack), "ki"), "conv2d.left")
    return made


def _columns(shape: shapes.Shape, data: Tensor) -> Tensor:
    """Define the matrix of columns ``(k, f)``, for each group."""
    rows, columns = shape.rows, shape.columns
    height, width = max(rows.out, 1), max(columns.out, 1)
    pixels, depth = shape.n * rows.out * columns.out, padded_depth(shape.terms, shape.dtype)
    channels = shape.c // shape.groups

    def element(*indices: Any) -> Any:
        *group, k, f = indices
        c = k // (rows.kernel * columns.kernel)
        c = group[0] * channels + c if group else c
        p, q = k // columns.kernel % rows.kernel, k % columns.kernel
        y = f // width % height * rows.stride + p * rows.dilation - rows.before
        x = f % width * columns.stride + q * columns.dilation - columns.before
        conditions = [f < pixels, *([k < shape.terms] if depth != shape.terms else [])]
        conditions += shapes.inside(rows, y) + shapes.inside(columns, x)
        return filled(data[f // (width * height), c, y, x], conditions)

    stack = (shape.groups,) if shape.groups > 1 else ()
    extents = (*stack, depth, beyond(pixels))
    made: Tensor = tensor(extents, with_names(element, len(stack), "kj"), "conv2d.right")
    return made


# -- space and schedule -------------------------------------------------------------------------


def product_of(workload: Workload) -> Shape:
    """Return the sizes of a convolution's product."""
    shape, block = shape_of(workload), workload["block"]
    image = shape.rows.out * shape.columns.out
    is_in_place = all(
        window.kernel == window.stride == 1 and not window.before and window.out == window.size
        for window in (shape.rows, shape.columns)
    )
    return Shape(
        shape.o // shape.groups, shape.n * image, padded_depth(shape.terms, shape.dtype),
        shape.groups, shape.dtype, shape.sums_dtype,
        (block if block > 1 else shape.terms, image if is_in_place else 1), (block == 1, False),
    )  # fmt: skip


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`: see `dlcompiler.ops.gpu.space`."""
    return space_of(workload, product_of(workload), target)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a model of the GPU prefers: see `dlcompiler.ops.gpu.default`."""
    return default_of(workload, product_of(workload), target)


def estimate(workload: Workload, target: Target) -> float:
    """Return about how long the default config takes [cycle]."""
    return seconds_of(product_of(workload), target) * Machine(target).rates["clock"]


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a convolution as a matrix product on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The result, or what an elementwise expression makes of it.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    (result,) = outs
    sums = anchor_of(s, result)
    if sums.ndim > 2 and 0 not in sums.static_shape and not _are_in_groups(sums, cfg):
        multiply_before(s, result, sums, cfg)
        return

    def loops() -> Loops:
        assert isinstance(result.op, ComputeOp)
        n, o, y, x = result.op.axis
        stack: tuple[Any, ...] = ()
        if sums.ndim > 2:
            group, o = s[result].split(o, _channels_of_group(sums))
            stack = (group,)
        s[result].reorder(*stack, o, n, y, x)
        pixels = s[result].fuse(n, y, x)
        return Loops(stack, o, pixels, result.static_shape[2] * result.static_shape[3])

    multiply(s, result, loops, sums, cfg)


def _are_in_groups(sums: Tensor, cfg: Config) -> bool:
    """Tell whether no tile of channels of the result reaches from a group into the next one."""
    if cfg["form"] == "threads":
        rows = cfg["rows"][1] * cfg["groups"]
    else:
        rows, _ = (tile_of if cfg["form"] == "warps" else block_of)(cfg.values)
    return bool(_channels_of_group(sums) % rows == 0)


def _channels_of_group(sums: Tensor) -> int:
    return int(sums.static_shape[1]) - EXTRA


GPU = DeviceSchedule(space, default_config, schedule, estimate=estimate, define=define)
