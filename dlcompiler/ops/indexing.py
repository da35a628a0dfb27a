"""Define operators whose indices are data: take, gather, scatter and one_hot.

An index that is not limited first must be inside: `te.evaluate` and kernels check it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import ELEMWISE, INJECTIVE, over, tensor
from dlcompiler.ops.transforms import unravelled
from dlcompiler.te import Tensor


def from_end(value: Any, extent: int) -> Any:
    """Return data as an index, where a negative one counts from the end of a dimension."""
    index = value.astype("index")
    return te.select(index < 0, index + extent, index)


def limited(value: Any, extent: int, mode: str) -> Any:
    """Return data as an index that is inside a dimension.

    Parameters
    ----------
    value : Expr
        An integer.
    extent : int
        Extent of the dimension.
    mode : {"clip", "wrap"}
        Take the nearest index that is inside, or the remainder of the division by the extent.
    """
    if mode == "clip":
        return clamped(value, 0, max(extent - 1, 0))
    size = max(extent, 1)
    if value.dtype == "int64":  # as data, for the reason that `clamped` gives
        return te.floormod(value, te.const(size, "int64")).astype("index")
    return te.floormod(value.astype("index"), size)


def clamped(value: Any, low: int, high: int) -> Any:
    """Return data as the nearest index from `low` to `high`.

    Numbers of 64 bits are compared as data: a check refuses those that are too large for the
    arithmetic of indices, even if the result would be small.
    """
    if value.dtype == "int64":
        return te.minimum(
            te.maximum(value, te.const(low, "int64")), te.const(high, "int64")
        ).astype("index")
    return te.minimum(te.maximum(value.astype("index"), low), high)


def take(data: Tensor, indices: Tensor, axis: int, batch_dims: int, mode: str) -> Tensor:
    """Define slices of a tensor at indices along a dimension.

    Parameters
    ----------
    data : Tensor
        Of shape ``(…, n, …)``.
    indices : Tensor
        Integers.
    axis : int
        The dimension with the extent n; at least `batch_dims`.
    batch_dims : int
        First dimensions that both tensors share.
    mode : {"clip", "wrap"}
        What happens with an index that is outside: see `limited`.

    Returns
    -------
    Tensor
        The dimension is replaced by those of the indices, but the shared ones.
    """
    own = indices.ndim - batch_dims
    shape = (*data.shape[:axis], *indices.shape[batch_dims:], *data.shape[axis + 1 :])
    extent = data.static_shape[axis]

    def element(*i: Any) -> Any:
        place = indices[(*i[:batch_dims], *i[axis : axis + own])]
        return data[(*i[:axis], limited(place, extent, mode), *i[axis + own :])]

    return tensor(shape, element, "T_take", INJECTIVE)


def gather(data: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Define ``data[…, indices[…, i, …], …]``: an index for each element of the result."""
    extent = data.static_shape[axis]

    def element(*i: Any) -> Any:
        return data[(*i[:axis], from_end(indices[i], extent), *i[axis + 1 :])]

    return tensor(indices.shape, element, "T_gather", INJECTIVE)


def gather_nd(data: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """Define elements or slices of a tensor at positions.

    Parameters
    ----------
    data : Tensor
        The tensor.
    indices : Tensor
        Positions, of shape ``(m, …)``: an index for each of m dimensions.
    batch_dims : int
        First dimensions of `data` that follow the first dimension of `indices`.
    """
    count = indices.static_shape[0]
    own = indices.ndim - 1
    first = batch_dims + count
    extents = data.static_shape

    def element(*i: Any) -> Any:
        places = [from_end(indices[(n, *i[:own])], extents[batch_dims + n]) for n in range(count)]
        return data[(*i[:batch_dims], *places, *i[own:])]

    return tensor((*indices.shape[1:], *data.shape[first:]), element, "T_gather_nd", INJECTIVE)


# -- scatter --------------------------------------------------------------------------------------


_REDUCERS: dict[str, Callable[..., Any]] = {
    "add": te.sum, "mul": te.prod, "min": te.min, "max": te.max,
}  # fmt: skip
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": te.minimum, "max": te.maximum,
}  # fmt: skip
"""How an element is combined with an update, by the mode."""


def _identity(mode: str, dtype: str) -> Any:
    if mode in ("min", "max"):
        return te.max_value(dtype) if mode == "min" else te.min_value(dtype)
    return te.const(1 if mode == "mul" else 0, dtype)


