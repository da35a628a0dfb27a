"""Define operators that move elements: each result is an element of an operand, or a constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.stmt import extent_product, is_one
from dlcompiler.ops.helpers import INJECTIVE, dimensions, tensor


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Permute dimensions; reverse them by default."""
    ndim = len(a.shape)
    order = list(reversed(range(ndim))) if axes is None else [int(n) % ndim for n in axes]
    if sorted(order) != list(range(ndim)):
        raise ExpressionError("transpose", "not a permutation of the dimensions", got=axes)
    inverse = [order.index(n) for n in range(ndim)]
    return tensor(
        tuple(a.shape[n] for n in order),
        lambda *i: a[tuple(i[n] for n in inverse)],
        name="T_transpose",
        tag=INJECTIVE,
    )


def reshape(a: te.Tensor, newshape: Sequence[Any]) -> te.Tensor:
    """Return the same elements in another shape; one extent may be -1."""
    shape = [int(extent) if isinstance(extent, float) else extent for extent in newshape]
    size = extent_product(a.shape)
    open_places = [n for n, extent in enumerate(shape) if isinstance(extent, int) and extent < 0]
    if open_places:
        known = extent_product([e for n, e in enumerate(shape) if n not in open_places])
        shape[open_places[0]] = size // known if not isinstance(known, int) or known else 0
    total = extent_product(shape)
    differ = isinstance(total, int) and isinstance(size, int) and total != size
    if differ or len(open_places) > 1:
        raise ExpressionError(
            "reshape", "another number of elements", got=tuple(newshape), expected=str(size)
        )
    return tensor(shape, lambda *i: a[_places(i, shape, a.shape)], "T_reshape", INJECTIVE)


def _places(indices: Sequence[Any], shape: Sequence[Any], old: Sequence[Any]) -> tuple[Any, ...]:
    """Convert the indices of an element in `shape` to those of the same element in `old`."""
    places: list[Any] = []
    for own, other in _groups(shape, old):
        flat: Any = 0
        for index, extent in zip(indices[own], shape[own], strict=True):
            if not is_one(extent):
                flat = flat * extent + index
        found = iter(unravelled(flat, [extent for extent in old[other] if not is_one(extent)]))
        places += [0 if is_one(extent) else next(found) for extent in old[other]]
    return tuple(places)


