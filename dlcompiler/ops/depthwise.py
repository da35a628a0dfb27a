"""Depthwise convolution: each output channel reads one input channel.

Images are NCHW. The stages before the result are ``depthwise.padded``, the image in its frame of
zeros, and ``depthwise.sums``; `dlcompiler.ops.sliding` schedules them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.defining import tensor
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.sliding import (
    EXTRA_COLUMNS,
    EXTRA_ROWS,
    Sliding,
    framed,
    schedule_sliding,
    sliding_config,
    sliding_space,
)
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

NAME = "depthwise_conv2d"


def depthwise(
    data: Tensor, weight: Tensor, shape: Shape, operands: Mapping[str, Tensor] | None = None
) -> Tensor:
    """Define a depthwise convolution with its epilogue.

    Parameters
    ----------
    data : Tensor
        Images, ``(n, c, h, w)``.
    weight : Tensor
        ``(c * multiplier, 1, kh, kw)``: the output channel ``o`` reads channel ``o // multiplier``.
    shape : Shape
        The shape of the convolution, with ``groups == c``.
    operands : mapping, optional
        Of the epilogue.

    Returns
    -------
    Tensor
        ``(n, c * multiplier, oh, ow)``.
    """
    rows, columns = shape.rows, shape.columns
    padded = framed(data, rows, columns, te.const(0, data.dtype), "depthwise.padded")
    multiplier = shape.o // max(shape.c, 1)
    p, q = te.reduce_axis((0, rows.kernel), "p"), te.reduce_axis((0, columns.kernel), "q")

    def total(n: Any, o: Any, y: Any, x: Any) -> Any:
        row, column = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
        return te.sum(padded[n, o // multiplier, row, column] * weight[o, 0, p, q], axis=[p, q])

    n, o, height, width = shape.result
    extents = (n, o, height + EXTRA_ROWS, width + EXTRA_COLUMNS)
    sums = tensor(extents, total, "depthwise.sums")
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    return tensor(shape.result, lambda *i: epilogue.element(sums[i], i, operands or {}), "result")


def workload(
    *, c: int, h: int, w: int, kernel: shapes.Sizes, multiplier: int = 1, **others: Any
) -> Workload:
    """Return the workload of a depthwise convolution; see `shapes.workload`.

    Parameters
    ----------
    c, h, w : int
        Channels, height and width of the images.
    kernel : int or tuple of int
        Its extents.
    multiplier : int
        Output channels for each input channel.
    **others
        ``n``, ``stride``, ``padding``, ``dilation``, ``dtype``, ``epilogue``.

    Raises
    ------
    TuningError
        A parameter is not what it should be.
    """
    for name, number, least in (("c", c, 0), ("multiplier", multiplier, 1)):
        if type(number) is not int or number < least:
            raise TuningError(
                NAME, f"{name} is not a number that it may be", got=repr(number),
                expected=f"an int from {least}",
            )  # fmt: skip
    return shapes.workload(
        NAME, c=c, h=h, w=w, o=c * multiplier, kernel=kernel, groups=max(c, 1), **others
    )


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``weight``, the operands of the epilogue, and ``result``."""
    shape = shapes.shape_of(workload)
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(shape.weight, shape.dtype, "weight")
    operands = Epilogue.read(shape.epilogue, channel=1).placeholders(shape.result, shape.dtype)
    return data, weight, *operands.values(), depthwise(data, weight, shape, operands)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-1, 1), the right result, and its bound ``K·u·Σ|a||b|``."""
    return shapes.reference(workload, seed)


# -- the choices, and the schedule --------------------------------------------------------------


def _sliding(workload: Workload) -> Sliding:
    shape = shapes.shape_of(workload)
    return Sliding(shape.n * shape.o, shape.rows, shape.columns, shape.dtype)


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`: see `sliding.sliding_space`."""
    return sliding_space(workload, _sliding(workload), target)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a simple model prefers: see `sliding.sliding_config`."""
    return sliding_config(workload, _sliding(workload), target)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a depthwise convolution on a CPU: see `sliding.schedule_sliding`."""
    (result,) = outs
    schedule_sliding(s, result, cfg, target)


DEPTHWISE = Operator(NAME, workload, define, reference, space, default_config, schedule)
