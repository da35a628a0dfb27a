"""Define running sums and products, and the order of elements along a dimension.

An order is found by counting: the rank of an element is the number of elements that come before it.
This takes n² steps for n elements, which need no order among each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ops.helpers import INJECTIVE, over, tensor
from dlcompiler.ops.indexing import limited
from dlcompiler.ops.transforms import transpose
from dlcompiler.te import Tensor

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b, "prod": lambda a, b: a * b,
}  # fmt: skip


def running(
    data: Tensor, axis: int, kind: str, dtype: str, *, is_exclusive: bool, name: str = "running"
) -> Tensor:
    """Define the sums or products of the elements up to each element along a dimension.

    Parameters
    ----------
    data : Tensor
        Numbers.
    axis : int
        The dimension.
    kind : {"sum", "prod"}
        What is computed.
    dtype : str
        Dtype of the result, in which it is computed.
    is_exclusive : bool
        Leave out the element itself.
    name : str
        Name of the recurrence.
    """
    extent = data.static_shape[axis]
    first = te.const(0 if kind == "sum" else 1, dtype)
    rest = (*data.shape[:axis], *data.shape[axis + 1 :])

    def value(t: Any, *i: Any) -> Any:
        found = data[(*i[:axis], t, *i[axis:])]
        return found if found.dtype == dtype else found.astype(dtype)

    if extent < 2:
        start = tensor(
            (extent, *rest), lambda t, *i: first if is_exclusive else value(t, *i), "running"
        )
        return _at_axis(start, axis)
    state = te.placeholder((extent, *rest), dtype, "running.state")
    start = tensor(
        (1, *rest), lambda t, *i: first if is_exclusive else value(t, *i), "running.first"
    )

    def step(t: Any, *i: Any) -> Any:
        # Steps begin with row 1; `te.compute` looks at row 0, too.
        read = te.maximum(t - 1, 0) if is_exclusive else t
        return _COMBINE[kind](state[(t - 1, *i)], value(read, *i))

    update = tensor((extent, *rest), step, "running.step")
    return _at_axis(te.scan(start, update, state, name=name), axis)


def _at_axis(rows: Tensor, axis: int) -> Tensor:
    """Move the first dimension to another place."""
    if axis == 0:
        return rows
    order = [*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)]
    return transpose(rows, order)


def argsort(data: Tensor, axis: int, dtype: str, *, is_ascending: bool) -> Tensor:
    """Define the positions of the elements along a dimension in the order of their values.

    Equal elements stay in order. NaN is larger than all numbers.

    Parameters
    ----------
    data : Tensor
        Numbers.
    axis : int
        The dimension.
    dtype : str
        Dtype of the positions.
    is_ascending : bool
        The smallest element comes first.
    """
    extent = data.static_shape[axis]
    k, m = over(extent, "k"), over(extent, "m")
    one, zero, none = te.const(1, "int32"), te.const(0, "int32"), te.const(-1, "int32")

    def rank(*i: Any) -> Any:
        other = data[(*i[:axis], k, *i[axis + 1 :])]
        is_before = _comes_before(other, data[i], k, i[axis], is_ascending)
        return te.sum(te.select(is_before, one, zero), axis=k)

    ranks = tensor(data.shape, rank, "ranks")

    def place(*i: Any) -> Any:
        is_it = ranks[(*i[:axis], m, *i[axis + 1 :])] == i[axis].astype("int32")
        return te.max(te.select(is_it, m.astype("int32"), none), axis=m)

    places = tensor(data.shape, place, "places")
    if dtype == "int32":
        return places
    return tensor(data.shape, lambda *i: places[i].astype(dtype), "T_argsort", INJECTIVE)


def _comes_before(a: Any, b: Any, place_a: Any, place_b: Any, is_ascending: bool) -> Any:
    """Tell whether element a comes before element b."""
    less, is_same = a < b, a == b
    more = b < a
    if dtypes.is_float(a.dtype):
        less = _any(less, te.all(a == a, b != b))
        more = _any(more, te.all(b == b, a != a))
        is_same = _any(is_same, te.all(a != a, b != b))
    earlier = te.all(is_same, place_a < place_b)
    return _any(less if is_ascending else more, earlier)


def _any(a: Any, b: Any) -> Any:
    return te.select(a, te.const(True, "bool"), b)


def taken_along(data: Tensor, places: Tensor, axis: int) -> Tensor:
    """Define the elements at positions along a dimension, which are inside."""
    extent = data.static_shape[axis]

    def element(*i: Any) -> Any:
        return data[(*i[:axis], limited(places[i], extent, "clip"), *i[axis + 1 :])]

    return tensor(places.shape, element, "T_taken", INJECTIVE)


def first_along(data: Tensor, count: int, axis: int) -> Tensor:
    """Define the first elements along a dimension."""
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return tensor(shape, lambda *i: data[i], "T_first", INJECTIVE)


def searchsorted(sequence: Tensor, values: Tensor, dtype: str, *, is_right: bool) -> Tensor:
    """Define how many elements of a sorted sequence come before each value.

    Parameters
    ----------
    sequence : Tensor
        Ascending along its last dimension, NaN last; the others are those of `values`, or it has
        one only.
    values : Tensor
        Numbers.
    dtype : str
        Dtype of the result.
    is_right : bool
        Count elements that are equal to the value, too.
    """
    k = over(sequence.shape[-1], "k")
    one, zero = te.const(1, dtype), te.const(0, dtype)

    def element(*i: Any) -> Any:
        found = sequence[(*i[:-1], k) if sequence.ndim > 1 else (k,)]
        is_before = found <= values[i] if is_right else found < values[i]
        if dtypes.is_float(sequence.dtype):
            is_last = values[i] != values[i]
            is_before = _any(is_before, is_last if is_right else te.all(is_last, found == found))
        return te.sum(te.select(is_before, one, zero), axis=k)

    return tensor(values.shape, element, "T_searchsorted")
