"""Pooling: a number for each window that slides over images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    boolean,
    extents,
    finite,
    layout,
    layout_or_same,
    optional,
    padding,
)
from dlcompiler.graph.operators.base import (
    Array,
    Attributes,
    CallTypes,
    GraphOperator,
    Pattern,
    Relation,
    Result,
)
from dlcompiler.graph.operators.convolutions import SPATIAL
from dlcompiler.graph.operators.layouts import (
    Extents,
    Layouts,
    extents_of,
    layout_of,
    layout_with,
    shape_in,
)
from dlcompiler.graph.operators.relations import of_floats, of_numbers, static, windows_over
from dlcompiler.graph.operators.values import least, rounded, wide
from dlcompiler.ops import reductions
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.pools import Pool, adaptive_pool, bins, counted, counts_of, pool, window_of


def _given_windows(attrs: Attributes, sizes: Sequence[int]) -> tuple[Window, ...]:
    """Return the windows of a call over images, without ``ceil_mode``."""
    rank, pads = len(attrs["strides"]), attrs["padding"]
    return tuple(
        Window(size, attrs["pool_size"][n], attrs["strides"][n], pads[n], pads[rank + n],
               attrs["dilation"][n])
        for n, size in enumerate(sizes)
    )  # fmt: skip


def _windows(attrs: Attributes, sizes: Sequence[int]) -> tuple[Window, ...]:
    """Return the windows of a call over images."""
    return tuple(window_of(window, attrs["ceil_mode"]) for window in _given_windows(attrs, sizes))


# -- types ----------------------------------------------------------------------------------------


def _images(call: CallTypes, rank: int) -> Extents:
    of_numbers(call)
    return extents_of(call, 0, layout_with(call, "layout", f"NC{SPATIAL[rank]}"))


def _result(call: CallTypes, found: Extents) -> TensorType:
    stored = layout_of(call.attrs["layout"])
    if call.attrs["out_layout"] not in ("", stored.text):
        call.fail("out_layout differs from layout", hint="layout_transform changes the layout")
    return TensorType(shape_in(call, stored, found), call.tensor(0).dtype)


def _pooled(rank: int, kind: str) -> Relation:
    def relation(call: CallTypes) -> TensorType:
        found = _images(call, rank)
        attrs = call.attrs
        if kind == "lp":
            of_floats(call)
            if not attrs["p"] > 0:
                call.fail("p is not positive", got=f"p={attrs['p']}")
        for window, letter in zip(_given_windows(attrs, (0,) * rank), SPATIAL[rank], strict=True):
            if max(window.before, window.after) >= window.reach:
                call.fail(
                    f"the padding of dimension {letter} is as wide as a window",
                    got=f"padding {attrs['padding']}, pool_size {attrs['pool_size']}",
                )
            found[letter] = windows_over(
                call, found[letter], window, ceil_mode=attrs["ceil_mode"], what=letter
            )
        return _result(call, found)

    return relation


def _pooled_to(rank: int, is_global: bool) -> Relation:
    def relation(call: CallTypes) -> TensorType:
        found = _images(call, rank)
        wanted = (1,) * rank if is_global else call.attrs["output_size"]
        for letter, extent in zip(SPATIAL[rank], wanted or (), strict=bool(wanted)):
            if found[letter] == 0:
                call.fail(f"dimension {letter} has no elements")
            found[letter] = extent
        return _result(call, found)

    return relation


# -- values ---------------------------------------------------------------------------------------


def _spatial(call: Result) -> list[int]:
    """Return where the spatial dimensions of images are."""
    stored = layout_of(call.attrs["layout"])
    return [stored.index(axis) for axis in "DHW" if axis in stored.axes]


def _evaluate(kind: str) -> Callable[..., Array]:
    def evaluate(call: Result, x: Array) -> Array:
        where = _spatial(call)
        sizes = [x.shape[n] for n in where]
        windows = _windows(call.attrs, sizes)
        edges = [(0, 0)] * x.ndim
        for n, window in zip(where, windows, strict=True):
            edges[n] = (window.before, window.after)
        start = wide(np.asarray(least(call.tensor.dtype) if kind == "max" else 0, x.dtype))
        image = np.pad(wide(x), edges, constant_values=start[()])
        total = np.full(static(call.tensor), start, image.dtype)
        for tap in itertools.product(*(range(window.kernel) for window in windows)):
            seen = image[_read(x.ndim, where, windows, tap)]
            if kind == "max":
                np.maximum(total, seen, out=total)
            else:
                total += np.abs(seen) ** call.attrs["p"] if kind == "lp" else seen
        return rounded(_finished(call, kind, total, windows), call.tensor)

    return evaluate


def _read(
    rank: int, where: Sequence[int], windows: Sequence[Window], tap: Sequence[int]
) -> tuple[slice, ...]:
    """Return which elements of the padded images an element of the windows reads."""
    found = [slice(None)] * rank
    for n, window, place in zip(where, windows, tap, strict=True):
        first = place * window.dilation
        found[n] = slice(first, first + (window.out - 1) * window.stride + 1, window.stride)
    return tuple(found)


def _finished(call: Result, kind: str, total: Array, windows: Sequence[Window]) -> Array:
    """Return the result from the sum or the maximum of each window."""
    if kind == "lp":
        return total ** (1 / call.attrs["p"])  # type: ignore[no-any-return]
    if kind == "max":
        return total
    counts = np.ones([1] * total.ndim, np.int64)
    given = _given_windows(call.attrs, [window.size for window in windows])
    for n, window, padded in zip(_spatial(call), windows, given, strict=True):
        table = counts_of(window, counted(padded, call.attrs["count_include_pad"]))
        shape = [1] * total.ndim
        shape[n] = len(table)
        counts = counts * np.reshape(table, shape)
    return quotient(total, counts)


def quotient(total: Array, count: Any) -> Array:
    """Divide by counts; integers are rounded toward zero."""
    if dtypes.is_float(dtypes.from_numpy(total.dtype)):
        return total / count  # type: ignore[no-any-return]
    found = np.abs(total.astype(object)) // count * np.sign(total)
    return found.astype(total.dtype)  # type: ignore[no-any-return]


def _evaluate_bins(kind: str) -> Callable[..., Array]:
    """Return the meaning of an adaptive pooling: one dimension after the other."""

    def evaluate(call: Result, x: Array) -> Array:
        found = wide(x)
        counts: Any = 1
        for n in _spatial(call):
            out = call.tensor.shape[n]
            assert isinstance(out, int)
            parts = bins(x.shape[n], out)
            if not parts:
                continue
            reduce = np.max if kind == "max" else np.sum
            pieces = [
                np.asarray(reduce(np.take(found, range(*part), n), axis=n, keepdims=True))
                for part in parts
            ]
            found = np.concatenate([piece.astype(found.dtype) for piece in pieces], n)
            shape = [1] * x.ndim
            shape[n] = out
            counts = counts * np.reshape([end - start for start, end in parts], shape)
        return rounded(found if kind == "max" else quotient(found, counts), call.tensor)

    return evaluate


# -- definitions ----------------------------------------------------------------------------------


def _define(kind: str) -> Callable[..., te.Tensor]:
    def define(call: Result, x: te.Tensor) -> te.Tensor:
        attrs = call.attrs
        sizes = [x.static_shape[n] for n in _spatial(call)]
        of = Pool(
            kind, _windows(attrs, sizes), attrs["layout"], _given_windows(attrs, sizes),
            attrs.get("count_include_pad", False), attrs.get("p", 2.0),
        )  # fmt: skip
        return pool(x, of)

    return define


def _define_bins(kind: str) -> Callable[..., te.Tensor]:
    def define(call: Result, x: te.Tensor) -> te.Tensor:
        where = _spatial(call)
        out = [extent for n in where if isinstance(extent := call.tensor.shape[n], int)]
        if out == [1] * len(where) and dtypes.is_float(x.dtype):
            reduce = reductions.max if kind == "max" else reductions.mean
            made: te.Tensor = reduce(x, where, True)
            return made
        return adaptive_pool(x, kind, out, call.attrs["layout"])

    return define


# -- the table ------------------------------------------------------------------------------------


def _layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts for images in any layout that keeps the spatial dimensions whole."""
    del current
    old, new = layout_of(call.attrs["layout"]), layout_of(wanted)
    if sorted(old.dimensions) != sorted(new.dimensions):
        return None
    if any(new.factor(axis) > 1 for axis in "DHW" if axis in new.axes):
        return None
    return Layouts((wanted,), (wanted,), {"layout": wanted, "out_layout": ""})


