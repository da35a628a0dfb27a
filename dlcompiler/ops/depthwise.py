"""Depthwise convolution: each output channel reads one input channel.

The stages before the result are ``depthwise.padded``, the image padded with zeros and converted to
the dtype of the sums, and ``depthwise.sums``. `dlcompiler.ops.sliding` schedules them in NCHW,
`dlcompiler.ops.channels` in the layouts whose channels lie side by side. For the latter, the
weights are packed before the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, by_device, given_weight
from dlcompiler.ops.channels import (
    framed_beside,
)
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.layouts import Layout, layout_of, stored
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.sliding import (
    EXTRA_COLUMNS,
    EXTRA_ROWS,
    Sliding,
    framed,
)
from dlcompiler.ops.widening import DTYPES, converted
from dlcompiler.ops.windows import window_schedule
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "depthwise_conv2d"
PLAIN = Layout("NCHW")
"""The layout in which weights are read as they are."""


def depthwise(
    data: Tensor,
    weight: Tensor,
    shape: Shape,
    layout: Layout = PLAIN,
    operands: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Define a depthwise convolution with its epilogue.

    Parameters
    ----------
    data : Tensor
        Images in the layout.
    weight : Tensor
        ``(c * multiplier, 1, kh, kw)`` in NCHW, else ``(kh, kw, c * multiplier)``: the output
        channel ``o`` reads channel ``o // multiplier``.
    shape : Shape
        The shape of the convolution, with ``groups == c``.
    layout : Layout, optional
        Of the images, the result and a residual.
    operands : mapping, optional
        Of the epilogue.

    Returns
    -------
    Tensor
        ``(n, c * multiplier, oh, ow)`` in the layout.
    """
    rows, columns, is_plain = shape.rows, shape.columns, layout == PLAIN
    zero = te.const(0, shape.sums_dtype)
    padded = (
        framed(data, rows, columns, zero, "depthwise.padded")
        if is_plain
        else framed_beside(data, layout, rows, columns, zero, "depthwise.padded")
    )
    multiplier = shape.o // max(shape.c, 1)
    p, q = te.reduce_axis((0, rows.kernel), "p"), te.reduce_axis((0, columns.kernel), "q")

    def total(*i: Any) -> Any:
        n, o, y, x = layout.element(*i)
        row, column = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
        factor = weight[o, 0, p, q] if is_plain else weight[p, q, o]
        read = padded[layout.place(n, o // multiplier, row, column)]
        return te.sum(read * converted(factor, shape.sums_dtype), axis=[p, q])

    n, o, height, width = shape.result
    beyond = (n, o, height + EXTRA_ROWS, width + EXTRA_COLUMNS)
    extents = layout.shape(shape.result)
    sums = tensor(beyond if is_plain else extents, total, "depthwise.sums")
    epilogue = Epilogue.read(shape.epilogue, channel=1)

    def element(*i: Any) -> Any:
        channel = layout.element(*i)[1]
        value = epilogue.element(sums[i], i, operands or {}, channel=channel)
        return converted(value, shape.result_dtype)

    return tensor(extents, element, "result")


def workload(
    *,
    c: int,
    h: int,
    w: int,
    kernel: shapes.Sizes,
    multiplier: int = 1,
    layout: str = "NCHW",
    **others: Any,
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
    layout : {"NCHW", "NHWC", "NCHW8c", "NCHW16c"}
        Of the images and the result.
    **others
        ``n``, ``stride``, ``padding``, ``dilation``, ``dtype``, ``epilogue``.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    for name, number, least in (("c", c, 0), ("multiplier", multiplier, 1)):
        if type(number) is not int or number < least:
            raise TuningError(
                NAME, f"{name} is out of range", got=repr(number),
                expected=f"an int from {least}",
            )  # fmt: skip
    if "zero_point" in others:
        raise TuningError(NAME, "it has no zero point", got=f"zero_point={others['zero_point']}",
                          hint="subtract it before: sums of float32 are exact")  # fmt: skip
    layout_of(NAME, layout, c, c * multiplier)
    found = shapes.workload(
        NAME, c=c, h=h, w=w, o=c * multiplier, kernel=kernel, groups=max(c, 1), allowed=DTYPES,
        **others,
    )  # fmt: skip
    return Workload.of(NAME, **found.as_dict(), layout=layout)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``weight``, the operands of the epilogue, and ``result``."""
    shape, layout = shapes.shape_of(workload), Layout(workload["layout"])
    data = te.placeholder(layout.shape(shape.image), shape.dtype, "data")
    extents = shape.weight if layout == PLAIN else (*shape.weight[2:], shape.o)
    weight = te.placeholder(extents, shape.dtype, "weight")
    operands = {
        name: te.placeholder(
            layout.shape(extents) if name == "residual" else extents, shape.sums_dtype, name
        )
        for name, extents in Epilogue.read(shape.epilogue, channel=1).operands(shape.result).items()
    }
    return data, weight, *operands.values(), depthwise(data, weight, shape, layout, operands)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in the kernel's layouts, the expected result, and its bound ``K·u·Σ|a||b|``."""
    return stored(shapes.reference(workload, seed), workload, prepack)


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with weights (o, 1, kh, kw) as the kernel reads them: see `depthwise`."""
    if workload["layout"] == PLAIN.name:
        return arrays
    shape = shapes.shape_of(workload)
    rows = given_weight(workload, arrays, shape.weight).reshape(shape.o, *shape.weight[2:])
    return {**arrays, "weight": np.ascontiguousarray(rows.transpose(1, 2, 0))}


# -- the schedule -------------------------------------------------------------------------------


def windows(workload: Workload) -> Sliding:
    """Return the windows of a workload."""
    shape = shapes.shape_of(workload)
    return Sliding(shape.n, shape.o, shape.rows, shape.columns, shape.sums_dtype)


DEPTHWISE = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": window_schedule(windows, has_weights=True),
            "gpu": "dlcompiler.ops.gpu.windows:DEPTHWISE",
        }
    ),
    prepack,
)
