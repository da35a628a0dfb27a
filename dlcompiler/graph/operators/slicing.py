"""Parts and repetitions of tensors: slices, tiles, reversed and masked sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    axis_or_all,
    finite,
    integer,
    integers,
    lengths,
    non_negative,
    one_of,
    optional,
)
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.layouts import Layouts, layout_of
from dlcompiler.graph.operators.relations import (
    axes_of,
    axis_of,
    broadcast,
    expect,
    index_type,
    same_extent,
    static,
)
from dlcompiler.graph.operators.values import literal, number
from dlcompiler.ops import elementwise, transforms
from dlcompiler.ops.helpers import BROADCAST, INJECTIVE, tensor
from dlcompiler.ops.indexing import clamped

# -- slices ---------------------------------------------------------------------------------------


def _parts(call: CallTypes | Result, shape: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the first index, the step and the number of elements for each dimension."""
    attrs = call.attrs
    axes = range(len(attrs["begin"])) if attrs["axes"] is None else attrs["axes"]
    found = [(0, 1, extent) for extent in shape]
    steps = attrs["strides"] or (1,)
    for n, axis in enumerate(axes):
        extent = shape[axis]
        begin, end = attrs["begin"][n], attrs["end"][n]
        step = steps[n if len(steps) > 1 else 0]
        if attrs["slice_mode"] == "size":
            begin = max(begin + extent, 0) if begin < 0 else begin
            end, step = (extent if end < 0 else begin + end), 1
        places = range(*slice(begin, end, step).indices(extent))
        # A step that is not taken may be too large for arithmetic on indices.
        found[axis] = (places.start if places else 0, step if len(places) > 1 else 1, len(places))
    return found


def _sliced(call: CallTypes) -> TensorType:
    kind, attrs = call.tensor(0), call.attrs
    axes = range(len(attrs["begin"])) if attrs["axes"] is None else axes_of(call, kind.rank, "axes")
    given = {name: attrs[name] for name in ("begin", "end", "strides") if attrs[name] is not None}
    for name, values in given.items():
        if len(values) != len(axes) and (name != "strides" or len(values) > 1):
            call.fail(f"{name} has {len(values)} numbers", expected=f"{len(axes)}, one per axis")
    if len(axes) > kind.rank:
        call.fail(f"{len(axes)} axes are sliced, the tensor has {kind.rank}")
    if 0 in (attrs["strides"] or ()):
        call.fail("a stride is 0", got=f"strides={attrs['strides']}")
    known = [extent if isinstance(extent, int) else 0 for extent in kind.shape]
    parts = _parts(call, known)
    cut = [axis % kind.rank for axis in (axes if attrs["axes"] is None else attrs["axes"])]
    shape = tuple(
        extent if n not in cut else ANY if extent is ANY else count
        for n, (extent, (_, _, count)) in enumerate(zip(kind.shape, parts, strict=True))
    )
    return TensorType(shape, kind.dtype)


def _slice(call: Result, x: Array) -> Array:
    found = x
    for n, (first, step, count) in enumerate(_parts(call, x.shape)):
        found = found.take([first + k * step for k in range(count)], n)
    return np.ascontiguousarray(found).reshape(static(call.tensor))


def _define_slice(call: Result, x: te.Tensor) -> te.Tensor:
    return transforms.strided_slice(x, _parts(call, x.static_shape))


