"""Operators that move elements: each element of the output is an element of an input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import ANY, MAX_RANK, Dimension, TensorType, TupleType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    axis_or_all,
    boolean,
    integer,
    integers,
    positive,
    sections,
)
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    Pattern,
    Result,
)
from dlcompiler.graph.operators.layouts import Layouts, layout_of, moved_axis
from dlcompiler.graph.operators.relations import axis_of, same_dtype
from dlcompiler.ops import transforms
from dlcompiler.ops.helpers import INJECTIVE, tensor

MAX_SECTIONS = 2**20
"""Most sections of a split: an extent 0 has any number of them; [1]."""


def _elements(shape: Sequence[Dimension]) -> int | None:
    """Return the number of elements; None if it is not known."""
    return None if ANY in shape else math.prod(e for e in shape if isinstance(e, int))


# -- reshape and its kin --------------------------------------------------------------------------


def _reshaped(call: CallTypes) -> TensorType:
    """Return the type of a reshape: 0 copies an extent, -1 is what remains."""
    kind = call.tensor(0)
    wanted: list[Dimension] = []
    for place, extent in enumerate(call.attrs["newshape"]):
        if extent == 0 and not call.attrs["allowzero"]:
            if place >= kind.rank:
                call.fail(f"newshape copies dimension {place}, which the tensor does not have")
            wanted.append(kind.shape[place])
        elif extent < -1:
            call.fail(f"newshape has the extent {extent}", expected="-1, 0 or more")
        else:
            wanted.append(extent)
    if wanted.count(-1) > 1:
        call.fail("newshape has more than one -1")
    size = _elements(kind.shape)
    known = _elements([e for e in wanted if e != -1])
    if -1 in wanted:
        place = wanted.index(-1)
        if size is None or known is None:
            wanted[place] = ANY
        elif known == 0 or size % known:
            call.fail(f"{size} elements do not fill the shape {tuple(call.attrs['newshape'])}")
        else:
            wanted[place] = size // known
    elif size is not None and known is not None and size != known:
        call.fail(
            f"the shapes have {size} and {known} elements",
            got=f"data {kind}, newshape {tuple(call.attrs['newshape'])}",
        )
    return TensorType(tuple(wanted), kind.dtype)


def _like_type(call: CallTypes) -> TensorType:
    kind, like = call.tensor(0), call.tensor(1)
    sizes = _elements(kind.shape), _elements(like.shape)
    if None not in sizes and sizes[0] != sizes[1]:
        call.fail(f"the shapes have {sizes[0]} and {sizes[1]} elements")
    return TensorType(like.shape, kind.dtype)


def _flattened(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    if not kind.rank:
        call.fail("the tensor has no dimensions")
    rest = _elements(kind.shape[1:])
    return TensorType((kind.shape[0], ANY if rest is None else rest), kind.dtype)


def _expanded(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    axis = axis_of(call, call.attrs["axis"], kind.rank + 1)
    ones = (1,) * min(call.attrs["num_newaxis"], MAX_RANK + 1)
    return TensorType((*kind.shape[:axis], *ones, *kind.shape[axis:]), kind.dtype)


def _squeezed(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    axis = call.attrs["axis"]
    if axis is None:
        if ANY in kind.shape:
            call.fail("an extent is not known: name the axes")
        gone = {n for n, extent in enumerate(kind.shape) if extent == 1}
    else:
        gone = {axis_of(call, n, kind.rank) for n in axis}
    if wrong := [n for n in sorted(gone) if kind.shape[n] not in (1, ANY)]:
        call.fail(f"dimension {wrong[0]} has the extent {kind.shape[wrong[0]]}, not 1")
    return TensorType(tuple(e for n, e in enumerate(kind.shape) if n not in gone), kind.dtype)


def _in_shape(call: Result, x: Array, *_: Array) -> Array:
    return np.ascontiguousarray(x).reshape(call.tensor.shape)  # type: ignore[arg-type]  # all known in a run


def _define_reshape(call: Result, x: te.Tensor, *_: te.Tensor) -> te.Tensor:
    return transforms.reshape(x, call.tensor.shape)


def _view(
    name: str, relation: Any, attributes: Sequence[Attribute] = (), doc: str = ""
) -> GraphOperator:
    """Return an operator whose output has the elements of its input in the same order."""
    return GraphOperator(
        name, ("data",), relation, _in_shape, Pattern.INJECTIVE, _define_reshape,
        tuple(attributes), doc, notes={"is_reshape": True},
    )  # fmt: skip


_VIEWS = (
    _view("reshape", _reshaped, (
        Attribute("newshape", integers, doc="the shape; 0 copies an extent, -1 is what remains"),
        Attribute("allowzero", boolean, False, "take an extent 0 as it is"),
    ), "The same elements in another shape."),
    GraphOperator(
        "reshape_like", ("data", "shape_like"), _like_type, _in_shape, Pattern.INJECTIVE,
        _define_reshape, doc="The same elements in the shape of another tensor.",
    ),
    _view("nn.batch_flatten", _flattened, doc="All dimensions but the first as one."),
    _view("expand_dims", _expanded, (
        Attribute("axis", integer, doc="place of the first new dimension"),
        Attribute("num_newaxis", positive, 1, "number of new dimensions [1]"),
    ), "Insert dimensions of extent 1."),
    _view("squeeze", _squeezed, (
        Attribute("axis", axis_or_all, None, "the dimensions; None: all of extent 1"),
    ), "Remove dimensions of extent 1."),
)  # fmt: skip


# -- transpose ------------------------------------------------------------------------------------


def _order(call: CallTypes | Result, rank: int) -> list[int]:
    axes = call.attrs["axes"]
    return list(reversed(range(rank))) if axes is None else [n % max(rank, 1) for n in axes]


def _transposed(call: CallTypes) -> TensorType:
    kind = call.tensor(0)
    order = _order(call, kind.rank)
    if sorted(order) != list(range(kind.rank)) or any(
        not -kind.rank <= n < kind.rank for n in call.attrs["axes"] or ()
    ):
        call.fail(f"axes {call.attrs['axes']} are no permutation of {kind.rank} dimensions")
    return TensorType(tuple(kind.shape[n] for n in order), kind.dtype)


_TRANSPOSE = GraphOperator(
    "transpose", ("data",), _transposed,
    lambda call, x: np.ascontiguousarray(np.transpose(x, _order(call, x.ndim))).reshape(
        call.tensor.shape
    ),
    Pattern.INJECTIVE,
    lambda call, x: transforms.transpose(x, _order(call, x.ndim)),
    (Attribute("axes", axis_or_all, None, "which dimension comes where; None: reversed"),),
    "Permute the dimensions.",
)  # fmt: skip


# -- concatenate, stack and split -----------------------------------------------------------------


def _parts(call: CallTypes) -> tuple[TensorType, ...]:
    kinds = call.tensors(0)
    if not kinds:
        call.fail("no tensor is given")
    same_dtype(call, kinds)
    return kinds


def _concatenated(call: CallTypes) -> TensorType:
    kinds = _parts(call)
    first = kinds[0]
    axis = axis_of(call, call.attrs["axis"], first.rank)
    shape = list(first.shape)
    for kind in kinds[1:]:
        if kind.rank != first.rank:
            call.fail("the tensors have different numbers of dimensions")
        for n, extent in enumerate(kind.shape):
            if n == axis:
                shape[n] = ANY if ANY in (shape[n], extent) else shape[n] + extent  # type: ignore[operator]  # both are known
            elif ANY not in (shape[n], extent) and shape[n] != extent:
                call.fail(f"dimension {n} has the extents {shape[n]} and {extent}")
            elif shape[n] is ANY:
                shape[n] = extent
    return TensorType(tuple(shape), first.dtype)


def _stacked(call: CallTypes) -> TensorType:
    kinds = _parts(call)
    if any(kind != kinds[0] for kind in kinds):
        call.fail("the tensors have different types")
    axis = axis_of(call, call.attrs["axis"], kinds[0].rank + 1)
    shape = kinds[0].shape
    return TensorType((*shape[:axis], len(kinds), *shape[axis:]), kinds[0].dtype)


def _split_places(call: CallTypes | Result, extent: int) -> list[int]:
    """Return where the pieces of a split begin, and the end of the last one."""
    given = call.attrs["indices_or_sections"]
    if isinstance(given, int):
        return [extent // given * n for n in range(given + 1)]
    return [0, *(min(max(n, 0), extent) for n in given), extent]


def _split_types(call: CallTypes) -> TupleType:
    kind = call.tensor(0)
    axis = axis_of(call, call.attrs["axis"], kind.rank)
    extent = kind.shape[axis]
    given = call.attrs["indices_or_sections"]
    if not isinstance(extent, int):
        call.fail(f"the extent of dimension {axis} is not known")
    if isinstance(given, int) and given > MAX_SECTIONS:
        call.fail("too many sections", got=given, expected=f"at most {MAX_SECTIONS}")
    if not isinstance(given, int) and min(given, default=0) < 0:
        call.fail("an index is before the first element", got=f"indices_or_sections={given}")
    if isinstance(given, int) and (given < 1 or extent % given):
        call.fail(f"dimension {axis} of extent {extent} has no {given} equal sections")
    places = _split_places(call, extent)
    if places != sorted(places):
        call.fail(f"the indices {given} are not in order")
    sizes = (after - before for before, after in itertools.pairwise(places))
    return TupleType(tuple(
        TensorType((*kind.shape[:axis], size, *kind.shape[axis + 1 :]), kind.dtype)
        for size in sizes
    ))  # fmt: skip


def _split(call: Result, x: Array) -> tuple[Array, ...]:
    axis = call.attrs["axis"] % x.ndim
    places = _split_places(call, x.shape[axis])[1:-1]
    return tuple(np.ascontiguousarray(part) for part in np.split(x, places, axis))


def _define_split(call: Result, x: te.Tensor) -> tuple[te.Tensor, ...]:
    axis = call.attrs["axis"] % x.ndim
    places = _split_places(call, x.static_shape[axis])
    return tuple(_part_of(x, axis, before, after) for before, after in itertools.pairwise(places))


def _part_of(x: te.Tensor, axis: int, before: int, after: int) -> te.Tensor:
    shape = (*x.shape[:axis], after - before, *x.shape[axis + 1 :])
    return tensor(
        shape, lambda *i: x[(*i[:axis], i[axis] + before, *i[axis + 1 :])], "T_split", INJECTIVE
    )


def _joined_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of joined tensors, whose extents along the axis blocks must divide."""
    axis = moved_axis(call, current[0], wanted, may_split=True)
    kinds = call.inputs[0]
    assert isinstance(kinds, TupleType)
    if axis is None:
        return None
    old, new = layout_of(current[0]), layout_of(wanted)
    place, letter = call.attrs["axis"] % len(old.axes), new.axes[axis]
    for kind in kinds.fields:
        assert isinstance(kind, TensorType)
        extent = kind.shape[place]
        if new.is_blocked and (
            not isinstance(extent, int) or extent * old.factor(letter) % new.factor(letter)
        ):
            return None
    return Layouts((wanted,), (wanted,), {"axis": axis})


