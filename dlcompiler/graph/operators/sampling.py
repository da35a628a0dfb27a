"""Images that are read at given positions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import Attribute, boolean, extents, one_of
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import expect, of_floats, same_dtype, static
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops.nests import sampling
from dlcompiler.ops.sampling import CUBIC_ALPHA, Sampling, affine_grid, sample

_METHODS = {"nearest": "nearest", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}

# -- grid_sample ----------------------------------------------------------------------------------


def _sample_type(call: CallTypes) -> TensorType:
    data, grid = of_floats(call), call.tensor(1)
    same_dtype(call, (data, grid))
    rank = {"NCHW": 2, "NCDHW": 3}[call.attrs["layout"]]
    for name, kind in (("data", data), ("grid", grid)):
        if kind.rank != rank + 2:
            call.fail(f"argument {name} has {kind.rank} dimensions", expected=f"{rank + 2}")
    if call.attrs["method"] == ("trilinear" if rank == 2 else "bilinear") or (
        rank == 3 and call.attrs["method"] == "bicubic"
    ):
        call.fail(f"method {call.attrs['method']} is not for {rank} dimensions")
    expect(call, 1, (data.shape[0], rank, *grid.shape[2:]), data.dtype)
    if 0 in data.shape[2:] and 0 not in grid.shape:
        call.fail("the images have no elements")
    return TensorType((*data.shape[:2], *grid.shape[2:]), data.dtype)


def _description(call: Result) -> Sampling:
    attrs = call.attrs
    return Sampling(_METHODS[attrs["method"]], attrs["padding_mode"], attrs["align_corners"])


def _sample(call: Result, data: Array, grid: Array) -> Array:
    of, image, places = _description(call), wide(data), wide(grid)
    rank, sizes = grid.shape[1], data.shape[2:]
    found = np.zeros(static(call.tensor))
    taps = []
    for d, size in enumerate(sizes):
        g = places[:, rank - 1 - d]
        x = (g + 1) / 2 * (size - 1) if of.align_corners else ((g + 1) * size - 1) / 2
        taps.append(_taps(x, size, of))
    batch = np.arange(len(data)).reshape(-1, *[1] * (grid.ndim - 2))
    for chosen in itertools.product(*taps):
        weight: Any = 1.0
        inside = np.ones_like(batch, bool)
        at = []
        for (index, factor), size in zip(chosen, sizes, strict=True):
            inside = inside & (index >= 0) & (index < size)
            weight = weight * factor
            at.append(np.clip(index, 0, max(size - 1, 0)))
        place: Any = (batch, slice(None), *at)
        read = np.moveaxis(image[place], -1, 1) if image.size else 0.0
        kept = inside if of.padding == "zeros" else np.ones_like(inside)
        found = found + np.expand_dims(weight * np.ones_like(kept), 1) * np.where(
            np.expand_dims(kept, 1), read, 0
        )
    return rounded(found, call.tensor)


def _taps(x: Array, size: int, of: Sampling) -> list[tuple[Array, Any]]:
    """Return the elements along a dimension that are read, with their weights."""
    if of.method == "nearest":
        return [(_whole(np.rint(_bounded(x, size, of))), 1.0)]
    if of.method == "linear":
        x = _bounded(x, size, of)
        first = np.floor(x)
        return [(_whole(first), 1 - (x - first)), (_whole(first + 1), x - first)]
    first = np.floor(x)
    return [
        (_whole(_bounded(first + n, size, of)), _cubic(np.abs(x - first - n))) for n in range(-1, 3)
    ]


def _whole(x: Array) -> Array:
    return np.nan_to_num(x).astype(np.int64)


def _bounded(x: Array, size: int, of: Sampling) -> Array:
    if of.padding == "zeros":
        return np.clip(x, -2, size + 1)
    if of.padding == "reflection":
        first, span = (0.0, size - 1) if of.align_corners else (-0.5, size)
        beyond = np.abs(x - first)
        turns, rest = np.divmod(beyond, span) if span else (np.zeros_like(x), np.zeros_like(x))
        x = np.where(turns % 2 == 0, rest, span - rest) + first
    return np.clip(x, 0, size - 1)


def _cubic(distance: Array) -> Array:
    a = CUBIC_ALPHA
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, far)


# -- affine_grid ----------------------------------------------------------------------------------


def _grid_type(call: CallTypes) -> TensorType:
    theta = of_floats(call)
    if theta.rank != 3:
        call.fail(f"argument data has {theta.rank} dimensions", expected="3: (n, 2, 3)")
    expect(call, 0, (theta.shape[0], 2, 3), theta.dtype)
    return TensorType((theta.shape[0], 2, *call.attrs["target_shape"]), theta.dtype)


def _grid(call: Result, theta: Array) -> Array:
    height, width = call.attrs["target_shape"]
    y, x = (np.linspace(-1, 1, n) if n > 1 else np.full(n, -1.0) for n in (height, width))
    points = np.stack([*np.meshgrid(x, y), np.ones((height, width))])
    return rounded(np.einsum("nkj,jyx->nkyx", wide(theta), points), call.tensor)


def _define_grid(call: Result, theta: te.Tensor) -> te.Tensor:
    return affine_grid(theta, call.attrs["target_shape"])


TABLE = (
    GraphOperator(
        "image.grid_sample", ("data", "grid"), _sample_type, _sample, Pattern.INJECTIVE,
        lambda call, data, grid: sample(data, grid, _description(call)),
        (Attribute("method", one_of(*_METHODS), "bilinear", "how elements are combined"),
         Attribute("layout", one_of("NCHW", "NCDHW"), "NCHW", "layout of the images"),
         Attribute("padding_mode", one_of("zeros", "border", "reflection"), "zeros",
                   "what is outside the images"),
         Attribute("align_corners", boolean, True, "-1 and 1 are the centres of the outermost "
                   "elements, not their edges")),
        "Images, read at positions (n, 2, h, w) from -1 to 1; x comes first.",
        nest=lambda call, target, data, grid: sampling.sample(
            data, grid, _description(call), target),
    ),
    GraphOperator(
        "image.affine_grid", ("data",), _grid_type, _grid, Pattern.INJECTIVE, _define_grid,
        (Attribute("target_shape", extents(2, 0), doc="height and width of the result"),),
        "Positions for `image.grid_sample` from matrices (n, 2, 3).",
    ),
)  # fmt: skip
"""The operators of this module."""
