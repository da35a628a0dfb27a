"""Operators that move elements, and the matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.topi.defining import over, tensor
from dlcompiler.compat.tvm.topi.reduction import normalized
from dlcompiler.compat.tvm.topi.tag import INJECTIVE
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.stmt import extent_product


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Permute dimensions; reverse them by default."""
    ndim = len(a.shape)
    order = list(reversed(range(ndim))) if axes is None else [int(n) % ndim for n in axes]
    if sorted(order) != list(range(ndim)):
        raise ExpressionError("topi.transpose", "not a permutation of the dimensions", got=axes)
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
            "topi.reshape", "another number of elements", got=tuple(newshape), expected=str(size)
        )
    return tensor(shape, lambda *i: a[_places(i, shape, a.shape)], "T_reshape", INJECTIVE)


def _places(indices: Sequence[Any], shape: Sequence[Any], old: Sequence[Any]) -> tuple[Any, ...]:
    """Return where the element at `indices` of one shape is in another."""
    flat: Any = 0
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + index
    places: list[Any] = []
    for position, extent in enumerate(old):
        inner = extent_product(old[position + 1 :])
        outer = flat if isinstance(inner, int) and inner == 1 else te.floordiv(flat, inner)
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
    ones = [n for n, extent in enumerate(a.shape) if isinstance(extent, int) and extent == 1]
    gone = ones if axis is None else list(normalized(axis, len(a.shape), "topi.squeeze"))
    if any(n not in ones for n in gone):
        raise ExpressionError("topi.squeeze", "an extent is not 1", got=a.shape)
    kept = [n for n in range(len(a.shape)) if n not in gone]

    def element(*indices: Any) -> Any:
        places: list[Any] = [0] * len(a.shape)
        for n, index in zip(kept, indices, strict=True):
            places[n] = index
        return a[tuple(places)]

    return tensor(tuple(a.shape[n] for n in kept), element, name="T_squeeze", tag=INJECTIVE)


def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """Reverse the order along one dimension."""
    (n,) = normalized(axis, len(a.shape), "topi.flip")
    return tensor(
        a.shape,
        lambda *i: a[(*i[:n], a.shape[n] - 1 - i[n], *i[n + 1 :])],
        name="T_flip",
        tag=INJECTIVE,
    )


def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors along one dimension."""
    (n,) = normalized(axis, len(a_tuple[0].shape), "topi.concatenate")
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


def where(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Choose between two tensors, element by element; what is not zero is true."""

    def chosen(test: Any, a: Any, b: Any) -> Any:
        return te.select(test if test.dtype == "bool" else test != te.const(0, test.dtype), a, b)

    return condition.elementwise("where", (condition, x, y), chosen)


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """Multiply matrices, each transposed if asked for."""
    n, inner = reversed(a.shape) if transp_a else a.shape
    rows, m = reversed(b.shape) if transp_b else b.shape
    if isinstance(inner, int) and isinstance(rows, int) and inner != rows:
        raise ExpressionError("topi.matmul", "the shapes differ", got=f"{a.shape} and {b.shape}")
    k = over(inner, name="k")
    return tensor(
        (n, m),
        lambda i, j: te.sum(
            (a[k, i] if transp_a else a[i, k]) * (b[j, k] if transp_b else b[k, j]), axis=k
        ),
        name="T_matmul",
        tag="matmul",
    )


__getattr__ = reporter(__name__)
