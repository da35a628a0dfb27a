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
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, as_expected, by_device
from dlcompiler.ops.injective import default_injective, injective_space, schedule_injective
from dlcompiler.ops.options import options_of, options_text
from dlcompiler.ops.resizing import METHODS, MODES, ROUNDINGS, Positions, Resize, resize
from dlcompiler.ops.rounding import SMALLEST, Wide, unit
from dlcompiler.ops.shapes import FLOATS, INTEGERS, checked_dtype, shape_of, shape_text
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_OPTIONS: dict[str, float | str] = {"alpha": -0.75}
_LAYOUTS = ("NCHW", "NHWC")
_FEW_COLUMNS = 32
"""Columns of an image up to which one pass is faster at any distance of positions; measured."""


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
    data = te.placeholder(shape_of(work["shape"]), work["dtype"], "data")
    return data, _resized(data, (0, 1), work)


def define_for_cpu(work: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result, computed in one pass or two: see `passes`."""
    first, *rest = passes(work)
    data = te.placeholder(shape_of(work["shape"]), work["dtype"], "data")
    if not rest:
        return data, _resized(data, first, work)
    return data, _resized(_pass(data, first, work), rest[0], work)


def passes(work: Workload) -> tuple[tuple[int, ...], ...]:
    """Return which of height (0) and width (1) change in each pass.

    In one pass, a result of two dimensions reads four elements, or sixteen with a cubic kernel; in
    two passes four, or eight, and the scattered ones in only one of them. One pass is faster if
    neighbours in the result read elements at constant distances, or all of a row fits registers.

    Examples
    --------
    >>> passes(workload(shape="1x3x100x100", to="260x260"))
    ((1,), (0,))
    >>> passes(workload(shape="1x3x100x100", to="200x200"))
    ((0, 1),)
    """
    rows, columns = _lines(work)
    out = shape_of(work["to"])
    is_one = work["method"] == METHODS[0] or work["layout"] != "NCHW" or 0 in out
    if work["method"] == "linear":
        slope = Fraction(columns.factor, columns.divisor)
        is_one |= columns.size <= _FEW_COLUMNS or 1 in (slope.numerator, slope.denominator)
    if is_one or rows.is_whole or columns.is_whole:
        return ((0, 1),)
    # The scattered elements are read where there are fewer rows.
    return ((1,), (0,)) if rows.size <= out[0] else ((0,), (1,))


def _kind(work: Workload) -> str:
    """Return the dtype of the computation."""
    dtype: str = work["dtype"]
    is_narrow = dtypes.is_float(dtype) and dtypes.bits(dtype) == 16 and work["method"] != METHODS[0]
    return "float32" if is_narrow else dtype


def _pass(data: Tensor, changed: Sequence[int], work: Workload, name: str = "pass") -> Tensor:
    """Define the change of one dimension, or of both."""
    out, lines, dims = shape_of(work["to"]), _lines(work), _dims(work["layout"])
    return resize(
        data, [dims[n] for n in changed], [out[n] for n in changed], [lines[n] for n in changed],
        Resize(work["method"], work["rounding"], _alpha(work)), _kind(work), name,
    )  # fmt: skip


def _resized(data: Tensor, changed: Sequence[int], work: Workload) -> Tensor:
    """Define the result by its last pass."""
    made, dtype = _pass(data, changed, work, "T_resize"), work["dtype"]
    if made.dtype == dtype:
        return made
    stored: Tensor = te.compute(made.shape, lambda *i: made[i].astype(dtype), name="resize2d")
    return stored


# -- the schedule ---------------------------------------------------------------------------------


def _last(work: Workload) -> Tensor:
    """Return the result as a function of what its last pass reads."""
    changed = passes(work)[-1]
    shape = list(shape_of(work["shape"]))
    for n, axis in enumerate(_dims(work["layout"])):
        if n not in changed:
            shape[axis] = shape_of(work["to"])[n]
    data = te.placeholder(shape, work["dtype"] if len(changed) == 2 else _kind(work), "rows")
    return _resized(data, changed, work)


def space(work: Workload, target: Target) -> Space:
    """Return the configs of `dlcompiler.ops.injective`, for the last pass."""
    return injective_space(work, _last(work), target)


def default_config(work: Workload, target: Target) -> Config:
    """Return the config that suits the last pass."""
    return default_injective(work, _last(work), target)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Compute rows in vectors, in one pass or two.

    *After*, in two passes::

        for n.c.y in parallel(n * c * h):
            for x in range(w):                 in vectors, of scattered elements
                pass[…] = data[…] * weight + data[…] * other
        for n.c.y in parallel(n * c * height):
            for x in range(w):                 in vectors, of neighbours
                T_resize[…] = pass[…] * weight + pass[…] * other
    """
    (out,) = outs
    for stage in s.stages:
        if stage.name == "pass":
            *rest, y, x = stage.op.axis
            columns, lane = stage.split(x, target.lanes(stage.tensor.dtype))
            stage.vectorize(lane)
            stage.pragma(columns, "loop_partition_hint")
            if cfg["parallel"]:
                stage.parallel(stage.fuse(*rest, y))
    schedule_injective(s, out, target, cfg.values)


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
    by_device(
        {
            "cpu": DeviceSchedule(space, default_config, schedule, define=define_for_cpu),
            "gpu": "dlcompiler.ops.gpu.injective:INJECTIVE",
        }
    ),
)