def _layout_attributes(rank: int) -> tuple[Attribute, ...]:
    return (
        Attribute("layout", layout, f"NC{SPATIAL[rank]}", "layout of the images"),
        Attribute("out_layout", layout_or_same, "", "the same: only `layout_transform` changes it"),
    )


def _attributes(rank: int, kind: str) -> tuple[Attribute, ...]:
    one = (1,) * rank
    more: tuple[Attribute, ...] = ()
    if kind == "avg":
        more = (Attribute("count_include_pad", boolean, False, "a mean counts zeros around"),)
    if kind == "lp":
        more = (Attribute("p", finite, 2.0, "power of the sums, more than 0"),)
    return (
        Attribute("pool_size", extents(rank), one, "extents of a window"),
        Attribute("strides", extents(rank), one, "distance between windows"),
        Attribute("dilation", extents(rank), one, "distance between elements of a window"),
        Attribute("padding", padding(rank), (0,) * 2 * rank, "elements around that do not count"),
        *_layout_attributes(rank),
        Attribute("ceil_mode", boolean, False, "the last window may reach beyond the images"),
        *more,
    )


_WORDS = {
    "max": "The largest element of each window.",
    "avg": "The mean of each window; that of integers is rounded toward zero.",
    "lp": "The root of the sum of powers of each window: (Σ|x|**p)**(1/p).",
}


