"""The convolution by minimal filtering: Winograd F(2×2, 3×3) and F(4×4, 3×3), images in NCHW.

The result is cut into tiles of m×m; a tile reads (m+2)² elements of each channel, transforms them,
multiplies them by transformed weights, sums over channels, and transforms back. The sums of all
tiles for one of the (m+2)² positions are a matrix product: 4 (m = 4) or 2.25 (m = 2) times fewer
multiplications than the definition has.

====================  =========================================================================
``winograd.image``    the padded image, with blocks of channels innermost
``winograd.rows``     a tile, its rows transformed
``winograd.input``    the tiles, transformed: position × tile × channel
``winograd.sums``     their products with the weights, summed over channels
``winograd.columns``  the same, transformed back along the columns
``winograd.output``   and along the rows: the result, with channels innermost
====================  =========================================================================

Rounding errors are larger than those of the definition, within the bound of `reference`. A NaN or
an infinity spreads over its whole tile, where an infinity may become a NaN. If that matters, use
the direct operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device, given_weight
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.shapes import Shape
from dlcompiler.ops.conv2d.winograd_schedule import (
    MOST_ROWS,
    default_config,
    estimate,
    schedule,
    space,
    tiles_of,
)
from dlcompiler.ops.conv2d.winograd_transforms import (
    TAPS,
    Transforms,
    chosen,
    input_row,
    on_both_sides,
    output_row,
    transforms,
)
from dlcompiler.ops.conv2d.winograd_weights import PANEL, pack, packed_shape, packing
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.rounding import Array, Wide, unit
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "conv2d_winograd"
TILES = (2, 4)
_SPARE_TILES = MOST_ROWS - 1
"""Additional tiles of the last register tile, beyond those of an image."""


def winograd(
    data: Tensor,
    weight: Tensor,
    shape: Shape,
    tile: int,
    operands: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Define a 3×3 convolution of stride 1 by minimal filtering, with its epilogue.

    Parameters
    ----------
    data : Tensor
        Images, ``(n, c, h, w)``.
    weight : Tensor
        Transformed and packed by `pack`: ``(⌈o / 16⌉, tile + 2, tile + 2, c, 16)``.
    shape : Shape
        The shape of the convolution.
    tile : int
        Results of a tile along each dimension: 2 or 4.
    operands : mapping, optional
        Of the epilogue.

    Returns
    -------
    Tensor
        ``(n, o, oh, ow)``.
    """
    t = transforms(tile, TAPS)
    down, across = tiles_of(shape, tile)
    spare_rows = -(-_SPARE_TILES // across)
    image = _framed(data, shape, t, down + spare_rows, across)
    channels = -(-shape.o // PANEL) * PANEL
    count = down * across + _SPARE_TILES

    def number(value: float) -> Any:
        return te.const(value, shape.dtype)

    def of_input(row: Any, values: Sequence[Any]) -> Any:
        return chosen(row, [input_row(t, k, values, number) for k in range(t.size)])

    def of_output(row: Any, values: Sequence[Any]) -> Any:
        return chosen(row, [output_row(t, k, values, number) for k in range(tile)])

    rows = tensor(
        (t.size, shape.n, count, t.size, shape.c),
        lambda i, n, s, b, c: of_input(
            i, [image[n, s // across * tile + a, s % across * tile + b, c] for a in range(t.size)]
        ),
        "winograd.rows",
    )
    transformed = tensor(
        (t.size, t.size, shape.n, count, shape.c),
        lambda i, j, n, s, c: of_input(j, [rows[i, n, s, b, c] for b in range(t.size)]),
        "winograd.input",
    )
    k = te.reduce_axis((0, shape.c), "k")
    sums = tensor(
        (t.size, t.size, shape.n, count, channels),
        lambda i, j, n, s, o: te.sum(
            transformed[i, j, n, s, k] * weight[o // PANEL, i, j, k, o % PANEL], axis=k
        ),
        "winograd.sums",
    )
    columns = tensor(
        (tile, t.size, shape.n, count, channels),
        lambda p, j, n, s, o: of_output(p, [sums[i, j, n, s, o] for i in range(t.size)]),
        "winograd.columns",
    )
    output = tensor(
        (shape.n, down * tile, across * tile, channels),
        lambda n, y, x, o: of_output(
            x % tile,
            [columns[y % tile, j, n, y // tile * across + x // tile, o] for j in range(t.size)],
        ),
        "winograd.output",
    )
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    return tensor(
        shape.result,
        lambda n, o, y, x: epilogue.element(output[n, y, x, o], (n, o, y, x), operands or {}),
        "result",
    )


def _framed(data: Tensor, shape: Shape, t: Transforms, down: int, across: int) -> Tensor:
    """Define the padded image, large enough for all tiles that read it."""

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row, column = y - shape.rows.before, x - shape.columns.before
        is_inside = te.all(
            row >= 0, row < shape.rows.size, column >= 0, column < shape.columns.size
        )
        return te.if_then_else(is_inside, data[n, c, row, column], te.const(0, shape.dtype))

    height, width = (tiles * t.outputs + t.taps - 1 for tiles in (down, across))
    return tensor((shape.n, height, width, shape.c), element, "winograd.image")


# -- workloads ----------------------------------------------------------------------------------


def workload(*, tile: int = 4, kernel: shapes.Sizes = TAPS, **others: Any) -> Workload:
    """Return the workload of a convolution; see `shapes.workload`.

    Parameters
    ----------
    tile : int
        Results of a tile along each dimension: 2 or 4.
    kernel : int
        Only 3.
    **others
        ``n``, ``c``, ``h``, ``w``, ``o``, ``padding``, ``dtype``, ``epilogue``.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    if tile not in TILES or type(tile) is not int:
        raise TuningError(
            NAME, "no such tile", got=repr(tile), expected=" or ".join(map(str, TILES))
        )
    found = shapes.workload(NAME, kernel=kernel, tile=tile, **others)
    if why := why_not(shapes.shape_of(found)):
        raise TuningError(NAME, why, hint="the direct operator computes any convolution")
    return found


def why_not(shape: Shape) -> str | None:
    """Return why a convolution cannot be computed by minimal filtering, or None."""
    for window in (shape.rows, shape.columns):
        if window.kernel != TAPS:
            return "the kernel is not 3×3"
        if window.stride != 1 or window.dilation != 1:
            return "the stride or the dilation is not 1"
    return "there are groups" if shape.groups != 1 else None


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, the packed ``weight``, the operands of the epilogue, and ``result``."""
    shape, tile = shapes.shape_of(workload), workload["tile"]
    data = te.placeholder(shape.image, shape.dtype, "data")
    weight = te.placeholder(packed_shape(shape, tile), shape.dtype, "weight")
    operands = Epilogue.read(shape.epilogue, channel=1).placeholders(shape.result, shape.dtype)
    return data, weight, *operands.values(), winograd(data, weight, shape, tile, operands)


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Transform and pack ``weight`` ``(o, c, 3, 3)``; other inputs are unchanged."""
    given = given_weight(workload, arrays, shapes.shape_of(workload).weight)
    return {**arrays, "weight": pack(given, workload["tile"])}


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs, the result of the plain convolution, and the error bound of this algorithm.

    Notes
    -----
    With ``|·|`` element by element, an error is at most
    ``N·u·|A^T| (Σ_c (|G| |g| |G^T|) * (|B^T| |d| |B|)) |A|`` to first order, where N counts the
    roundings on the longest way: those of the sum over channels, and of two transforms each of the
    input, the output and the weights.
    **Source:** B. Barabasz, A. Anderson, K. M. Soodhalter, D. Gregg, "Error analysis and improving
    the accuracy of Winograd convolution for deep neural networks", ACM TOMS 46(4), 2020, theorems
    1 and 3; N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1.
    """
    shape, tile = shapes.shape_of(workload), workload["tile"]
    plain = shapes.reference(workload, seed)
    data, weight = plain.inputs["data"], plain.inputs["weight"]
    expected, bound = Epilogue.read(shape.epilogue, channel=1).reference(
        shapes.convolve(shape, data, weight),
        error_bound(shape, tile, data, weight),
        plain.inputs,
        shape.dtype,
    )
    inputs = prepack(workload, plain.inputs)
    return Reference(inputs, {"result": expected}, {"result": bound}, plain=plain.inputs)


def error_bound(shape: Shape, tile: int, data: Array, weight: Array) -> Wide:
    """Return the error bound of the sums, ``(n, o, oh, ow)``; see `reference`."""
    t = transforms(tile, TAPS)
    a, g, b = (np.abs(t.matrix(name)) for name in ("output", "weight", "input"))
    down, across = tiles_of(shape, tile)
    n, c = shape.n, shape.c
    image = np.zeros((n, c, down * tile + TAPS - 1, across * tile + TAPS - 1))
    framed = np.abs(shapes.framed(shape, data))[..., : image.shape[2], : image.shape[3]]
    image[..., : framed.shape[2], : framed.shape[3]] = framed
    windows = np.lib.stride_tricks.sliding_window_view(image, (t.size, t.size), axis=(2, 3))
    tiles = on_both_sides(b, windows[:, :, ::tile, ::tile])  # n, c, down, across, size, size
    weights = on_both_sides(g, np.abs(weight.astype(np.float64)))  # o, c, size, size
    left = tiles.transpose(4, 5, 0, 2, 3, 1).reshape(t.size, t.size, n * down * across, c)
    sums = left @ weights.transpose(2, 3, 1, 0)  # size, size, tiles, o
    ends = on_both_sides(a, sums.transpose(2, 3, 0, 1))  # tiles, o, tile, tile
    whole = ends.reshape(n, down, across, shape.o, tile, tile).transpose(0, 3, 1, 4, 2, 5)
    magnitude = whole.reshape(n, shape.o, down * tile, across * tile)
    most = {name: max(sum(x != 0 for x in row) for row in getattr(t, name)) for name in
            ("input", "output")}  # fmt: skip
    # A kernel may transform the weights, and constants such as 1/6 are rounded themselves.
    of_weights = 2 * (TAPS + 1)
    steps = max(c, 1) + 2 * most["input"] + 2 * most["output"] + of_weights + 2
    own = 2 if shape.dtype == "float64" else 1
    factor = 1.01 * own * steps * unit(shape.dtype)
    bound: Wide = factor * magnitude[:, :, : shape.rows.out, : shape.columns.out]
    return bound


CPU = DeviceSchedule(space, default_config, schedule, packing, estimate)
WINOGRAD = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device({"cpu": CPU, "gpu": "dlcompiler.ops.gpu.winograd:GPU"}),
    prepack,
)
