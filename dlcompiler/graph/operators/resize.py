"""Images of another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    boolean,
    dtype_or_same,
    extents,
    finite,
    layout,
    numbers,
    one_of,
    optional,
)
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    Pattern,
    Relation,
    Result,
)
from dlcompiler.graph.operators.convolutions import SPATIAL
from dlcompiler.graph.operators.layouts import (
    Layouts,
    extents_of,
    layout_of,
    layout_with,
    shape_in,
)
from dlcompiler.graph.operators.relations import static
from dlcompiler.graph.operators.values import converted, number, rounded, wide
from dlcompiler.ops.resizing import METHODS, MODES, ROUNDINGS, Positions, Resize, resize

# -- what is computed -----------------------------------------------------------------------------


def _description(call: Result) -> Resize:
    """Return what a call computes."""
    attrs = call.attrs
    if "size" not in attrs:
        return Resize(_UPSAMPLING[attrs["method"]], alpha=-0.5,
                      rounding="round" if attrs.get("align_corners") else "")  # fmt: skip
    rounding = attrs["rounding_method"]
    if not rounding and attrs["coordinate_transformation_mode"] == "align_corners":
        rounding = "round"
    is_cropped = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return Resize(
        attrs["method"], rounding, attrs["cubic_alpha"], attrs["cubic_exclude"],
        attrs["extrapolation_value"] if is_cropped else None,
    )  # fmt: skip


def _dims(call: Result) -> list[int]:
    """Return the spatial dimensions of the images."""
    stored = layout_of(call.attrs["layout"])
    return [stored.index(axis) for axis in "DHW" if axis in stored.axes]


def _positions(call: Result) -> list[Positions]:
    """Return where the results read, for each spatial dimension."""
    attrs, kind = call.attrs, call.inputs[0]
    assert isinstance(kind, TensorType)
    dims = _dims(call)
    sizes = [static(kind)[n] for n in dims]
    out = [static(call.tensor)[n] for n in dims]
    if "size" not in attrs:
        corners = attrs.get("align_corners", False)
        mode = attrs.get("coordinate_transformation_mode") or (
            "align_corners" if corners else "asymmetric"
        )
        return [Positions.of(*pair, mode) for pair in zip(sizes, out, strict=True)]
    mode = attrs["coordinate_transformation_mode"]
    rank = len(dims)
    scales = attrs["scales"] or (None,) * rank
    roi = attrs["roi"] or (0.0,) * rank + (1.0,) * rank
    return [
        Positions.of(sizes[n], out[n], mode, scales[n], (roi[n], roi[rank + n]))
        for n in range(rank)
    ]


# -- types ----------------------------------------------------------------------------------------


def _resized(rank: int) -> Relation:
    def relation(call: CallTypes) -> TensorType:
        attrs = call.attrs
        for name, count in (("scales", rank), ("roi", 2 * rank)):
            if attrs[name] is not None and len(attrs[name]) != count:
                call.fail(f"{name} has {len(attrs[name])} numbers", expected=f"{count}")
        if min(attrs["scales"] or (1,)) <= 0:
            call.fail("a scale is not positive", got=f"scales={attrs['scales']}")
        return _result(call, rank, dict(zip(SPATIAL[rank], attrs["size"], strict=True)))

    return relation


def _upsampled(rank: int) -> Relation:
    def relation(call: CallTypes) -> TensorType:
        found = extents_of(call, 0, layout_with(call, "layout", f"NC{SPATIAL[rank]}"))
        out: dict[str, Dimension] = {}
        for axis in SPATIAL[rank]:
            extent, scale = found[axis], call.attrs[f"scale_{axis.lower()}"]
            if scale <= 0:
                call.fail(f"scale_{axis.lower()} is not positive", got=scale)
            if scale * (extent if isinstance(extent, int) else 1) >= 2**63:
                call.fail(f"scale_{axis.lower()} is too large", got=scale)
            out[axis] = round(extent * scale) if isinstance(extent, int) else ANY
        return _result(call, rank, out)

    return relation


def _result(call: CallTypes, rank: int, out: dict[str, Dimension]) -> TensorType:
    kind, wanted = call.tensor(0), call.attrs.get("out_dtype", "")
    found = extents_of(call, 0, layout_with(call, "layout", f"NC{SPATIAL[rank]}"))
    dtype = wanted or kind.dtype
    if call.attrs["method"] not in ("nearest_neighbor",) and not dtypes.is_float(dtype):
        call.fail(f"{call.attrs['method']} interpolation gives floats, not {dtype}",
                  hint="cast the input, or give an out_dtype")  # fmt: skip
    for axis, extent in out.items():
        if found[axis] == 0 and extent != 0:
            call.fail(f"dimension {axis} has no elements")
    return TensorType(shape_in(call, layout_of(call.attrs["layout"]), found | out), dtype)


# -- values ---------------------------------------------------------------------------------------


def _evaluate(call: Result, x: Array) -> Array:
    """Combine the elements along one spatial dimension after the other."""
    of, dtype = _description(call), call.tensor.dtype
    lines, dims = _positions(call), _dims(call)
    found = converted(x, dtype) if of.method == "nearest_neighbor" else wide(x)
    is_outside: Any = np.zeros([1] * x.ndim, bool)
    for n, line in zip(dims, lines, strict=True):
        out = static(call.tensor)[n]
        places = [line.position(k) for k in range(out)]
        shape = [1] * x.ndim
        shape[n] = out
        if of.method == "nearest_neighbor":
            found = found.take([_nearest(at, line.size, of.rounding) for at in places], n)
        elif line.is_whole:  # no other element counts, even if it is infinite
            found = found.take([_nearest(at, line.size, "") for at in places], n)
        else:
            found = _combined(found, n, [_weights(at, line.size, of) for at in places])
        outside = np.array([not 0 <= at <= line.size - 1 for at in places], bool)
        is_outside = is_outside | outside.reshape(shape)
    if of.outside is not None:
        found = np.where(is_outside, number(of.outside, dtypes.from_numpy(found.dtype)), found)
    return rounded(found, call.tensor)


def _combined(x: Array, n: int, rows: Sequence[Sequence[tuple[int, float]]]) -> Array:
    """Return sums of elements along a dimension, times weights: each row has as many."""
    shape = [1] * x.ndim
    shape[n] = len(rows)
    total: Any = np.zeros(()) if rows else x.take([], n)
    for tap in range(len(rows[0]) if rows else 0):
        weights = np.reshape([row[tap][1] for row in rows], shape)
        total = total + x.take([row[tap][0] for row in rows], n) * weights
    return np.asarray(total)


def _nearest(at: Fraction, size: int, rounding: str) -> int:
    half = Fraction(1, 2)
    found = {
        "ceil": math.ceil(at), "round_prefer_floor": math.ceil(at - half),
        "round_prefer_ceil": math.floor(at + half), "round": math.floor(at + half),
    }.get(rounding, math.floor(at))  # fmt: skip
    return min(max(found, 0), size - 1)


def _weights(at: Fraction, size: int, of: Resize) -> Sequence[tuple[int, float]]:
    """Return the elements of a dimension that a result reads, with their weights."""
    first = math.floor(at)
    reach = range(first, first + 2) if of.method == "linear" else range(first - 1, first + 3)
    weights = [float(kernel(abs(float(at - k)), of)) for k in reach]
    if of.method == "cubic" and of.excludes:
        weights = [w if 0 <= k < size else 0.0 for k, w in zip(reach, weights, strict=True)]
        total = sum(weights)
        weights = [w / total for w in weights]
    places = [min(max(k, 0), size - 1) for k in reach]
    return list(zip(places, weights, strict=True))


def kernel(distance: Any, of: Resize) -> Any:
    """Return the weights of elements at distances, by linear or cubic interpolation."""
    if of.method == "linear":
        return np.maximum(1 - distance, 0.0)
    a = of.alpha
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _define(call: Result, x: te.Tensor) -> te.Tensor:
    dims = _dims(call)
    out = [static(call.tensor)[n] for n in dims]
    return resize(x, dims, out, _positions(call), _description(call), call.tensor.dtype)


def _layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts for images in any layout that keeps the spatial dimensions whole."""
    del current
    old, new = layout_of(call.attrs["layout"]), layout_of(wanted)
    if sorted(old.dimensions) != sorted(new.dimensions):
        return None
    if any(new.factor(axis) > 1 for axis in "DHW" if axis in new.axes):
        return None
    return Layouts((wanted,), (wanted,), {"layout": wanted})


