"""Define pooling of images of any rank and layout: a number for each window that slides over them.

The operator ``pool2d`` has another definition, with the stages that its schedule needs.
A window without elements gives the smallest number of the dtype, or the mean 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlcompiler import te
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.convolutions import spatial_of
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.layouts import layout_of
from dlcompiler.ops.transforms import pad
from dlcompiler.te import Tensor


def window_of(window: Window, ceil_mode: bool) -> Window:
    """Return the window; with `ceil_mode`, the last one may extend beyond the padded image.

    The last window then begins in the image or in the padding before it, as in PyTorch.
    """
    size, before, stride = window.size, window.before, window.stride
    room = size + before + window.after - window.reach
    if not ceil_mode or room < 0 or room % stride == 0:
        return window
    if window.out * stride >= size + before:
        return window
    return replace(window, after=window.out * stride + window.reach - size - before)


def counted(window: Window, counts_padding: bool) -> range:
    """Return the positions along a dimension that a mean counts."""
    if not counts_padding:
        return range(window.size)
    return range(-max(window.before, 0), window.size + max(window.after, 0))


def counts_of(window: Window, positions: range) -> list[int]:
    """Return how many elements a mean counts at each position along a dimension, at least 1."""
    firsts = range(-window.before, -window.before + window.out * window.stride, window.stride)
    return [
        max(sum(first + k * window.dilation in positions for k in range(window.kernel)), 1)
        for first in firsts
    ]


def divisors(window: Window, positions: range, dtype: str, name: str) -> Callable[[Any], Any]:
    """Return a function from a position to the number of elements that a mean counts there."""
    counts = counts_of(window, positions)
    if len(set(counts)) <= 1:
        count = te.const(counts[0] if counts else 1, dtype)
        return lambda place: count

    def element(place: Any) -> Any:
        first = place * window.stride - window.before
        taps = [first + k * window.dilation for k in range(window.kernel)]
        inside = [te.all(tap >= positions.start, tap < positions.stop) for tap in taps]
        total = te.const(0, dtype)
        for test in inside:
            total = total + te.if_then_else(test, te.const(1, dtype), te.const(0, dtype))
        return te.maximum(total, te.const(1, dtype))

    table = tensor((window.out,), element, name)
    return lambda place: table[place]


@dataclass(frozen=True, slots=True)
class Pool:
    """What is computed of each window."""

    kind: str
    """``"max"``, ``"avg"``, ``"sum"``, or ``"lp"``: the root of the sum of powers."""
    windows: tuple[Window, ...]
    """For each spatial dimension, as `window_of` makes them."""
    layout: str = "NCHW"
    given: tuple[Window, ...] = ()
    """The windows without ``ceil_mode``, whose padding a mean counts; by default `windows`."""
    counts_padding: bool = False
    """Whether a mean counts the zeros of the padding."""
    power: float = 2.0
    """Of ``"lp"``."""


def pool(data: Tensor, of: Pool) -> Tensor:
    """Define pooling of images.

    Parameters
    ----------
    data : Tensor
        Images, in the layout of `of`.
    of : Pool
        What is computed.

    Returns
    -------
    Tensor
        In the same layout.
    """
    layout = layout_of(of.layout)
    spatial = spatial_of(layout)
    where = [layout.index(letter) for letter in spatial]
    value = te.min_value(data.dtype) if of.kind == "max" else te.const(0, data.dtype)
    image = _padded(data, where, of.windows, value)
    taps = [over(w.kernel, f"r{letter.lower()}") for w, letter in zip(of.windows, spatial,
                                                                      strict=True)]  # fmt: skip
    shape = list(data.shape)
    for n, window in zip(where, of.windows, strict=True):
        shape[n] = window.out

    def element(*i: Any) -> Any:
        places = list(i)
        for n, window, tap in zip(where, of.windows, taps, strict=True):
            places[n] = i[n] * window.stride + tap * window.dilation
        return (te.max if of.kind == "max" else te.sum)(_term(image[tuple(places)], of), axis=taps)

    return _of_sums(tensor(shape, element, f"pool_{of.kind}", f"pool_{of.kind}"), of, where)


def _term(value: Any, of: Pool) -> Any:
    if of.kind != "lp":
        return value
    return te.power(te.abs(value), te.const(of.power, value.dtype))


def _of_sums(sums: Tensor, of: Pool, where: Sequence[int]) -> Tensor:
    """Return the result from the sum or the maximum of each window."""
    if of.kind == "lp":
        root = te.const(1 / of.power, sums.dtype)
        return tensor(sums.shape, lambda *i: te.power(sums[i], root), "pool_root", "pool_lp")
    if of.kind != "avg":
        return sums
    tables = [
        divisors(window, counted(given, of.counts_padding), sums.dtype, f"pool_count{n}")
        for n, (window, given) in enumerate(zip(of.windows, of.given or of.windows, strict=True))
    ]

    def mean(*i: Any) -> Any:
        count: Any = None
        for n, table in zip(where, tables, strict=True):
            count = table(i[n]) if count is None else count * table(i[n])
        return te.div(sums[i], count)

    return tensor(sums.shape, mean, "pool_avg", "pool_avg")


def _padded(data: Tensor, where: Sequence[int], windows: Sequence[Window], value: Any) -> Tensor:
    if not any(window.before or window.after for window in windows):
        return data
    before, after = [0] * len(data.shape), [0] * len(data.shape)
    for n, window in zip(where, windows, strict=True):
        before[n], after[n] = window.before, window.after
    return pad(data, before, after, value, name="pad_temp")


def bins(size: int, out: int) -> list[tuple[int, int]]:
    """Return where the windows of an adaptive pooling begin and end.

    Examples
    --------
    >>> bins(7, 3)
    [(0, 3), (2, 5), (4, 7)]
    """
    return [(n * size // out, -(-(n + 1) * size // out)) for n in range(out)]


def adaptive_pool(data: Tensor, kind: str, out: Sequence[int], layout: str) -> Tensor:
    """Define pooling to a size: the windows, of any extents, cover the image.

    Parameters
    ----------
    data : Tensor
        Images, in the layout `layout`.
    kind : str
        ``"max"`` or ``"avg"``.
    out : sequence of int
        Extents of the result in the spatial dimensions.
    layout : str
        Layout of the images and the result.
    """
    letters = layout_of(layout)
    where = [letters.index(letter) for letter in spatial_of(letters)]
    sizes = [data.static_shape[n] for n in where]
    widest = [
        max((end - start for start, end in bins(size, n)), default=0)
        for size, n in zip(sizes, out, strict=True)
    ]
    taps = [over(extent, f"r{n}") for n, extent in enumerate(widest)]
    least = te.min_value(data.dtype) if kind == "max" else te.const(0, data.dtype)
    shape = list(data.shape)
    for n, extent in zip(where, out, strict=True):
        shape[n] = extent

    def ends(place: Any, size: int, extent: int) -> tuple[Any, Any]:
        return place * size // extent, ((place + 1) * size + extent - 1) // extent

    def element(*i: Any) -> Any:
        places, inside = list(i), []
        for n, size, extent, tap in zip(where, sizes, out, taps, strict=True):
            start, end = ends(i[n], size, extent)
            places[n] = start + tap
            inside.append(places[n] < end)
        value = te.if_then_else(te.all(*inside), data[tuple(places)], least)
        return (te.max if kind == "max" else te.sum)(value, axis=taps)

    sums = tensor(shape, element, f"adaptive_pool_{kind}", f"adaptive_pool_{kind}")
    if kind == "max":
        return sums

    def mean(*i: Any) -> Any:
        count: Any = 1
        for n, size, extent in zip(where, sizes, out, strict=True):
            start, end = ends(i[n], size, extent)
            count = count * (end - start)
        return te.div(sums[i], count.astype(data.dtype))

    return tensor(shape, mean, "adaptive_pool_mean", "adaptive_pool_avg")