def _inside(shape: Sequence[Any], read: Callable[[tuple[Any, ...]], Any], extent: int) -> Tensor:
    """Define the positions that data points to; a read at each of them checks that it is inside."""
    own = tensor((extent,), lambda i: i.astype("int64"), "scatter_positions")
    return tensor(shape, lambda *i: own[from_end(read(i), extent)], "scatter_places")


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str
) -> Tensor:
    """Define a tensor in which the elements at indices along a dimension are updated.

    Each element looks through the indices that may point to it.

    Parameters
    ----------
    data : Tensor
        The tensor.
    indices, updates : Tensor
        An index along the dimension for each update; no larger than `data` in other dimensions.
    axis : int
        The dimension.
    mode : {"update", "add", "mul", "min", "max"}
        Replace the element, by the last update of it, or combine it with the updates.
    """
    places = _inside(indices.shape, lambda i: indices[i], data.static_shape[axis])

    def matches(i: Sequence[Any], k: Any) -> Any:
        return places[(*i[:axis], k, *i[axis + 1 :])].astype("index") == i[axis]

    def update(i: Sequence[Any], k: Any) -> Any:
        return updates[(*i[:axis], k, *i[axis + 1 :])]

    covered = [n for n in range(data.ndim) if n != axis]
    return _scattered(data, indices.shape[axis], matches, update, mode, (covered, indices.shape))


def _scattered(
    data: Tensor, count: Any, matches: Callable[..., Any], update: Callable[..., Any], mode: str,
    covered: tuple[Sequence[int], Sequence[Any]],
) -> Tensor:  # fmt: skip
    """Define a tensor each of whose elements is updated by those of `count` updates that match it.

    `covered` has dimensions, and a shape: elements outside it in these dimensions stay.
    """
    dims, shape = covered
    narrow = [n for n in dims if shape[n] != data.shape[n]]

    def guarded(i: Sequence[Any], value: Any, other: Any) -> Any:
        if not narrow:
            return value
        return te.if_then_else(te.all(*(i[n] < shape[n] for n in narrow)), value, other)

    k = over(count, "k")
    if mode == "update":
        none = te.const(-1, "int32")
        last = tensor(
            data.shape,
            lambda *i: te.max(
                guarded(i, te.select(matches(i, k), k.astype("int32"), none), none), axis=k
            ),
            "scatter_last",
        )

        def replaced(*i: Any) -> Any:
            chosen = update(i, limited(last[i], count, "clip"))
            return te.if_then_else(last[i] >= 0, guarded(i, chosen, data[i]), data[i])

        return tensor(data.shape, replaced, "T_scatter", INJECTIVE)
    start = _identity(mode, data.dtype)
    total = tensor(
        data.shape,
        lambda *i: _REDUCERS[mode](
            guarded(i, te.select(matches(i, k), update(i, k), start), start), axis=k
        ),
        "scatter_total",
    )
    return tensor(data.shape, lambda *i: COMBINE[mode](data[i], total[i]), "T_scatter", ELEMWISE)


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """Define a tensor in which slices at positions are updated.

    Parameters
    ----------
    data : Tensor
        The tensor.
    indices : Tensor
        Positions, of shape ``(m, …)``: an index for each of the first m dimensions.
    updates : Tensor
        A slice for each position.
    mode : {"update", "add", "mul", "min", "max"}
        As for `scatter_elements`.
    """
    depth, *positions = indices.static_shape
    extents = data.static_shape
    count = math.prod(positions)

    def place(n: int) -> Tensor:
        return _inside(positions, lambda i: indices[(n, *i)], extents[n])

    places = [place(n) for n in range(depth)]

    def at(k: Any) -> tuple[Any, ...]:
        return unravelled(k, positions)

    def matches(i: Sequence[Any], k: Any) -> Any:
        tests = [own[at(k)].astype("index") == i[n] for n, own in enumerate(places)]
        return te.all(*tests) if tests else te.const(True, "bool")

    def update(i: Sequence[Any], k: Any) -> Any:
        return updates[(*at(k), *i[depth:])]

    return _scattered(data, count, matches, update, mode, ((), ()))


def one_hot(
    indices: Tensor, on_value: Tensor, off_value: Tensor, depth: int, axis: int, dtype: str
) -> Tensor:
    """Define a tensor that is `on_value` where the index along a new dimension is that of the data.

    Parameters
    ----------
    indices : Tensor
        Integers.
    on_value, off_value : Tensor
        Numbers.
    depth : int
        Extent of the new dimension.
    axis : int
        Its place.
    dtype : str
        Dtype of the result.
    """
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])

    def element(*i: Any) -> Any:
        place = indices[(*i[:axis], *i[axis + 1 :])].astype("index")
        chosen = te.select(place == i[axis], on_value[()], off_value[()])
        return chosen if chosen.dtype == dtype else chosen.astype(dtype)

    return tensor(shape, element, "T_one_hot", INJECTIVE)