# -- the table ------------------------------------------------------------------------------------

_UPSAMPLING = {
    "nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "trilinear": "linear",
    "bicubic": "cubic",
}  # fmt: skip


def _resize_operator(rank: int) -> GraphOperator:
    return GraphOperator(
        f"image.resize{rank}d", ("data",), _resized(rank), _evaluate, Pattern.INJECTIVE, _define,
        (
            Attribute("size", extents(rank, 0), doc="extents of the result"),
            Attribute("roi", optional(numbers), None, "the part of the images that is resized, "
                      "from 0 to 1: where it begins and ends in each dimension"),
            Attribute("layout", layout, f"NC{SPATIAL[rank]}", "layout of the images"),
            Attribute("method", one_of(*METHODS), "linear", "how elements are combined"),
            Attribute("coordinate_transformation_mode", one_of(*MODES), "half_pixel",
                      "how places become positions"),
            Attribute("rounding_method", one_of(*ROUNDINGS), "", "how a position becomes an "
                      "element; '': downward, with align_corners to the nearest"),
            Attribute("cubic_alpha", finite, -0.5, "slope of the cubic kernel"),
            Attribute("cubic_exclude", boolean, False, "weights outside the image are 0"),
            Attribute("extrapolation_value", finite, 0.0, "outside of tf_crop_and_resize"),
            Attribute("out_dtype", dtype_or_same, "", "dtype of the result"),
            Attribute("scales", optional(numbers), None,
                      "extents of the result by those of the data, where these are rounded"),
        ),
        "Images of another size, by nearest neighbours, linear or cubic interpolation.",
        _layouts,
    )  # fmt: skip


