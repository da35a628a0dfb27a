"""Operators whose indices are data: take, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import ProgramError
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    axis_or_flat,
    integer,
    non_negative,
    one_of,
    optional,
)
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import (
    axis_of,
    broadcast,
    index_type,
    same_dtype,
    same_extent,
    static,
)
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops import indexing, transforms
from dlcompiler.ops.helpers import INJECTIVE, tensor
from dlcompiler.ops.nests import scattering
from dlcompiler.te.broadcast import element_indices


def positions(name: str, indices: Array, extent: int) -> Array:
    """Return indices counted from 0; negative ones count from the end.

    Raises
    ------
    ProgramError
        If one is outside.
    """
    found = indices.astype(np.int64)
    found = np.where(found < 0, found + extent, found)
    outside = (found < 0) | (found >= extent)
    if outside.any():
        raise ProgramError(
            name, "an index is outside the dimension", kind="out_of_bounds",
            got=str(int(indices[outside].reshape(-1)[0])), expected=f"{-extent} to {extent - 1}",
        )  # fmt: skip
    return found


# -- take -----------------------------------------------------------------------------------------


def _flat_or_axis(call: CallTypes) -> tuple[tuple[Dimension, ...], int]:
    """Return the shape that is indexed, and the axis; all elements in order count as one axis."""
    kind = call.tensor(0)
    if call.attrs["axis"] is not None:
        return kind.shape, axis_of(call, call.attrs["axis"], kind.rank)
    return (ANY,) if ANY in kind.shape else (int(np.prod(static(kind))),), 0


def _shared(call: CallTypes | Result, rank: int) -> int:
    """Return the number of first dimensions that data and indices share."""
    batch: int = call.attrs["batch_dims"]
    return batch + rank if batch < 0 else batch


def _take_type(call: CallTypes) -> TensorType:
    shape, axis = _flat_or_axis(call)
    indices = index_type(call, 1)
    batch, most = _shared(call, indices.rank), min(axis, indices.rank)
    if not 0 <= batch <= most:
        call.fail(f"batch_dims is {call.attrs['batch_dims']}", expected=f"at most {most}")
    for n in range(batch):
        if not same_extent(shape[n], indices.shape[n]):
            call.fail(f"dimension {n} has the extents {shape[n]} and {indices.shape[n]}")
    own = indices.shape[batch:]
    if shape[axis] == 0 and 0 not in own:
        call.fail(f"dimension {axis} has no element to take")
    return TensorType((*shape[:axis], *own, *shape[axis + 1 :]), call.tensor(0).dtype)


def _take(call: Result, x: Array, indices: Array) -> Array:
    axis = call.attrs["axis"]
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    batch = _shared(call, indices.ndim)
    extent = max(x.shape[axis], 1)
    found = indices.astype(np.int64)
    found = found % extent if call.attrs["mode"] == "wrap" else np.clip(found, 0, extent - 1)
    if not batch:
        return np.take(x, found, axis).reshape(static(call.tensor))
    made = np.empty(static(call.tensor), x.dtype)
    for place in np.ndindex(*x.shape[:batch]):
        made[place] = np.take(x[place], found[place], axis - batch)
    return made


def _define_take(call: Result, x: te.Tensor, indices: te.Tensor) -> te.Tensor:
    axis, mode = call.attrs["axis"], call.attrs["mode"]
    if axis is None:
        x, axis = transforms.reshape(x, (-1,)), 0
    batch = _shared(call, indices.ndim)
    kept = "wrap" if mode == "wrap" else "clip"
    return indexing.take(x, indices, axis % x.ndim, batch, kept)


# -- gather ---------------------------------------------------------------------------------------


def _gather_type(call: CallTypes) -> TensorType:
    kind, indices = call.tensor(0), index_type(call, 1)
    axis = axis_of(call, call.attrs["axis"], kind.rank)
    _fits_beside(call, kind, indices, axis)
    return TensorType(indices.shape, kind.dtype)


def _fits_beside(call: CallTypes, kind: TensorType, indices: TensorType, axis: int) -> None:
    """Check that indices lie within a tensor in all dimensions but the axis."""
    if indices.rank != kind.rank:
        call.fail("the tensors have different numbers of dimensions")
    for n, (extent, own) in enumerate(zip(kind.shape, indices.shape, strict=True)):
        is_known = isinstance(extent, int) and isinstance(own, int)
        if n != axis and is_known and own > extent:  # type: ignore[operator]  # both are numbers
            call.fail(f"dimension {n} of argument indices has {own} elements, of data {extent}")


def _gather(call: Result, x: Array, indices: Array) -> Array:
    axis = call.attrs["axis"] % x.ndim
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = positions("gather", indices, x.shape[axis])
    found: Array = x[tuple(places)]
    return found


def _gather_nd_type(call: CallTypes) -> TensorType:
    kind, indices = call.tensor(0), index_type(call, 1)
    batch, rank = call.attrs["batch_dims"], call.attrs["index_rank"]
    if not indices.rank:
        call.fail("argument indices has no dimensions")
    count = rank if indices.shape[0] is ANY else indices.shape[0]
    if not isinstance(count, int):
        call.fail("the number of indices of a position is not known", hint="give index_rank")
    if batch + count > kind.rank or batch > indices.rank - 1:
        call.fail(f"positions have {count} indices behind {batch} dimensions")
    for n in range(batch):
        if not same_extent(kind.shape[n], indices.shape[n + 1]):
            call.fail(f"dimension {n} has the extents {kind.shape[n]} and {indices.shape[n + 1]}")
    return TensorType((*indices.shape[1:], *kind.shape[batch + count :]), kind.dtype)


def _gather_nd(call: Result, x: Array, indices: Array) -> Array:
    batch, count = call.attrs["batch_dims"], len(indices)
    own = indices.shape[1:]
    grid = np.indices(own, sparse=True)
    places = [positions("gather_nd", indices[n], x.shape[batch + n]) for n in range(count)]
    found = x[(*grid[:batch], *places)] if batch + count else x
    return np.broadcast_to(found, static(call.tensor)).copy()


# -- adv_index ------------------------------------------------------------------------------------


def _adv_index_type(call: CallTypes) -> TensorType:
    kinds = call.tensors(0)
    if len(kinds) < 2:
        call.fail("no index is given", expected="the data, then an index for each dimension")
    data, indices = kinds[0], kinds[1:]
    if len(indices) > data.rank:
        call.fail(f"{len(indices)} indices are given for {data.rank} dimensions")
    for kind in indices:
        if not dtypes.is_int(kind.dtype) or kind.dtype == "uint64":
            call.fail(f"an index has dtype {kind.dtype}", expected="integers, but not uint64")
    shape = broadcast(call, [kind.shape for kind in indices])
    return TensorType((*shape, *data.shape[len(indices) :]), data.dtype)


def _adv_index(call: Result, parts: Sequence[Array]) -> Array:
    data, *indices = parts
    places = [positions("adv_index", index, extent) for index, extent in zip(
        indices, data.shape, strict=False)]  # fmt: skip
    return data[tuple(places)].reshape(static(call.tensor)).copy()


def _define_adv_index(call: Result, parts: Sequence[te.Tensor]) -> te.Tensor:
    data, *indices = parts
    rank = call.tensor.rank - (data.ndim - len(indices))

    def element(*i: Any) -> Any:
        places = [
            indexing.from_end(index[element_indices(index.shape, i[:rank])], extent)
            for index, extent in zip(indices, data.static_shape, strict=False)
        ]
        return data[(*places, *i[rank:])]

    return tensor(static(call.tensor), element, "T_adv_index", INJECTIVE)


# -- scatter --------------------------------------------------------------------------------------

_MODES = ("update", "add", "mul", "min", "max")
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum,
    "max": np.maximum,
}  # fmt: skip


def _check_mode(call: CallTypes, name: str) -> None:
    if call.attrs[name] != "update" and dtypes.is_bool(call.tensor(0).dtype):
        call.fail(f"{name}={call.attrs[name]} takes numbers, not bool")


def _scatter_type(call: CallTypes) -> TensorType:
    kind, indices, updates = call.tensor(0), index_type(call, 1), call.tensor(2)
    same_dtype(call, (kind, updates))
    _check_mode(call, "reduction")
    axis = axis_of(call, call.attrs["axis"], kind.rank)
    _fits_beside(call, kind, indices, axis)
    if indices.rank != updates.rank or not all(map(same_extent, indices.shape, updates.shape)):
        call.fail("the indices and the updates have different shapes")
    return kind


def _scatter(call: Result, x: Array, indices: Array, updates: Array) -> Array:
    """Apply the updates one after the other."""
    axis, made, new = call.attrs["axis"] % x.ndim, wide(x).copy(), wide(updates)
    places = positions("scatter_elements", indices, x.shape[axis])
    combine = _COMBINE[call.attrs["reduction"]]
    for place in np.ndindex(*indices.shape):
        at = (*place[:axis], int(places[place]), *place[axis + 1 :])
        made[at] = combine(made[at], new[place])
    return rounded(made, call.tensor)


def _scatter_nd_type(call: CallTypes) -> TensorType:
    kind, indices, updates = call.tensor(0), index_type(call, 1), call.tensor(2)
    same_dtype(call, (kind, updates))
    _check_mode(call, "mode")
    depth = indices.shape[0] if indices.rank else None
    if not isinstance(depth, int) or depth > kind.rank:
        call.fail(f"positions have {depth} indices", expected=f"0 to {kind.rank}")
    wanted = (*indices.shape[1:], *kind.shape[depth:])
    if updates.rank != len(wanted) or not all(map(same_extent, updates.shape, wanted)):
        call.fail("the updates do not have the shape of the positions and of a slice",
                  expected=repr(TensorType(wanted, kind.dtype)))  # fmt: skip
    return kind


def _scatter_nd(call: Result, x: Array, indices: Array, updates: Array) -> Array:
    """Apply the updates one after the other."""
    made, new = wide(x).copy(), wide(updates)
    places = [positions("scatter_nd", part, n) for part, n in zip(indices, x.shape, strict=False)]
    combine = _COMBINE[call.attrs["mode"]]
    for place in np.ndindex(*indices.shape[1:]):
        at: Any = (*(int(part[place]) for part in places), ...)
        made[at] = combine(made[at], new[place])
    return rounded(made, call.tensor)


TABLE = (
    GraphOperator(
        "take", ("data", "indices"), _take_type, _take, Pattern.INJECTIVE, _define_take,
        (Attribute("axis", axis_or_flat, None, "the dimension; None: all elements in order"),
         Attribute("batch_dims", integer, 0, "first dimensions that data and indices share"),
         Attribute("mode", one_of("clip", "wrap", "fast"), "clip",
                   "an index outside: the nearest one inside, or its remainder; `fast` is `clip`")),
        "Slices at indices along a dimension; an embedding is `take(table, tokens, axis=0)`.",
    ),
    GraphOperator(
        "gather", ("data", "indices"), _gather_type, _gather, Pattern.INJECTIVE,
        lambda call, x, indices: indexing.gather(x, indices, call.attrs["axis"] % x.ndim),
        (Attribute("axis", integer, doc="the dimension"),),
        "An element for each index along a dimension; negative indices count from the end.",
    ),
    GraphOperator(
        "gather_nd", ("data", "indices"), _gather_nd_type, _gather_nd, Pattern.INJECTIVE,
        lambda call, x, indices: indexing.gather_nd(x, indices, call.attrs["batch_dims"]),
        (Attribute("batch_dims", non_negative, 0, "first dimensions that data and indices share"),
         Attribute("index_rank", optional(non_negative), None,
                   "indices of a position, if the extent is not known")),
        "Elements or slices at positions, whose indices are the first dimension of `indices`.",
    ),
    GraphOperator(
        "adv_index", ("inputs",), _adv_index_type, _adv_index, Pattern.INJECTIVE,
        _define_adv_index,
        doc="Elements or slices at positions, from indices that are broadcast: NumPy's data[i, j].",
    ),
    GraphOperator(
        "scatter_elements", ("data", "indices", "updates"), _scatter_type, _scatter,
        Pattern.OPAQUE,
        lambda call, x, indices, updates: indexing.scatter_elements(
            x, indices, updates, call.attrs["axis"] % x.ndim, call.attrs["reduction"]),
        (Attribute("axis", integer, 0, "the dimension"),
         Attribute("reduction", one_of(*_MODES), "update", "how an update is combined")),
        "The data, with the elements at indices along a dimension updated; the last update counts.",
        nest=lambda call, target, x, indices, updates: scattering.scatter_elements(
            x, indices, updates, call.attrs["axis"] % x.ndim, call.attrs["reduction"], target),
    ),
    GraphOperator(
        "scatter_nd", ("data", "indices", "updates"), _scatter_nd_type, _scatter_nd,
        Pattern.OPAQUE,
        lambda call, x, indices, updates: indexing.scatter_nd(
            x, indices, updates, call.attrs["mode"]),
        (Attribute("mode", one_of(*_MODES), "update", "how an update is combined"),),
        "The data, with the slices at positions updated; the last update counts.",
        nest=lambda call, target, x, indices, updates: scattering.scatter_nd(
            x, indices, updates, call.attrs["mode"]),
    ),
)  # fmt: skip
"""The operators of this module."""