def _groups(shape: Sequence[Any], old: Sequence[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield the smallest runs of neighbouring dimensions of both shapes with equal products.

    The indices within a run follow from those within the other one alone: from (2, 3, 28) to
    (6, 4, 7) those of 2 and 3 give that of 6, whatever the third is.

    Examples
    --------
    >>> [(shape[a], old[b]) for shape, old in [((2, 3, 28, 1), (6, 4, 7))]
    ...  for a, b in _groups(shape, old)]
    [((2, 3), (6,)), ((28,), (4, 7)), ((1,), ())]
    """
    if not all(isinstance(extent, int) and extent > 0 for extent in (*shape, *old)):
        yield slice(None), slice(None)
        return
    m = n = 0
    while m < len(shape) and n < len(old):
        first, other, own_size, old_size = m, n, shape[m], old[n]
        m, n = m + 1, n + 1
        while own_size != old_size:
            if own_size < old_size:
                own_size, m = own_size * shape[m], m + 1
            else:
                old_size, n = old_size * old[n], n + 1
        yield slice(first, m), slice(other, n)
    if m < len(shape) or n < len(old):  # extents of 1
        yield slice(m, None), slice(n, None)


def unravelled(flat: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices of an element from its position in row-major order."""
    places: list[Any] = []
    for position, extent in enumerate(shape):
        inner = extent_product(shape[position + 1 :])
        outer = flat if is_one(inner) else te.floordiv(flat, inner)
        places.append(te.floormod(outer, extent) if position else outer)
    return tuple(places)


def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """Insert dimensions of extent 1."""
    ndim = len(a.shape)
    place = axis + ndim + 1 if axis < 0 else axis
    shape = (*a.shape[:place], *[1] * num_newaxis, *a.shape[place:])
    return tensor(
        shape,
        lambda *i: a[(*i[:place], *i[place + num_newaxis :])],
        name="T_expand_dims",
        tag=INJECTIVE,
    )


def squeeze(a: te.Tensor, axis: Any = None) -> te.Tensor:
    """Remove dimensions of extent 1: those given, or all."""
    ones = [n for n, extent in enumerate(a.shape) if is_one(extent)]
    gone = ones if axis is None else list(dimensions(axis, len(a.shape), "squeeze"))
    if any(n not in ones for n in gone):
        raise ExpressionError("squeeze", "an extent is not 1", got=a.shape)
    kept = [n for n in range(len(a.shape)) if n not in gone]

    def element(*indices: Any) -> Any:
        places: list[Any] = [0] * len(a.shape)
        for n, index in zip(kept, indices, strict=True):
            places[n] = index
        return a[tuple(places)]

    return tensor(tuple(a.shape[n] for n in kept), element, name="T_squeeze", tag=INJECTIVE)


def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """Reverse the order along one dimension."""
    (n,) = dimensions(axis, len(a.shape), "flip")
    return tensor(
        a.shape,
        lambda *i: a[(*i[:n], a.shape[n] - 1 - i[n], *i[n + 1 :])],
        name="T_flip",
        tag=INJECTIVE,
    )


def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors along one dimension."""
    (n,) = dimensions(axis, len(a_tuple[0].shape), "concatenate")
    extents = [part.shape[n] for part in a_tuple]
    total: Any = sum(extents)
    head = a_tuple[0].shape

    def element(*i: Any) -> Any:
        start: Any = sum(extents[:-1])
        result = a_tuple[-1][(*i[:n], i[n] - start, *i[n + 1 :])]
        for part, extent in reversed(list(zip(a_tuple[:-1], extents[:-1], strict=True))):
            end, start = start, start - extent
            value = part[(*i[:n], i[n] - start, *i[n + 1 :])]
            result = te.if_then_else(i[n] < end, value, result)
        return result

    shape = (*head[:n], total, *head[n + 1 :])
    return tensor(shape, element, name="T_concat", tag=INJECTIVE)


def stack(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors of one shape along a new dimension."""
    return concatenate([expand_dims(part, axis) for part in a_tuple], axis)


def pad(
    data: te.Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> te.Tensor:
    """Return a tensor with a border of one value."""
    before = [int(n) for n in pad_before]
    after = before if pad_after is None else [int(n) for n in pad_after]
    if not len(before) == len(after) == len(data.shape):
        raise ExpressionError("pad", "one number for each dimension", got=pad_before)
    shape = tuple(
        extent + first + last for extent, first, last in zip(data.shape, before, after, strict=True)
    )
    value = te.const(pad_value, data.dtype) if isinstance(pad_value, int | float) else pad_value

    def element(*indices: Any) -> Any:
        inside: list[Any] = []
        for index, extent, first, last in zip(indices, data.shape, before, after, strict=True):
            inside += [index >= first] if first else []
            inside += [index < extent + first] if last else []
        places = tuple(index - first for index, first in zip(indices, before, strict=True))
        return te.if_then_else(te.all(*inside), data[places], value) if inside else data[places]

    return tensor(shape, element, name=name, tag=f"{INJECTIVE},pad")


def pad_by_elements(
    data: te.Tensor, pad_before: Sequence[int], pad_after: Sequence[int], mode: str
) -> te.Tensor:
    """Return a tensor whose border repeats its own elements.

    Parameters
    ----------
    mode : {"edge", "reflect", "symmetric", "wrap"}
        Repeat the outermost element; mirror the tensor there, without repeating that element, or
        with it; or go on at the other end. The border is no wider than the elements that it shows.
    """
    pairs = list(zip(pad_before, pad_after, data.static_shape, strict=True))
    for first, last, extent in pairs:
        most = extent - 1 if mode == "reflect" else extent
        too_wide = extent == 0 or (mode != "edge" and max(first, last) > most)
        if max(first, last) > 0 and too_wide:
            raise ExpressionError("pad", "the border is wider than the tensor", got=(first, last))

    def place(index: Any, first: int, extent: int) -> Any:
        moved = index - first
        if mode == "edge":
            return te.minimum(te.maximum(moved, 0), extent - 1)
        if mode == "wrap":
            return te.floormod(moved, extent)
        if mode == "symmetric":
            beyond = te.maximum(moved, -moved - 1)
            return te.minimum(beyond, 2 * extent - 1 - beyond)
        beyond = te.maximum(moved, -moved)
        return te.minimum(beyond, 2 * (extent - 1) - beyond)

    def element(*indices: Any) -> Any:
        places = [place(i, first, n) for i, (first, _, n) in zip(indices, pairs, strict=True)]
        repeated = data[tuple(places)]
        if not pairs:
            return repeated
        first, last, extent = pairs[-1]
        moved = indices[-1] - first
        inside = [moved >= 0] if first > 0 else []
        inside += [moved < extent] if last > 0 else []
        if not inside:
            return repeated
        # Inside, neighbours stay neighbours: a loop for this case copies vectors.
        return te.if_then_else(te.all(*inside), data[(*places[:-1], moved)], repeated)

    shape = [extent + first + last for first, last, extent in pairs]
    return tensor(shape, element, name="PadInput", tag=INJECTIVE)


def tile(a: te.Tensor, reps: Sequence[int]) -> te.Tensor:
    """Repeat a tensor as a whole along its dimensions; missing ones come first."""
    new = max(len(reps) - a.ndim, 0)
    times = [1] * (a.ndim - len(reps)) + [int(n) for n in reps]
    old = [1] * new + list(a.shape)
    shape = [extent * n for extent, n in zip(old, times, strict=True)]

    def element(*i: Any) -> Any:
        return a[tuple(te.floormod(k, extent) if n > 1 else k for k, extent, n in zip(
            i[new:], a.shape, times[new:], strict=True))]  # fmt: skip

    return tensor(shape, element, name="T_tile", tag=INJECTIVE)


def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Repeat each element along a dimension."""
    shape = (*a.shape[:axis], a.shape[axis] * repeats, *a.shape[axis + 1 :])
    return tensor(
        shape,
        lambda *i: a[(*i[:axis], te.floordiv(i[axis], repeats), *i[axis + 1 :])],
        name="T_repeat", tag=INJECTIVE,
    )  # fmt: skip


def strided_slice(
    a: te.Tensor, parts: Sequence[tuple[int, int, int]], name: str = "T_strided_slice"
) -> te.Tensor:
    """Return a part of a tensor: for each dimension the first index, the step and the number."""

    def place(index: Any, first: int, step: int) -> Any:
        scaled = index if step == 1 else index * step
        return scaled if first == 0 else first + scaled

    return tensor(
        [count for _, _, count in parts],
        lambda *i: a[tuple(place(k, first, step) for k, (first, step, _) in zip(
            i, parts, strict=True))],
        name=name, tag=INJECTIVE,
    )  # fmt: skip
