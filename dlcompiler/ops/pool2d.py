"""The operator pool2d: the mean or the maximum of windows that slide over images.

The stages before the result are ``pool.padded``, the image padded with zeros or with the smallest
number, and ``pool.sums``, the sum or maximum of each window. `dlcompiler.ops.sliding` schedules
them in NCHW, `dlcompiler.ops.channels` in the layouts whose channels lie side by side.

A window with a NaN gives NaN, as in NumPy. A window without elements gives the smallest number of
the dtype, or the mean 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops import reduction, reductions
from dlcompiler.ops.base import Operator, Reference, by_device
from dlcompiler.ops.channels import (
    framed_beside,
    resized,
)
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.layouts import Layout, layout_of
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.pools import counted, counts_of, divisors, window_of
from dlcompiler.ops.rounding import Array, Wide, rounded, sum_bound
from dlcompiler.ops.separable import down, is_separable
from dlcompiler.ops.shapes import checked_dtype
from dlcompiler.ops.sliding import (
    EXTRA_COLUMNS,
    EXTRA_ROWS,
    Sliding,
    framed,
)
from dlcompiler.ops.windows import window_schedule
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "pool2d"
KINDS = ("max", "avg")
FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "int8", "uint8", "int32")


@dataclass(frozen=True, slots=True)
class Pooling:
    """The parameters of a pooling: its kind, windows and layout."""

    kind: str
    """``"max"`` or ``"avg"``."""
    rows: Window
    """The window along the height."""
    columns: Window
    """The window along the width."""
    layout: str = "NCHW"
    """Layout of the images and the result."""
    counts_padding: bool = True
    """Whether a mean counts the zeros of the padding."""


def pool2d(
    data: Tensor,
    of: Pooling,
    given: tuple[Window, Window] | None = None,
    *,
    is_wide: bool = True,
    in_passes: bool = False,
) -> Tensor:
    """Define pooling of images.

    Parameters
    ----------
    data : Tensor
        Images in the layout of `of`.
    of : Pooling
        What is done, with the windows as `window_of` makes them.
    given : tuple of Window, optional
        The windows without ``ceil_mode``, whose padding a mean counts; by default those of `of`.
    is_wide : bool
        Let the stages in NCHW reach beyond the result, as the CPU schedule needs it.
    in_passes : bool
        Reduce the columns of a window first, then its rows: see `dlcompiler.ops.separable`.

    Returns
    -------
    Tensor
        In the same layout.
    """
    layout = Layout(of.layout)
    is_max = of.kind == "max"
    value = te.min_value(data.dtype) if is_max else te.const(0, data.dtype)
    reduce = te.max if is_max else te.sum
    if of.layout == "NCHW" and is_wide:
        image = framed(data, of.rows, of.columns, value, "pool.padded")
        n, c = data.shape[:2]
        extents = (n, c, of.rows.out + EXTRA_ROWS, of.columns.out + EXTRA_COLUMNS)
        shape: Sequence[Any] = (n, c, of.rows.out, of.columns.out)
    else:
        image = framed_beside(data, layout, of.rows, of.columns, value, "pool.padded")
        extents = shape = resized(data.shape, layout, of.rows.out, of.columns.out)

    rows, columns = of.rows, of.columns
    if in_passes:
        image = down(image, extents[2], rows, reduce, "pool.down")
        rows = Window(size=rows.out, kernel=1)
    p, q = over(rows.kernel, "p"), over(columns.kernel, "q")

    def window(*i: Any) -> Any:
        n, c, y, x = layout.element(*i)
        row, column = y * rows.stride + p * rows.dilation, x * columns.stride + q * columns.dilation
        return reduce(image[layout.place(n, c, row, column)], axis=[p, q])

    sums = tensor(extents, window, "pool.sums")
    if is_max:
        return tensor(shape, lambda *i: sums[i], "pool_max", "pool_max")
    counts, others = (counted(w, of.counts_padding) for w in given or (of.rows, of.columns))
    below = divisors(of.rows, counts, data.dtype, "pool.rows")
    across = divisors(of.columns, others, data.dtype, "pool.columns")

    def mean(*i: Any) -> Any:
        _, _, y, x = layout.element(*i)
        return te.div(sums[i], below(y) * across(x))

    return tensor(shape, mean, "pool_avg", "pool_avg")


def global_pool(data: Tensor, kind: str, layout: str = "NCHW") -> Tensor:
    """Define the mean or the largest element of each channel; the extents stay, as 1.

    The operator ``reduction`` computes it: ``function="mean"`` or ``"max"``, ``keepdims=1``.
    """
    axes = {"NCHW": (2, 3), "NHWC": (1, 2)}.get(layout, (2, 3))
    function = reductions.mean if kind == "avg" else reductions.max
    return function(data, axes, True)


# -- the operator -------------------------------------------------------------------------------


def workload(
    *,
    kind: str,
    c: int,
    h: int,
    w: int,
    kernel: shapes.Sizes,
    layout: str = "NCHW",
    ceil_mode: int = 0,
    count_include_pad: int = 1,
    dtype: str = "float32",
    **others: Any,
) -> Workload:
    """Return the workload of a pooling.

    Parameters
    ----------
    kind : str
        ``"max"`` or ``"avg"``.
    c, h, w : int
        Channels, height and width of the images.
    kernel : int or tuple of int
        Its extents.
    layout : str
        One of `layouts.LAYOUTS`.
    ceil_mode : int
        1 lets the last windows reach over the edge, if they begin inside.
    count_include_pad : int
        Whether a mean counts the zeros of the padding.
    dtype : str
        Of the images and of the result; a mean is of floats.
    **others
        ``n``, ``stride``, ``padding``, ``dilation``: see `shapes.workload`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    if kind not in KINDS:
        raise TuningError(NAME, "no such kind", got=repr(kind), expected=" or ".join(KINDS))
    for name, flag in (("ceil_mode", ceil_mode), ("count_include_pad", count_include_pad)):
        if flag not in (0, 1):
            raise TuningError(NAME, f"{name} is 0 or 1", got=repr(flag))
    found = shapes.workload(NAME, c=c, h=h, w=w, o=c, kernel=kernel, **others).as_dict()
    layout_of(NAME, layout, c)
    own = ("o", "groups", "epilogue", "dtype")
    return Workload.of(
        NAME,
        kind=kind,
        **{name: value for name, value in found.items() if name not in own},
        layout=layout,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
        dtype=checked_dtype(dtype, FLOATS if kind == "avg" else DTYPES, f"{NAME} {kind}"),
    )