def _slice_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a slice: dimensions that are split are not cut."""
    if not current[0]:
        return None
    old, new = layout_of(current[0]), layout_of(wanted)
    if sorted(old.dimensions) != sorted(new.dimensions):
        return None
    attrs = call.attrs
    places = range(len(attrs["begin"])) if attrs["axes"] is None else attrs["axes"]
    letters = [old.axes[axis % len(old.axes)] for axis in places]
    if any(not axis.isupper() or old.factor(axis) > 1 or new.factor(axis) > 1 for axis in letters):
        return None
    return Layouts((wanted,), (wanted,), {"axes": tuple(new.index(axis) for axis in letters)})


def _like_type(call: CallTypes) -> TensorType:
    kind, other = call.tensor(0), call.tensor(1)
    axes = axes_of(call, kind.rank, "axes")
    if call.attrs["axes"] is None and other.rank != kind.rank:
        call.fail("the tensors have different numbers of dimensions", hint="name the axes")
    shape = list(kind.shape)
    for n in axes:
        if n >= other.rank:
            call.fail(f"argument shape_like has no dimension {n}")
        extent, least = shape[n], other.shape[n]
        if isinstance(extent, int) and isinstance(least, int) and least > extent:
            call.fail(f"dimension {n} has {extent} elements, less than {least}")
        shape[n] = least
    return TensorType(tuple(shape), kind.dtype)


def _slice_like(call: Result, x: Array, other: Array) -> Array:
    del other
    return x[tuple(slice(extent) for extent in static(call.tensor))].copy()


def _define_slice_like(call: Result, x: te.Tensor, other: te.Tensor) -> te.Tensor:
    del other
    return transforms.strided_slice(x, [(0, 1, extent) for extent in static(call.tensor)])


_SLICES = (
    GraphOperator(
        "strided_slice", ("data",), _sliced, _slice, Pattern.INJECTIVE, _define_slice,
        (Attribute("begin", integers, doc="first indices; negative ones count from the end"),
         Attribute("end", integers, doc="the slice ends before these indices"),
         Attribute("strides", optional(integers), None, "steps; None: 1"),
         Attribute("axes", optional(integers), None, "the dimensions; None: the first ones"),
         Attribute("slice_mode", one_of("end", "size"), "end",
                   "`size`: `end` has numbers of elements, a negative one up to the end")),
        "A part of a tensor, cut as slices of Python cut lists.", _slice_layouts,
    ),
    GraphOperator(
        "slice_like", ("data", "shape_like"), _like_type, _slice_like, Pattern.INJECTIVE,
        _define_slice_like,
        (Attribute("axes", axis_or_all, None, "the dimensions that are cut; None: all"),),
        "The first elements, as many as another tensor has.",
    ),
)  # fmt: skip


# -- repetitions ----------------------------------------------------------------------------------


def _broadcast_type(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    like = call.tensor(1).shape if len(call.args) > 1 else call.attrs["shape"]
    shape = broadcast(call, [kind.shape, like])
    if len(shape) != len(like) or not all(map(same_extent, shape, like)):
        call.fail("the tensor has more elements than the shape", expected=f"at most {like}")
    return TensorType(tuple(like), kind.dtype)


def _broadcast(call: Result, x: Array, *_: Array) -> Array:
    return np.broadcast_to(x, static(call.tensor)).copy()


def _define_broadcast(call: Result, x: te.Tensor, *_: te.Tensor) -> te.Tensor:
    return elementwise.broadcast_to(x, static(call.tensor))


def _tiled(call: CallTypes) -> TensorType:
    kind, reps = call.tensor(0), call.attrs["reps"]
    rank = max(kind.rank, len(reps))
    shape = [*[1] * (rank - kind.rank), *kind.shape]
    times = [*[1] * (rank - len(reps)), *reps]
    return TensorType(tuple(map(_times, shape, times)), kind.dtype)


def _repeated(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    axis = axis_of(call, call.attrs["axis"], kind.rank)
    shape = list(kind.shape)
    shape[axis] = _times(shape[axis], call.attrs["repeats"])
    return TensorType(tuple(shape), kind.dtype)


def _times(extent: Dimension, count: int) -> Dimension:
    return extent * count if isinstance(extent, int) else ANY


def _repeat(call: Result, x: Array) -> Array:
    return np.repeat(x, call.attrs["repeats"], call.attrs["axis"])


_REPETITIONS = (
    GraphOperator(
        "broadcast_to", ("data",), _broadcast_type, _broadcast, Pattern.BROADCAST,
        _define_broadcast, (Attribute("shape", lengths, doc="extents of the result"),),
        "Repeat a tensor along dimensions where its extent is 1.",
    ),
    GraphOperator(
        "broadcast_to_like", ("data", "broadcast_type"), _broadcast_type, _broadcast,
        Pattern.BROADCAST, _define_broadcast,
        doc="Repeat a tensor to the shape of another one.",
    ),
    GraphOperator(
        "tile", ("data",), _tiled, lambda call, x: np.tile(x, call.attrs["reps"]).reshape(
            static(call.tensor)), Pattern.BROADCAST,
        lambda call, x: transforms.tile(x, call.attrs["reps"]),
        (Attribute("reps", lengths, doc="how often, for the last dimensions"),),
        "Repeat a tensor as a whole.",
    ),
    GraphOperator(
        "repeat", ("data",), _repeated, _repeat, Pattern.BROADCAST,
        lambda call, x: transforms.repeat(x, call.attrs["repeats"], call.attrs["axis"] % x.ndim),
        (Attribute("repeats", non_negative, doc="how often each element"),
         Attribute("axis", integer, doc="the dimension")),
        "Repeat each element along a dimension.",
    ),
)  # fmt: skip


# -- sequences ------------------------------------------------------------------------------------


def _reversed_type(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    axis_of(call, call.attrs["axis"], kind.rank)
    return kind


def _two_axes(call: CallTypes, first: int, second: int) -> tuple[int, int]:
    kind = call.tensor(0)
    axes = axis_of(call, first, kind.rank, "seq_axis"), axis_of(call, second, kind.rank,
                                                                "batch_axis")  # fmt: skip
    if axes[0] == axes[1]:
        call.fail("the sequences and the batch have one dimension")
    lengths_ = index_type(call, 1)
    expect(call, 1, (kind.shape[axes[1]],), lengths_.dtype)
    return axes


def _reverse_sequence_type(call: CallTypes) -> TensorType:
    _two_axes(call, call.attrs["seq_axis"], call.attrs["batch_axis"])
    return call.tensor(0)


def _reverse_sequence(call: Result, x: Array, counts: Array) -> Array:
    along, batch = (call.attrs[name] % x.ndim for name in ("seq_axis", "batch_axis"))
    rows = np.moveaxis(x, (batch, along), (0, 1)).copy()
    for row, count in zip(rows, counts.astype(np.int64), strict=True):
        length = min(max(int(count), 0), len(row))
        row[:length] = row[:length][::-1].copy()
    return np.ascontiguousarray(np.moveaxis(rows, (0, 1), (batch, along)))


def _define_reverse_sequence(call: Result, x: te.Tensor, counts: te.Tensor) -> te.Tensor:
    along, batch = (call.attrs[name] % x.ndim for name in ("seq_axis", "batch_axis"))
    extent = x.static_shape[along]

    def element(*i: Any) -> Any:
        count = clamped(counts[i[batch]], 0, extent)
        place = te.select(i[along] < count, count - 1 - i[along], i[along])
        return x[(*i[:along], place, *i[along + 1 :])]

    return tensor(x.shape, element, "T_reverse_sequence", INJECTIVE)


def _mask_type(call: CallTypes) -> TensorType:
    kind, axis = call.tensor(0), call.attrs["axis"]
    if kind.rank < 2 or axis not in (0, 1):
        call.fail("axis is not 0 or 1 of a tensor with two dimensions or more", got=f"axis={axis}")
    _two_axes(call, axis, 1 - axis)
    return kind


def _mask(call: Result, x: Array, counts: Array) -> Array:
    rows = x if call.attrs["axis"] == 1 else np.swapaxes(x, 0, 1)
    places = np.arange(rows.shape[1]) < counts.astype(np.int64)[:, None]
    kept = places.reshape(*places.shape, *[1] * (x.ndim - 2))
    made = np.where(kept, rows, number(call.attrs["mask_value"], call.tensor.dtype))
    return np.ascontiguousarray(made if call.attrs["axis"] == 1 else np.swapaxes(made, 0, 1))


def _define_mask(call: Result, x: te.Tensor, counts: te.Tensor) -> te.Tensor:
    axis, value = call.attrs["axis"], call.attrs["mask_value"]

    def element(*i: Any) -> Any:
        is_kept = i[axis] < counts[i[1 - axis]].astype("index")
        return te.select(is_kept, x[i], literal(value, x.dtype))

    return tensor(x.shape, element, "T_sequence_mask", BROADCAST)


_SEQUENCES = (
    GraphOperator(
        "reverse", ("data",), _reversed_type,
        lambda call, x: np.flip(x, call.attrs["axis"]).copy(), Pattern.INJECTIVE,
        lambda call, x: transforms.flip(x, call.attrs["axis"] % x.ndim),
        (Attribute("axis", integer, doc="the dimension"),), "Reverse the order along a dimension.",
    ),
    GraphOperator(
        "reverse_sequence", ("data", "seq_lengths"), _reverse_sequence_type, _reverse_sequence,
        Pattern.INJECTIVE, _define_reverse_sequence,
        (Attribute("seq_axis", integer, 1, "the dimension of a sequence"),
         Attribute("batch_axis", integer, 0, "the dimension of the sequences' numbers")),
        "Reverse the first elements of each sequence, as many as its length.",
    ),
    GraphOperator(
        "sequence_mask", ("data", "valid_length"), _mask_type, _mask, Pattern.INJECTIVE,
        _define_mask,
        (Attribute("mask_value", finite, 0.0, "what stands behind the end of a sequence"),
         Attribute("axis", integer, 0, "the dimension of a sequence; the other is that of their "
                   "numbers")),
        "Sequences of one length, with a value behind the end of each.",
    ),
)  # fmt: skip

TABLE = (*_SLICES, *_REPETITIONS, *_SEQUENCES)
"""The operators of this module."""