def _scale(axis: str) -> Attribute:
    return Attribute(f"scale_{axis}", finite, 1.0, "by what the extent is multiplied")


TABLE = (
    *(_resize_operator(rank) for rank in SPATIAL),
    GraphOperator(
        "nn.upsampling", ("data",), _upsampled(2), _evaluate, Pattern.INJECTIVE, _define,
        (_scale("h"), _scale("w"), Attribute("layout", layout, "NCHW", "layout of the images"),
         Attribute("method", one_of("nearest_neighbor", "bilinear", "bicubic"),
                   "nearest_neighbor", "how elements are combined"),
         Attribute("align_corners", boolean, False, "corners of data and result coincide")),
        "Larger images.", _layouts,
    ),
    GraphOperator(
        "nn.upsampling3d", ("data",), _upsampled(3), _evaluate, Pattern.INJECTIVE, _define,
        (_scale("d"), _scale("h"), _scale("w"),
         Attribute("layout", layout, "NCDHW", "layout of the images"),
         Attribute("method", one_of("nearest_neighbor", "trilinear"), "nearest_neighbor",
                   "how elements are combined"),
         Attribute("coordinate_transformation_mode", one_of(*MODES[:3]), "half_pixel",
                   "how places become positions")),
        "Larger images of three dimensions.", _layouts,
    ),
)  # fmt: skip
"""The operators of this module."""