def _pool(kind: str, rank: int) -> GraphOperator:
    return GraphOperator(
        f"nn.{kind}_pool{rank}d", ("data",), _pooled(rank, kind), _evaluate(kind), Pattern.ANCHOR,
        _define(kind), _attributes(rank, kind), _WORDS[kind], _layouts,
        kernel="pool2d" if rank == 2 and kind != "lp" else "",
    )  # fmt: skip


def _adaptive(kind: str, rank: int) -> GraphOperator:
    size = Attribute("output_size", optional(extents(rank)), None,
                     "extents of the result; None: those of the images")  # fmt: skip
    return GraphOperator(
        f"nn.adaptive_{kind}_pool{rank}d", ("data",), _pooled_to(rank, is_global=False),
        _evaluate_bins(kind), Pattern.ANCHOR, _define_bins(kind),
        (size, *_layout_attributes(rank)),
        f"The {kind} pooling whose windows, of about equal extents, cover the images.",
        _layouts,
    )  # fmt: skip


def _global(kind: str, rank: int) -> GraphOperator:
    return GraphOperator(
        f"nn.global_{kind}_pool{rank}d", ("data",), _pooled_to(rank, is_global=True),
        _evaluate_bins(kind), Pattern.ANCHOR, _define_bins(kind), _layout_attributes(rank),
        f"{_WORDS[kind].split(' of each')[0]} of each channel; the spatial extents become 1.",
        _layouts, kernel="reduction",
    )  # fmt: skip


TABLE = (
    *(_pool(kind, rank) for kind in ("max", "avg", "lp") for rank in SPATIAL),
    *(_global(kind, rank) for kind in ("max", "avg") for rank in SPATIAL),
    *(_adaptive(kind, rank) for kind in ("max", "avg") for rank in SPATIAL),
)
"""The operators of this module."""
