"""Running sums, sorting, and the largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import ANY, TensorType, TupleType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    axis_or_flat,
    boolean,
    dtype_or_same,
    index_dtype,
    integer,
    one_of,
)
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import (
    axis_of,
    of_numbers,
    same_dtype,
    same_extent,
    static,
)
from dlcompiler.graph.operators.values import converted, rounded, wide
from dlcompiler.ops import ordering, transforms
from dlcompiler.ops.nests import searching
from dlcompiler.ops.nests.sorting import first_in_order
from dlcompiler.target import Target

# -- running sums and products --------------------------------------------------------------------


def _running_type(call: CallTypes) -> TensorType:
    kind, wanted = call.tensor(0), call.attrs["dtype"]
    if dtypes.is_bool(wanted or kind.dtype):
        call.fail("takes numbers, not bool", hint="give a dtype: dtype='int32'")
    if call.attrs["axis"] is not None:
        axis_of(call, call.attrs["axis"], kind.rank)
        return TensorType(kind.shape, wanted or kind.dtype)
    size = ANY if ANY in kind.shape else int(np.prod(static(kind)))
    return TensorType((size,), wanted or kind.dtype)


def _running(function: Callable[..., Any], start: int) -> Callable[..., Array]:
    def evaluate(call: Result, x: Array) -> Array:
        x = wide(converted(x, call.tensor.dtype))
        x, axis = (x.reshape(-1), 0) if call.attrs["axis"] is None else (x, call.attrs["axis"])
        if call.attrs["exclusive"]:
            before = np.full_like(x.take([0], axis) if x.shape[axis] else x, start)
            x = np.concatenate([before, x.take(range(max(x.shape[axis] - 1, 0)), axis)], axis)
        return rounded(function(x, axis=axis, dtype=x.dtype), call.tensor)

    return evaluate


def _define_running(kind: str) -> Callable[..., te.Tensor]:
    def define(call: Result, x: te.Tensor) -> te.Tensor:
        axis = call.attrs["axis"]
        if axis is None:
            x, axis = transforms.reshape(x, (-1,)), 0
        return ordering.running(
            x, axis % x.ndim, kind, call.tensor.dtype, is_exclusive=call.attrs["exclusive"]
        )

    return define


def _running_operator(name: str, function: Callable[..., Any], start: int) -> GraphOperator:
    return GraphOperator(
        name, ("data",), _running_type, _running(function, start), Pattern.OPAQUE,
        _define_running(name.removeprefix("cum")),
        (Attribute("axis", axis_or_flat, None, "the dimension; None: all elements in order"),
         Attribute("dtype", dtype_or_same, "", "dtype of the result"),
         Attribute("exclusive", boolean, False, "leave out the element itself")),
        f"The {'sum' if start == 0 else 'product'} of the elements up to each element.",
        kernel="cumsum" if name == "cumsum" else "",
    )  # fmt: skip


# -- sorting --------------------------------------------------------------------------------------


def _order(x: Array, axis: int, *, is_ascending: bool) -> Array:
    """Return the positions in order: equal elements stay in order, NaN is the largest."""
    values = x.astype(np.float32) if dtypes.from_numpy(x.dtype) == "bfloat16" else x
    if is_ascending:
        return np.argsort(values, axis, kind="stable")
    turned = np.argsort(np.flip(values, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def _sorted_type(call: CallTypes) -> TensorType:
    kind = of_numbers(call)
    axis_of(call, call.attrs["axis"], kind.rank)
    return kind


def _argsort_type(call: CallTypes) -> TensorType:
    return TensorType(_sorted_type(call).shape, call.attrs["dtype"])


def _sort(call: Result, x: Array) -> Array:
    axis = call.attrs["axis"]
    return np.take_along_axis(x, _order(x, axis, is_ascending=call.attrs["is_ascend"]), axis)


def _argsort(call: Result, x: Array) -> Array:
    order = _order(x, call.attrs["axis"], is_ascending=call.attrs["is_ascend"])
    return rounded(order, call.tensor)


def _define_sort(call: Result, x: te.Tensor) -> te.Tensor:
    axis = call.attrs["axis"] % x.ndim
    order = ordering.argsort(x, axis, "int32", is_ascending=call.attrs["is_ascend"])
    return ordering.taken_along(x, order, axis)


def _define_argsort(call: Result, x: te.Tensor) -> te.Tensor:
    axis = call.attrs["axis"] % x.ndim
    return ordering.argsort(x, axis, call.tensor.dtype, is_ascending=call.attrs["is_ascend"])


def _nest_sort(call: Result, target: Target, x: te.Tensor) -> te.Tensor:
    return _first(call, target, x, x.static_shape[call.attrs["axis"]], ("values",))[0]


def _nest_argsort(call: Result, target: Target, x: te.Tensor) -> te.Tensor:
    extent = x.static_shape[call.attrs["axis"]]
    return _first(call, target, x, extent, (call.tensor.dtype,))[0]


def _first(
    call: Result, target: Target, x: te.Tensor, count: int, wants: Sequence[str]
) -> tuple[te.Tensor, ...]:
    return first_in_order(
        x, call.attrs["axis"] % x.ndim, count, wants, target, is_ascending=call.attrs["is_ascend"]
    )


# -- topk -----------------------------------------------------------------------------------------


def _topk_type(call: CallTypes) -> TensorType | TupleType:
    kind, attrs = of_numbers(call), call.attrs
    axis = axis_of(call, attrs["axis"], kind.rank)
    extent, count = kind.shape[axis], attrs["k"]
    if count < 1:
        count = extent
    elif isinstance(extent, int) and count > extent:
        call.fail(f"k is {count}, dimension {axis} has {extent} elements")
    shape = (*kind.shape[:axis], count, *kind.shape[axis + 1 :])
    values, places = TensorType(shape, kind.dtype), TensorType(shape, attrs["dtype"])
    if attrs["ret_type"] == "both":
        return TupleType((values, places))
    return values if attrs["ret_type"] == "values" else places


def _chosen(call: Result, values: Any, places: Any) -> Any:
    kind = call.attrs["ret_type"]
    return (values, places) if kind == "both" else values if kind == "values" else places


def _count(call: Result, extent: int) -> int:
    return call.attrs["k"] if call.attrs["k"] > 0 else extent


def _topk(call: Result, x: Array) -> Any:
    axis, attrs = call.attrs["axis"] % x.ndim, call.attrs
    order = _order(x, axis, is_ascending=attrs["is_ascend"])
    order = order.take(range(_count(call, x.shape[axis])), axis)
    values = np.take_along_axis(x, order, axis)
    return _chosen(call, values, converted(order, attrs["dtype"]))


def _define_topk(call: Result, x: te.Tensor) -> Any:
    axis, attrs = call.attrs["axis"] % x.ndim, call.attrs
    order = ordering.argsort(x, axis, attrs["dtype"], is_ascending=attrs["is_ascend"])
    first = ordering.first_along(order, _count(call, x.static_shape[axis]), axis)
    return _chosen(call, ordering.taken_along(x, first, axis), first)


def _nest_topk(call: Result, target: Target, x: te.Tensor) -> Any:
    attrs = call.attrs
    wants = {"both": ("values", attrs["dtype"]), "values": ("values",)}
    kinds = wants.get(attrs["ret_type"], (attrs["dtype"],))
    made = _first(call, target, x, _count(call, x.static_shape[attrs["axis"]]), kinds)
    return made if attrs["ret_type"] == "both" else made[0]


# -- searchsorted ---------------------------------------------------------------------------------


def _search_type(call: CallTypes) -> TensorType:
    sequence, values = of_numbers(call), call.tensor(1)
    same_dtype(call, (sequence, values))
    if not sequence.rank:
        call.fail("argument sorted_sequence has no dimensions")
    lead = sequence.shape[:-1]
    if lead and (len(lead) != values.rank - 1 or not all(map(same_extent, lead, values.shape))):
        call.fail("the tensors differ in a dimension before the last")
    return TensorType(values.shape, call.attrs["dtype"])


def _search(call: Result, sequence: Array, values: Array) -> Array:
    own, value = sequence[..., None, :], values[..., None]
    found = own <= value if call.attrs["right"] else own < value
    if dtypes.is_float(dtypes.from_numpy(sequence.dtype)):
        found |= np.isnan(value) & (np.isnan(own) <= call.attrs["right"])
    return rounded(found.sum(-1), call.tensor)


def _define_search(call: Result, sequence: te.Tensor, values: te.Tensor) -> te.Tensor:
    return ordering.searchsorted(sequence, values, call.tensor.dtype, is_right=call.attrs["right"])


def _nest_search(call: Result, target: Target, sequence: te.Tensor, values: te.Tensor) -> te.Tensor:
    if not sequence.static_shape[-1]:
        return _define_search(call, sequence, values)
    return searching.searchsorted(
        sequence, values, call.tensor.dtype, target, is_right=call.attrs["right"]
    )


_AXIS = Attribute("axis", integer, -1, "the dimension")
_PLACES = Attribute("dtype", index_dtype, "int32", "dtype of positions")

TABLE = (
    _running_operator("cumsum", np.cumsum, 0),
    _running_operator("cumprod", np.cumprod, 1),
    GraphOperator(
        "sort", ("data",), _sorted_type, _sort, Pattern.OPAQUE, _define_sort,
        (_AXIS, Attribute("is_ascend", boolean, True, "the smallest element comes first")),
        "Sort along a dimension; NaN counts as the largest.", nest=_nest_sort,
    ),
    GraphOperator(
        "argsort", ("data",), _argsort_type, _argsort, Pattern.OPAQUE, _define_argsort,
        (_AXIS, Attribute("is_ascend", boolean, True, "the smallest element comes first"),
         _PLACES),
        "The positions of the elements in sorted order; equal ones stay in order.",
        nest=_nest_argsort,
    ),
    GraphOperator(
        "topk", ("data",), _topk_type, _topk, Pattern.OPAQUE, _define_topk,
        (Attribute("k", integer, 1, "how many; less than 1: all"), _AXIS,
         Attribute("ret_type", one_of("both", "values", "indices"), "both", "what is returned"),
         Attribute("is_ascend", boolean, False, "the smallest elements, not the largest"),
         _PLACES),
        "The largest elements along a dimension in order, and their positions.", nest=_nest_topk,
    ),
    GraphOperator(
        "searchsorted", ("sorted_sequence", "values"), _search_type, _search, Pattern.OPAQUE,
        _define_search,
        (Attribute("right", boolean, False, "count elements equal to the value"), _PLACES),
        "The number of elements of a sorted sequence before each value; NaN is the largest.",
        nest=_nest_search,
    ),
)  # fmt: skip
"""The operators of this module."""