def _split_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a cut along a dimension that is not split into blocks."""
    axis = moved_axis(call, current[0], wanted)
    kind = call.type
    assert isinstance(kind, TupleType)
    count = len(kind.fields)
    return None if axis is None else Layouts((wanted,), (wanted,) * count, {"axis": axis})


_AXIS = Attribute("axis", integer, 0, "the dimension; negative ones count from the end")
_JOINS = (
    GraphOperator(
        "concatenate", ("data",), _concatenated,
        lambda call, parts: np.concatenate(parts, call.attrs["axis"]), Pattern.INJECTIVE,
        lambda call, parts: transforms.concatenate(parts, call.attrs["axis"]), (_AXIS,),
        "Join tensors along a dimension.", _joined_layouts,
    ),
    GraphOperator(
        "stack", ("data",), _stacked, lambda call, parts: np.stack(parts, call.attrs["axis"]),
        Pattern.INJECTIVE,
        lambda call, parts: transforms.stack(
            parts, call.attrs["axis"] % (parts[0].ndim + 1)
        ),
        (_AXIS,), "Join tensors of one type along a new dimension.",
    ),
    GraphOperator(
        "split", ("data",), _split_types, _split, Pattern.INJECTIVE, _define_split,
        (Attribute("indices_or_sections", sections, doc="how many sections, or where to cut"),
         _AXIS),
        "Cut a tensor along a dimension.", _split_layouts,
    ),
)  # fmt: skip


TABLE = (*_VIEWS, _TRANSPOSE, *_JOINS)
"""The operators of this module."""
