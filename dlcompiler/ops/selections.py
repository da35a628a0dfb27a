"""The operators that select, repeat and rearrange elements of a tensor.

=================  =============================================================================
strided_slice      ``size`` elements of each dimension, from ``begin`` on, ``strides`` apart
split              equal ``sections`` of a dimension; each is a result
flip               a dimension in the opposite order
tile               the tensor ``reps`` times along its dimensions
repeat             each element ``repeats`` times along a dimension
reshape            the same elements in another shape, ``to``
take               slices of a dimension at indices
gather             an element of a dimension for each index
embedding          rows of a table at indices
one_hot            1 at the position that an index names, else 0
depth_to_space     channels moved into ``block`` × ``block`` pixels; ``mode`` is DCR or CRD
space_to_depth     pixels moved into channels
=================  =============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops import indexing, rearranging, transforms
from dlcompiler.ops.layouts import layout_of
from dlcompiler.ops.movement import DTYPES, Operand, movement, of_data
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import (
    checked_dimension,
    checked_dtype,
    numbers,
    numbers_text,
    shape_of,
    shape_text,
)
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

Shape = Sequence[int] | str
INDICES = ("int32", "int64")
"""Dtypes of indices."""


def _shape(shape: Shape, where: str) -> tuple[str, tuple[int, ...]]:
    text = shape_text(shape, where)
    return text, shape_of(text)


def _at_least(value: Any, least: int, name: str, where: str) -> int:
    if type(value) is not int or value < least:
        raise TuningError(
            where, f"{name} is not valid", got=repr(value), expected=f"an int from {least} on"
        )
    return value


# -- slices ---------------------------------------------------------------------------------------


def _slice_workload(
    *, shape: Shape, begin: Shape, size: Shape, strides: Shape = "", dtype: str = "float32"
) -> Workload:
    """Return the workload of a slice: for each dimension first index, number, and step."""
    where = "strided_slice"
    text, extents = _shape(shape, where)
    first, count = numbers(begin), numbers(size)
    steps = numbers(strides) or (1,) * len(extents)
    if not len(first) == len(count) == len(steps) == len(extents):
        raise TuningError(where, "not one number for each dimension", got=f"{begin} and {size}")
    for start, n, step, extent in zip(first, count, steps, extents, strict=True):
        last = start + (n - 1) * step
        if n < 0 or step == 0 or (n and not (0 <= start < extent and 0 <= last < extent)):
            raise TuningError(
                where, "the slice is not inside the tensor", got=f"{n} elements from {start} on",
                expected=f"indices from 0 to {extent - 1}",
            )  # fmt: skip
    return Workload.of(
        where, shape=text, begin=numbers_text(first), size=numbers_text(count),
        strides=numbers_text(steps), dtype=checked_dtype(dtype, DTYPES, where),
    )  # fmt: skip


def _parts(work: Workload) -> list[tuple[int, int, int]]:
    """Return for each dimension the first index, the step and the number."""
    given = [numbers(work[name]) for name in ("begin", "strides", "size")]
    return list(zip(*given, strict=True))


def _sliced(work: Workload, data: Array) -> Array:
    for n, (first, step, count) in enumerate(_parts(work)):
        data = data.take([first + k * step for k in range(count)], axis=n)
    return data


STRIDED_SLICE = movement(
    "strided_slice", _slice_workload, of_data,
    lambda work, data: transforms.strided_slice(data, _parts(work)), _sliced,
)  # fmt: skip


def _split_workload(
    *, shape: Shape, sections: int, axis: int = 0, dtype: str = "float32"
) -> Workload:
    """Return the workload of a division of a dimension into equal sections."""
    text, extents = _shape(shape, "split")
    n = checked_dimension(axis, len(extents), "split")
    count = _at_least(sections, 1, "sections", "split")
    if extents[n] % count:
        raise TuningError("split", "the sections are not equal", got=f"{extents[n]} / {count}")
    kind = checked_dtype(dtype, DTYPES, "split")
    return Workload.of("split", shape=text, sections=count, axis=n, dtype=kind)


def _split(work: Workload, data: Tensor) -> list[Tensor]:
    n, extents = work["axis"], data.static_shape
    count = extents[n] // work["sections"]
    made = []
    for start in range(work["sections"]):
        parts = [(0, 1, extent) for extent in extents]
        parts[n] = (start * count, 1, count)
        made.append(transforms.strided_slice(data, parts, f"T_split{start}"))
    return made


SPLIT = movement(
    "split", _split_workload, of_data, _split,
    lambda work, data: np.split(data, work["sections"], axis=work["axis"]),
)  # fmt: skip


def _flip_workload(*, shape: Shape, axis: int = 0, dtype: str = "float32") -> Workload:
    """Return the workload that reverses a dimension."""
    text, extents = _shape(shape, "flip")
    n = checked_dimension(axis, len(extents), "flip")
    return Workload.of("flip", shape=text, axis=n, dtype=checked_dtype(dtype, DTYPES, "flip"))


FLIP = movement(
    "flip", _flip_workload, of_data,
    lambda work, data: transforms.flip(data, work["axis"]),
    lambda work, data: np.flip(data, work["axis"]),
)  # fmt: skip


# -- repetition, other shapes ---------------------------------------------------------------------


def _tile_workload(*, shape: Shape, reps: Shape, dtype: str = "float32") -> Workload:
    """Return the workload that repeats a tensor along its dimensions."""
    text, _ = _shape(shape, "tile")
    times = tuple(_at_least(n, 0, "reps", "tile") for n in numbers(reps))
    kind = checked_dtype(dtype, DTYPES, "tile")
    return Workload.of("tile", shape=text, reps=numbers_text(times), dtype=kind)


TILE = movement(
    "tile", _tile_workload, of_data,
    lambda work, data: transforms.tile(data, numbers(work["reps"])),
    lambda work, data: np.tile(data, numbers(work["reps"])),
)  # fmt: skip


def _repeat_workload(
    *, shape: Shape, repeats: int, axis: int = 0, dtype: str = "float32"
) -> Workload:
    """Return the workload that repeats each element along a dimension."""
    text, extents = _shape(shape, "repeat")
    n = checked_dimension(axis, len(extents), "repeat")
    times = _at_least(repeats, 1, "repeats", "repeat")
    kind = checked_dtype(dtype, DTYPES, "repeat")
    return Workload.of("repeat", shape=text, repeats=times, axis=n, dtype=kind)


REPEAT = movement(
    "repeat", _repeat_workload, of_data,
    lambda work, data: transforms.repeat(data, work["repeats"], work["axis"]),
    lambda work, data: np.repeat(data, work["repeats"], axis=work["axis"]),
)  # fmt: skip


def _reshape_workload(*, shape: Shape, to: Shape, dtype: str = "float32") -> Workload:
    """Return the workload of another shape with the same elements."""
    (text, old), (other, new) = _shape(shape, "reshape"), _shape(to, "reshape")
    if math.prod(old) != math.prod(new):
        raise TuningError("reshape", "another number of elements", got=other, expected=text)
    kind = checked_dtype(dtype, DTYPES, "reshape")
    return Workload.of("reshape", shape=text, to=other, dtype=kind)


RESHAPE = movement(
    "reshape", _reshape_workload, of_data,
    lambda work, data: transforms.reshape(data, shape_of(work["to"])),
    lambda work, data: data.reshape(shape_of(work["to"])),
)  # fmt: skip


# -- indices --------------------------------------------------------------------------------------


def _take_workload(
    *, shape: Shape, indices: Shape, axis: int = 0, dtype: str = "float32",
    index_dtype: str = "int32",
) -> Workload:  # fmt: skip
    """Return the workload of slices at indices; one that is outside takes the nearest slice."""
    (text, extents), (places, _) = _shape(shape, "take"), _shape(indices, "take")
    n = checked_dimension(axis, len(extents), "take")
    if not extents[n]:
        raise TuningError("take", "the dimension has no elements", got=text)
    return Workload.of(
        "take", shape=text, indices=places, axis=n, dtype=checked_dtype(dtype, DTYPES, "take"),
        index_dtype=checked_dtype(index_dtype, INDICES, "take"),
    )  # fmt: skip


def _with_indices(work: Workload) -> list[Operand]:
    extent = shape_of(work["shape"])[work["axis"]]
    return [
        *of_data(work),
        Operand("indices", shape_of(work["indices"]), work["index_dtype"], extent),
    ]


TAKE = movement(
    "take", _take_workload, _with_indices,
    lambda work, data, indices: indexing.take(data, indices, work["axis"], 0, "clip"),
    lambda work, data, indices: np.take(data, indices, axis=work["axis"], mode="clip"),
)  # fmt: skip


def _gather_workload(
    *, shape: Shape, indices: Shape, axis: int = 0, dtype: str = "float32",
    index_dtype: str = "int32",
) -> Workload:  # fmt: skip
    """Return the workload of an element for each index; a negative one counts from the end."""
    (text, extents), (places, own) = _shape(shape, "gather"), _shape(indices, "gather")
    n = checked_dimension(axis, len(extents), "gather")
    rest = [(a, b) for k, (a, b) in enumerate(zip(extents, own, strict=False)) if k != n]
    if len(own) != len(extents) or any(b > a for a, b in rest) or not extents[n]:
        raise TuningError("gather", "the indices do not fit", got=places, expected=text)
    return Workload.of(
        "gather", shape=text, indices=places, axis=n, dtype=checked_dtype(dtype, DTYPES, "gather"),
        index_dtype=checked_dtype(index_dtype, INDICES, "gather"),
    )  # fmt: skip


def _gathered(work: Workload, data: Array, indices: Array) -> Array:
    n = work["axis"]
    cut = tuple(slice(e) if k != n else slice(None) for k, e in enumerate(indices.shape))
    return np.take_along_axis(data[cut], indices, n)


GATHER = movement(
    "gather", _gather_workload, _with_indices,
    lambda work, data, indices: indexing.gather(data, indices, work["axis"]), _gathered,
)  # fmt: skip


def _embedding_workload(
    *, rows: int, width: int, indices: Shape, dtype: str = "float32", index_dtype: str = "int32"
) -> Workload:
    """Return the workload of rows of a table; an index that is outside takes the nearest row."""
    places, _ = _shape(indices, "embedding")
    return Workload.of(
        "embedding", rows=_at_least(rows, 1, "rows", "embedding"),
        width=_at_least(width, 0, "width", "embedding"), indices=places,
        dtype=checked_dtype(dtype, DTYPES, "embedding"),
        index_dtype=checked_dtype(index_dtype, INDICES, "embedding"),
    )  # fmt: skip


def _table(work: Workload) -> list[Operand]:
    return [
        Operand("data", (work["rows"], work["width"]), work["dtype"]),
        Operand("indices", shape_of(work["indices"]), work["index_dtype"], work["rows"]),
    ]


EMBEDDING = movement(
    "embedding", _embedding_workload, _table,
    lambda work, data, indices: indexing.take(data, indices, 0, 0, "clip"),
    lambda work, data, indices: np.take(data, indices, axis=0, mode="clip"),
)  # fmt: skip


def _one_hot_workload(
    *, indices: Shape, depth: int, axis: int = -1, dtype: str = "float32",
    index_dtype: str = "int32",
) -> Workload:  # fmt: skip
    """Return the workload of a new dimension; an index that is outside gives zeros."""
    text, extents = _shape(indices, "one_hot")
    n = checked_dimension(axis, len(extents) + 1, "one_hot")
    return Workload.of(
        "one_hot", indices=text, depth=_at_least(depth, 0, "depth", "one_hot"), axis=n,
        dtype=checked_dtype(dtype, DTYPES, "one_hot"),
        index_dtype=checked_dtype(index_dtype, INDICES, "one_hot"),
    )  # fmt: skip


def _one_hot_operands(work: Workload) -> list[Operand]:
    return [Operand("indices", shape_of(work["indices"]), work["index_dtype"], work["depth"] + 1)]


def _one_hot(work: Workload, indices: Tensor) -> Tensor:
    kind = work["dtype"]
    on = te.compute((), lambda: te.const(1, kind), name="on")
    off = te.compute((), lambda: te.const(0, kind), name="off")
    return indexing.one_hot(indices, on, off, work["depth"], work["axis"], kind)


def _one_hot_of(work: Workload, indices: Array) -> Array:
    places = np.expand_dims(indices, work["axis"])
    along = [-1 if k == work["axis"] else 1 for k in range(places.ndim)]
    found = places == np.arange(work["depth"]).reshape(along)
    numbers_of: Array = found.astype(dtypes.to_numpy(work["dtype"]))
    return numbers_of


ONE_HOT = movement("one_hot", _one_hot_workload, _one_hot_operands, _one_hot, _one_hot_of)


# -- blocks of images -----------------------------------------------------------------------------


def _blocks_workload(
    name: str, shape: Shape, block: int, mode: str, layout: str, dtype: str
) -> Workload:
    text, extents = _shape(shape, name)
    _at_least(block, 1, "block", name)
    if layout not in ("NCHW", "NHWC") or mode not in ("DCR", "CRD"):
        raise TuningError(name, "no such layout or mode", got=f"{layout}, {mode}",
                          expected="NCHW or NHWC, and DCR or CRD")  # fmt: skip
    sizes = dict(zip(layout, extents, strict=True))
    divided = [sizes["C"], 1] if name == "depth_to_space" else [sizes["H"], sizes["W"]]
    by = block * block if name == "depth_to_space" else block
    if divided[0] % by or (name != "depth_to_space" and divided[1] % by):
        raise TuningError(name, "the blocks do not divide the extents", got=f"{text}, {block}")
    return Workload.of(
        name, shape=text, block=block, mode=mode, layout=layout,
        dtype=checked_dtype(dtype, DTYPES, name),
    )  # fmt: skip


def _depth_workload(
    *, shape: Shape, block: int, mode: str = "DCR", layout: str = "NCHW", dtype: str = "float32"
) -> Workload:
    """Return the workload that moves channels into blocks of pixels."""
    return _blocks_workload("depth_to_space", shape, block, mode, layout, dtype)


def _space_workload(
    *, shape: Shape, block: int, layout: str = "NCHW", dtype: str = "float32"
) -> Workload:
    """Return the workload that moves blocks of pixels into channels."""
    return _blocks_workload("space_to_depth", shape, block, "DCR", layout, dtype)


def _spread(work: Workload, data: Tensor) -> Tensor:
    layout, is_depth_first = layout_of(work["layout"]), work["mode"] == "DCR"
    return rearranging.depth_to_space(data, work["block"], layout, is_depth_first=is_depth_first)


def _spread_of(work: Workload, data: Array) -> Array:
    block, order = work["block"], "NCHW".index
    x = data if work["layout"] == "NCHW" else data.transpose(0, 3, 1, 2)
    n, c, h, w = x.shape
    inner = c // block**2
    if work["mode"] == "DCR":
        y = x.reshape(n, block, block, inner, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, inner, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    y = y.reshape(n, inner, h * block, w * block)
    return y.transpose([order(letter) for letter in work["layout"]])


def _folded_of(work: Workload, data: Array) -> Array:
    block, order = work["block"], "NCHW".index
    x = data if work["layout"] == "NCHW" else data.transpose(0, 3, 1, 2)
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    y = y.reshape(n, c * block**2, h // block, w // block)
    return y.transpose([order(letter) for letter in work["layout"]])


DEPTH_TO_SPACE = movement("depth_to_space", _depth_workload, of_data, _spread, _spread_of)
SPACE_TO_DEPTH = movement(
    "space_to_depth", _space_workload, of_data,
    lambda work, data: rearranging.space_to_depth(data, work["block"], layout_of(work["layout"])),
    _folded_of,
)  # fmt: skip
