"""The GPU schedule of the convolution by minimal filtering, in three kernels.

======================  =======================================================================
``winograd.input``      the tiles of the images, transformed: position × channel × tile
``winograd.products``   for each position, the product of weights and tiles, summed over channels
``result``              the products, transformed back, and the epilogue
======================  =======================================================================

A thread transforms one tile of one channel in registers; neighbouring threads take neighbouring
tiles, so that they access neighbouring elements of both arrays between the kernels. The products
are those of `dlcompiler.ops.gpu.products`, a stack of as many as a tile has positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.winograd_schedule import tiles_of
from dlcompiler.ops.conv2d.winograd_transforms import (
    TAPS,
    Transforms,
    chosen,
    input_row,
    output_row,
    transforms,
)
from dlcompiler.ops.conv2d.winograd_weights import PANEL, packed_shape
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.gpu.default import default_of, seconds_of
from dlcompiler.ops.gpu.definition import beyond, filled, padded_depth, sums_of
from dlcompiler.ops.gpu.model import Machine
from dlcompiler.ops.gpu.products import multiply
from dlcompiler.ops.gpu.space import Shape, space_of
from dlcompiler.ops.gpu.threads import bind, fused
from dlcompiler.ops.gpu.tiles import Loops
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.stages import stages_by_role, unroll
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

_THREADS = 128


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return data, the packed weights, the operands of the epilogue, and the result."""
    shape, t = shapes.shape_of(workload), transforms(workload["tile"], TAPS)
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(packed_shape(shape, t.outputs), shape.dtype, "weight")
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    operands = epilogue.placeholders(shape.result, shape.dtype)
    products = _products(shape, t, _transformed(shape, t, data), weight)
    down, across = tiles_of(shape, t.outputs)
    columns = tensor(
        (t.outputs, t.size, shape.o, _count(shape, t)),
        lambda p, j, o, s: _of_output(
            shape, t, p, [products[i * t.size + j, o, s] for i in range(t.size)]
        ),
        "winograd.columns",
    )

    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        place = (n * down + y // t.outputs) * across + x // t.outputs
        read = [columns[y % t.outputs, j, o, place] for j in range(t.size)]
        value = _of_output(shape, t, x % t.outputs, read)
        return epilogue.element(value, (n, o, y, x), operands)

    return data, weight, *operands.values(), tensor(shape.result, element, "result")


def _count(shape: shapes.Shape, t: Transforms) -> int:
    """Return the number of tiles of all images."""
    down, across = tiles_of(shape, t.outputs)
    return shape.n * down * across


def _of_input(shape: shapes.Shape, t: Transforms, row: Any, values: Sequence[Any]) -> Any:
    number = lambda value: te.const(value, shape.dtype)  # noqa: E731 - makes constants
    return chosen(row, [input_row(t, k, values, number) for k in range(t.size)])


def _of_output(shape: shapes.Shape, t: Transforms, row: Any, values: Sequence[Any]) -> Any:
    number = lambda value: te.const(value, shape.dtype)  # noqa: E731 - makes constants
    return chosen(row, [output_row(t, k, values, number) for k in range(t.outputs)])


def _transformed(shape: shapes.Shape, t: Transforms, data: Tensor) -> Tensor:
    """Define the tiles of all channels, transformed: position × channel × tile."""
    down, across = tiles_of(shape, t.outputs)
    size, channels, count = t.size, shape.c, _count(shape, t)

    def of_image(a: Any, b: Any, c: Any, s: Any) -> Any:
        y = s // across % down * t.outputs + a - shape.rows.before
        x = s % across * t.outputs + b - shape.columns.before
        is_inside = [y >= 0, y < shape.rows.size, x >= 0, x < shape.columns.size]
        return filled(data[s // (down * across), c, y, x], is_inside)

    tile = tensor((size, size, channels, count), of_image, "winograd.tile")
    rows = tensor(
        (size, size, channels, count),
        lambda i, b, c, s: _of_input(shape, t, i, [tile[a, b, c, s] for a in range(size)]),
        "winograd.rows",
    )
    made: Tensor = tensor(
        (size * size, channels, count),
        lambda p, c, s: _of_input(
            shape, t, p % size, [rows[p // size, b, c, s] for b in range(size)]
        ),
        "winograd.input",
    )
    return made


def _products(shape: shapes.Shape, t: Transforms, tiles: Tensor, weight: Tensor) -> Tensor:
    """Define the products for all positions: position × output channel × tile."""
    depth, count = padded_depth(shape.c, shape.dtype), _count(shape, t)
    panels = -(-shape.o // PANEL)

    def is_term(k: Any) -> list[Any]:
        return [k < shape.c] if depth != shape.c else []

    left = tensor(
        (t.size**2, depth, beyond(shape.o)),
        lambda b, k, i: filled(
            weight[i // PANEL, b // t.size, b % t.size, k, i % PANEL],
            [i < panels * PANEL, *is_term(k)],
        ),
        "winograd.left",
    )
    right = tensor(
        (t.size**2, depth, beyond(count)),
        lambda b, k, j: filled(tiles[b, k, j], [j < count, *is_term(k)]),
        "winograd.right",
    )
    sums = sums_of(left, right, shape.dtype, "winograd.sums")
    extents = (t.size**2, shape.o, count)
    made: Tensor = tensor(extents, lambda b, i, j: sums[b, i, j], "winograd.products")
    return made


# -- space and schedule -------------------------------------------------------------------------


def product_of(workload: Workload) -> Shape:
    """Return the sizes of the products."""
    shape, t = shapes.shape_of(workload), transforms(workload["tile"], TAPS)
    count = _count(shape, t)
    return Shape(
        shape.o, count, padded_depth(shape.c, shape.dtype), t.size**2, shape.dtype, shape.dtype,
        (PANEL, count), (False, False),
    )  # fmt: skip


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of the products: see `dlcompiler.ops.gpu.space`."""
    return space_of(workload, product_of(workload), target)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a model of the GPU prefers: see `dlcompiler.ops.gpu.default`."""
    return default_of(workload, product_of(workload), target)


def estimate(workload: Workload, target: Target) -> float:
    """Return about how long the default config takes, with both transformations [cycle]."""
    shape, product, machine = shapes.shape_of(workload), product_of(workload), Machine(target)
    item, between = dtypes.bytes_of(shape.dtype), product.stack * product.n
    moved = (
        math.prod(shape.image) + between * shape.c,
        math.prod(shape.result) + between * shape.o,
    )
    seconds = seconds_of(product, target) + sum(machine.moving(item * n) for n in moved)
    return seconds * machine.rates["clock"]


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a convolution by minimal filtering on a GPU.

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
    stages = stages_by_role(s)
    known = {"tile", "rows", "input", "left", "right", "sums", "products", "columns"}
    for name, stage in stages.items():
        if name not in known and stage is not result and not isinstance(stage.op, PlaceholderOp):
            s[stage].compute_inline()
    unrolled = _transform_back(s, result, stages["columns"])
    products = stages["products"]
    stack, i, j = products.op.axis
    loops = Loops((stack,), i, j, products.static_shape[-1])
    multiply(s, products, lambda: loops, stages["sums"], cfg)
    unrolled += _transform(s, stages)
    unroll(s, unrolled)


def _transform(s: Schedule, stages: dict[str, Tensor]) -> list[tuple[Tensor, Axis]]:
    """Let each thread transform a tile of a channel; return the loops to unroll."""
    transformed, rows, tile = stages["input"], stages["rows"], stages["tile"]
    size = tile.static_shape[0]
    stage = s[transformed]
    p, c, place = transformed.op.axis
    i, j = stage.split(p, size)
    stage.reorder(c, place, i, j)
    block, thread = stage.split(stage.fuse(c, place), _THREADS)
    bind(stage, {"blockIdx.x": block, "threadIdx.x": thread})
    unrolled = [(transformed, i), (transformed, j)]
    for tensor_ in (rows, tile):
        s[tensor_].set_scope("local")
        s[tensor_].compute_at(stage, thread)
        unrolled += [(tensor_, axis) for axis in tensor_.op.axis[:2]]
    return unrolled


def _transform_back(s: Schedule, result: Tensor, columns: Tensor) -> list[tuple[Tensor, Axis]]:
    """Let each thread transform the products of a tile back; return the loops to unroll."""
    tile, stage = columns.static_shape[0], s[result]
    n, o, y, x = result.op.axis
    y, p = stage.split(y, tile)
    x, q = stage.split(x, tile)
    stage.reorder(n, o, y, x, p, q)
    block, thread = stage.split(fused(stage, (n, o, y, x)), _THREADS)
    bind(stage, {"blockIdx.x": block, "threadIdx.x": thread})
    s[columns].set_scope("local")
    s[columns].compute_at(stage, thread)
    return [(result, p), (result, q), *((columns, axis) for axis in columns.op.axis[:2])]


GPU = DeviceSchedule(space, default_config, schedule, estimate=estimate, define=define)