def _pooling(workload: Workload) -> tuple[Pooling, tuple[Window, Window]]:
    """Return the pooling of a workload, and its windows before ``ceil_mode`` extends them."""
    p: Mapping[str, Any] = workload.as_dict()
    numbers = [
        (p["h"], p["kernel_h"], p["stride_h"], p["pad_top"], p["pad_bottom"], p["dilation_h"]),
        (p["w"], p["kernel_w"], p["stride_w"], p["pad_left"], p["pad_right"], p["dilation_w"]),
    ]
    given = Window(*numbers[0]), Window(*numbers[1])
    rows, columns = (window_of(window, bool(p["ceil_mode"])) for window in given)
    return Pooling(p["kind"], rows, columns, p["layout"], bool(p["count_include_pad"])), given


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result."""
    return _define(workload, in_passes=False)


def define_fast(workload: Workload) -> tuple[Tensor, ...]:
    """Return the same, in two passes where these are faster."""
    return _define(workload, in_passes=windows(workload).in_passes)


def _define(workload: Workload, *, in_passes: bool) -> tuple[Tensor, ...]:
    of, given = _pooling(workload)
    n, c, h, w = (workload[name] for name in "nchw")
    data = te.placeholder(Layout(of.layout).shape((n, c, h, w)), workload["dtype"], "data")
    return data, pool2d(data, of, given, in_passes=in_passes)


def reference(workload: Workload, seed: int) -> Reference:
    """Return random images, the expected result, and its bound: 0 for maxima."""
    of, given = _pooling(workload)
    dtype, layout = workload["dtype"], Layout(of.layout)
    generator = np.random.default_rng(seed)
    extents = tuple(workload[name] for name in "nchw")
    kind: Any = dtypes.to_numpy(dtype)
    if dtype in FLOATS:
        image = generator.uniform(-1, 1, extents).astype(kind)
    else:
        limits = np.iinfo(kind)
        image = generator.integers(limits.min, limits.max, extents, kind, endpoint=True)
    expected, bound = exact(image, of, given, dtype)
    name = f"pool_{of.kind}"
    return Reference(
        {"data": layout.store(image)},
        {name: layout.store(expected)},
        {name: layout.store(bound)},
    )


def exact(image: Array, of: Pooling, given: tuple[Window, Window], dtype: str) -> tuple[Wide, Wide]:
    """Return the result of images (n, c, h, w) in float64, and its error bound."""
    is_max = of.kind == "max"
    lowest = float(te.min_value(dtype).value) if dtype not in FLOATS else -np.inf
    start = lowest if is_max else 0.0
    rows, columns = of.rows, of.columns
    result = np.full((*image.shape[:2], rows.out, columns.out), start)
    magnitude = np.zeros_like(result)
    for p, q in np.ndindex(rows.kernel, columns.kernel):
        y, down = _hit(rows, p)
        x, across = _hit(columns, q)
        at = _grid(down, across)
        seen = image[_grid(y, x)].astype(np.float64)
        result[at] = np.maximum(result[at], seen) if is_max else result[at] + seen
        magnitude[at] += np.abs(seen)
    if is_max:
        return result, np.zeros_like(result)
    counts = [
        counts_of(window, counted(padded, of.counts_padding))
        for window, padded in zip((rows, columns), given, strict=True)
    ]
    count = np.outer(np.asarray(counts[0]), np.asarray(counts[1]))
    count = count.reshape(rows.out, columns.out)
    bound = sum_bound(magnitude, rows.kernel * columns.kernel, dtype) / count
    return result / count, rounded(result / count, bound, dtype)


def _grid(y: Array, x: Array) -> tuple[Any, ...]:
    """Return the NumPy index of some rows and columns of images."""
    return (slice(None), slice(None), *np.ix_(y, x))


def _hit(window: Window, tap: int) -> tuple[Array, Array]:
    """Return the image indices that a tap reads, and the result indices that read them."""
    places = np.arange(window.out)
    read = places * window.stride - window.before + tap * window.dilation
    is_inside = (read >= 0) & (read < window.size)
    return read[is_inside], places[is_inside]


def as_reduction(workload: Workload) -> Workload | None:
    """Return the reduction that pooling is if one window is the whole image; else None."""
    of, given = _pooling(workload)
    if any((w.kernel, w.before, w.after, w.dilation) != (w.size, 0, 0, 1) for w in given):
        return None
    shape = Layout(of.layout).shape(tuple(workload[name] for name in "nchw"))
    return reduction.workload(
        function="max" if of.kind == "max" else "mean", shape=shape, keepdims=1,
        axes=tuple(of.layout.index(letter) for letter in "HW"), dtype=workload["dtype"],
    )  # fmt: skip


# -- the schedule -------------------------------------------------------------------------------


def windows(workload: Workload) -> Sliding:
    """Return the windows of a workload."""
    of, _ = _pooling(workload)
    in_passes = of.layout == "NCHW" and is_separable(of.rows, of.columns)
    return Sliding(workload["n"], workload["c"], of.rows, of.columns, workload["dtype"], in_passes)


POOL2D = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device(
        {"cpu": window_schedule(windows, define_fast), "gpu": "dlcompiler.ops.gpu.windows:POOL2D"}
    ),
    simpler=as_reduction,
)
