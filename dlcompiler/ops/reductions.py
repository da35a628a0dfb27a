"""Define reductions over some of the dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import as_expr
from dlcompiler.ops.helpers import (
    COMM_REDUCE,
    COMM_REDUCE_IDX,
    ELEMWISE,
    dimensions,
    over,
    tensor,
)
from dlcompiler.te import Tensor


def _reduced(
    data: Tensor, axis: Any, keepdims: bool, reduce: Callable[..., Any], tag: str, suffix: str
) -> Any:
    """Define a reduction; `reduce` receives an element and the reduction axes."""
    gone = dimensions(axis, len(data.shape), "reduction")
    axes = [over(data.shape[n], name=f"k{n}") for n in gone]
    kept = [n for n in range(len(data.shape)) if n not in gone]
    shape = [1 if n in gone else extent for n, extent in enumerate(data.shape)]
    result = shape if keepdims else [data.shape[n] for n in kept]

    def element(*indices: Any) -> Any:
        places = [indices[n] for n in kept] if keepdims else list(indices)
        full: list[Any] = [None] * len(data.shape)
        for n, index in (*zip(kept, places, strict=True), *zip(gone, axes, strict=True)):
            full[n] = index
        return reduce(data[tuple(full)], axes)

    return te.compute(tuple(result), element, name=f"{data.name}_{suffix}", tag=tag)


def reduction(
    name: str,
    reduce: Callable[..., Any],
    doc: str,
    convert: Callable[[Any], Any] = lambda x: x,
    suffix: str = "red",
) -> Callable[..., Any]:
    """Return an operator that reduces dimensions by a te reducer such as `te.max`."""

    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        def over_axes(value: Any, axes: Sequence[Any]) -> Any:
            return reduce(convert(value), axis=axes) if axes else convert(value)

        return _reduced(data, axis, keepdims, over_axes, COMM_REDUCE, suffix)

    apply.__name__, apply.__doc__ = name, doc
    return apply


def _truth(value: Any) -> Any:
    return value if dtypes.is_bool(value.dtype) else value != te.const(0, value.dtype)


sum = reduction("sum", te.sum, "Add up over dimensions, all by default.")
max = reduction("max", te.max, "Return the maximum over dimensions, all by default.")
min = reduction("min", te.min, "Return the minimum over dimensions, all by default.")
prod = reduction("prod", te.prod, "Multiply over dimensions, all by default.")


def _both(a: Any, b: Any) -> Any:
    """Tell whether two conditions hold; both are evaluated, so that lanes need no masks."""
    return te.select(a, b, te.const(False, "bool"))


def _either(a: Any, b: Any) -> Any:
    """Tell whether one of two conditions holds; see `_both`."""
    return te.select(a, te.const(True, "bool"), b)


_all = te.comm_reducer(_both, lambda kind: te.const(True, kind), name="all")
_any = te.comm_reducer(_either, lambda kind: te.const(False, kind), name="any")
all = reduction("all", _all, "Tell whether all elements are not 0, over dimensions.", _truth)
any = reduction("any", _any, "Tell whether any element is not 0, over dimensions.", _truth)


def mean(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Divide the sum over dimensions by the number of elements in it; it is NaN for no elements.

    The mean of integers is a float64.
    """
    count = math.prod(data.static_shape[n] for n in dimensions(axis, len(data.shape), "mean"))
    wide = data.dtype if dtypes.is_float(data.dtype) else "float64"
    add = reduction("mean", te.sum, "", lambda value: value.astype(wide), "sum")
    total = add(data, axis, keepdims)
    return tensor(
        total.shape, lambda *i: total[i] / te.const(count, wide), f"{data.name}_mean", ELEMWISE
    )


def argmax(
    data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Return the position of the largest element along a dimension, or in row-major order.

    The position is an int32: the first of equal elements, or the last with `select_last_index`. As
    in NumPy, NaN is larger than all numbers.
    """
    return _position("argmax", data, axis, keepdims, select_last_index)


def argmin(
    data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Return the position of the smallest; see `argmax`."""
    return _position("argmin", data, axis, keepdims, select_last_index)


def _position(name: str, data: Tensor, axis: Any, keepdims: bool, is_last: bool) -> Tensor:
    """Define the position of the extreme element: reduce to its value, then to its position."""
    if not data.shape:  # the position is 0, whatever is read
        zero = te.const(0, "int32")
        return tensor(
            (),
            lambda: te.select(data() == data(), zero, zero),
            f"{data.name}_red",
            COMM_REDUCE_IDX,
        )
    best_of = reduction(name, te.max if name == "argmax" else te.min, "", suffix="best")
    extreme = best_of(data, axis, keepdims)
    nowhere = te.const(-1 if is_last else dtypes.max_value("int32"), "int32")
    extents = [data.shape[n] for n in dimensions(axis, len(data.shape), name)]

    def position(value: Any, axes: Sequence[Any]) -> Any:
        place: Any = 0
        for k, extent in zip(axes, extents, strict=True):
            place = place * extent + k
        best = extreme[_kept(value.indices, axes, keepdims)]
        found = _either(value == best, value != value) if is_float else value == best
        chosen = te.select(found, as_expr(place).astype("int32"), nowhere)
        return (te.max if is_last else te.min)(chosen, axis=axes)

    is_float = dtypes.is_float(data.dtype)
    found_at = _reduced(data, axis, keepdims, position, COMM_REDUCE_IDX, "first")

    def element(*i: Any) -> Any:
        if is_last:
            return te.maximum(found_at[i], te.const(-1, "int32"))  # of nothing: -1
        return te.select(found_at[i] < nowhere, found_at[i], te.const(-1, "int32"))

    return tensor(
        found_at.shape,
        element,
        f"{data.name}_red",
        COMM_REDUCE_IDX,
    )


def _kept(indices: Sequence[Any], axes: Sequence[Any], keepdims: bool) -> tuple[Any, ...]:
    """Return the indices of the result to which an element of the operand contributes."""
    gone = [id(axis.var) for axis in axes]
    return tuple(0 if id(i) in gone else i for i in indices if keepdims or id(i) not in gone)
