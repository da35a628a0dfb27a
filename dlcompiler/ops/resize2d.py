"""The operator resize2d: images of another size, with the coordinate modes of ONNX.

The reference multiplies by two matrices of weights, one for the rows and one for the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, as_expected
from dlcompiler.ops.injective import injective_schedules
from dlcompiler.ops.options import options_of, options_text
from dlcompiler.ops.resizing import METHODS, MODES, ROUNDINGS, Positions, Resize, resize
from dlcompiler.ops.rounding import SMALLEST, Wide, unit
from dlcompiler.ops.shapes import FLOATS, INTEGERS, checked_dtype, shape_of, shape_text
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

_OPTIONS: dict[str, float | str] = {"alpha": -0.75}
_LAYOUTS = ("NCHW", "NHWC")


def workload(
    *,
    shape: Sequence[int] | str,
    to: Sequence[int] | str,
    method: str = "linear",
    mode: str = "half_pixel",
    rounding: str = "",
    layout: str = "NCHW",
    options: str | dict[str, float] = "",
    dtype: str = "float32",
) -> Workload:
    """Return the workload of images of another size.

    Parameters
    ----------
    shape : tuple of int or str
        Of the images.
    to : tuple of int or str
        Height and width of the result.
    method : str
        ``nearest_neighbor``, ``linear`` or ``cubic``.
    mode : str
        How a place of the result becomes a position in the image: one of `resizing.MODES`.
    rounding : str
        How a position becomes the nearest element: one of `resizing.ROUNDINGS`.
    layout : str
        NCHW or NHWC.
    options : mapping or str
        ``alpha`` of the cubic kernel.
    dtype : str
        Floats; the nearest neighbour also of integers.
    """
    text, size = shape_text(shape, "resize2d"), shape_text(to, "resize2d")
    known = (("method", method, METHODS), ("mode", mode, MODES[:-1]),
             ("rounding", rounding, ROUNDINGS), ("layout", layout, _LAYOUTS))  # fmt: skip
    for name, value, allowed in known:
        if value not in allowed:
            raise TuningError(
                "resize2d", f"no such {name}", got=repr(value), expected=", ".join(allowed)
            )
    extents = shape_of(text)
    if len(extents) != 4 or len(shape_of(size)) != 2 or 0 in (extents[i] for i in _dims(layout)):
        raise TuningError("resize2d", "not images with a height and a width", got=f"{text}, {size}")
    kinds = (*FLOATS, *INTEGERS) if method == "nearest_neighbor" else FLOATS
    chosen = options_text(options, _OPTIONS, "resize2d")
    more = {"options": chosen} if chosen else {}
    return Workload.of(
        "resize2d", shape=text, to=size, method=method, mode=mode, rounding=rounding,
        layout=layout, dtype=checked_dtype(dtype, kinds, "resize2d"), **more,
    )  # fmt: skip


def _dims(layout: str) -> tuple[int, int]:
    return layout.index("H"), layout.index("W")


def _lines(work: Workload) -> list[Positions]:
    sizes, out = shape_of(work["shape"]), shape_of(work["to"])
    dims = _dims(work["layout"])
    return [Positions.of(sizes[n], m, work["mode"]) for n, m in zip(dims, out, strict=True)]


def _alpha(work: Workload) -> float:
    return float(options_of(str(work.as_dict().get("options", "")), _OPTIONS)["alpha"])


def define(work: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result; floats of 16 bits are computed in float32."""
    dtype = work["dtype"]
    data = te.placeholder(shape_of(work["shape"]), dtype, "data")
    of = Resize(work["method"], work["rounding"], _alpha(work))
    narrow = dtypes.is_float(dtype) and dtypes.bits(dtype) == 16 and of.method != METHODS[0]
    made = resize(
        data, _dims(work["layout"]), shape_of(work["to"]), _lines(work), of,
        "float32" if narrow else dtype,
    )  # fmt: skip
    if narrow:
        wide = made
        made = te.compute(wide.shape, lambda *i: wide[i].astype(dtype), name="resize2d")
    return data, made


def reference(work: Workload, seed: int) -> Reference:
    """Return images in [-2, 2), or small integers, the result, and its bound."""
    generator, dtype = np.random.default_rng(seed), work["dtype"]
    values = generator.uniform(-2, 2, shape_of(work["shape"]))
    if dtypes.is_int(dtype):
        values = np.abs(np.round(values * 40))
    data = values.astype(dtypes.to_numpy(dtype))
    rows, columns = (_weights(line, out, work) for line, out in zip(
        _lines(work), shape_of(work["to"]), strict=True))  # fmt: skip
    exact = data.astype(np.float64)
    size = _applied(np.abs(rows), np.abs(columns), np.abs(exact), work["layout"])
    found = _applied(rows, columns, exact, work["layout"])
    out = define(work)[-1]
    own = unit("float32" if dtypes.bits(dtype) == 16 else dtype)
    bound = np.zeros(found.shape)
    if work["method"] != METHODS[0]:
        # A cubic weight is off by some dozen roundings of terms of about 5 alpha.
        bound = 2 * (120 if work["method"] == "cubic" else 12) * own * (size + np.abs(exact).max())
        bound = bound + 2 * unit(dtype) * (np.abs(found) + SMALLEST[dtype])
    return Reference({"data": data}, {out.name: as_expected(found, out.dtype)}, {out.name: bound})


def _applied(rows: Wide, columns: Wide, data: Wide, layout: str) -> Wide:
    if layout == "NCHW":
        return np.asarray(np.einsum("yh,nchw,xw->ncyx", rows, data, columns, optimize=True))
    return np.asarray(np.einsum("yh,nhwc,xw->nyxc", rows, data, columns, optimize=True))


def _weights(line: Positions, out: int, work: Workload) -> Wide:
    """Return by how much each element of a dimension counts in each result, (out, size)."""
    found = np.zeros((out, line.size))
    for x in range(out):
        for place, weight in _taps(line.position(x), work):
            found[x, min(max(place, 0), line.size - 1)] += weight
    return found


def _taps(at: Fraction, work: Workload) -> list[tuple[int, float]]:
    first = math.floor(at)
    part = float(at - first)
    half = Fraction(1, 2)
    if work["method"] == "linear":
        return [(first, 1 - part), (first + 1, part)]
    if work["method"] == "nearest_neighbor":
        match work["rounding"]:
            case "ceil":
                return [(math.ceil(at), 1.0)]
            case "round_prefer_floor":
                return [(math.ceil(at - half), 1.0)]
            case "round" | "round_prefer_ceil":
                return [(math.floor(at + half), 1.0)]
        return [(first, 1.0)]
    a = _alpha(work)
    return [(first + n - 1, _cubic(abs(part - (n - 1)), a)) for n in range(4)]


def _cubic(d: float, a: float) -> float:
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4)


RESIZE2D = Operator(
    "resize2d",
    workload,
    define,
    reference,
    injective_schedules(define),
)
