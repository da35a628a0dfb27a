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
from dlcompiler.ops.transforms import squeeze
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


def variance(
    data: Tensor, mean: Tensor, axis: Any = None, keepdims: bool = False, unbiased: bool = False
) -> Tensor:
    """Return the mean of squared distances from the mean over dimensions.

    Parameters
    ----------
    data : Tensor
        Floats.
    mean : Tensor
        Their mean over the same dimensions, which it keeps with the extent 1.
    axis : int, sequence of int or None
        The dimensions.
    keepdims : bool
        Keep them, with the extent 1.
    unbiased : bool
        Divide by the number of elements less 1.
    """
    gone = dimensions(axis, len(data.shape), "variance")
    count = math.prod(data.static_shape[n] for n in gone) - unbiased
    squares = tensor(
        data.shape,
        lambda *i: _squared(data[i] - mean[tuple(0 if n in gone else k for n, k in enumerate(i))]),
        f"{data.name}_squares", ELEMWISE,
    )  # fmt: skip
    total = sum(squares, gone, keepdims)
    return tensor(
        total.shape, lambda *i: total[i] / te.const(count, data.dtype), f"{data.name}_variance",
        ELEMWISE,
    )  # fmt: skip


def _squared(value: Any) -> Any:
    return value * value


def logsumexp(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the logarithm of the sum of ``exp(x)`` over dimensions.

    The largest element is subtracted first, so that no power overflows.
    """
    gone = dimensions(axis, len(data.shape), "logsumexp")
    highest = max(data, gone, True)

    def base(i: Sequence[Any]) -> Any:
        zero = te.const(0, data.dtype)
        value = highest[tuple(0 if n in gone else k for n, k in enumerate(i))]
        return te.select(te.isinf(value), zero, value)

    powers = tensor(
        data.shape, lambda *i: te.exp(data[i] - base(i)), f"{data.name}_powers", ELEMWISE
    )
    total = sum(powers, gone, True)
    wide = tensor(
        total.shape, lambda *i: te.log(total[i]) + base(i), f"{data.name}_logsumexp", ELEMWISE
    )
    return wide if keepdims else squeeze(wide, list(gone)) if gone else wide


def norm(data: Tensor, order: float, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the root of a sum of powers of absolute values over dimensions.

    Parameters
    ----------
    data : Tensor
        Floats.
    order : float
        The power; of an infinite one it is the largest absolute value.
    axis : int, sequence of int or None
        The dimensions.
    keepdims : bool
        Keep them, with the extent 1.
    """
    terms: dict[float, Callable[[Any], Any]] = {1: te.abs, 2: _squared, math.inf: te.abs}
    exact = terms.get(order)

    def term(value: Any) -> Any:
        return exact(value) if exact else te.power(te.abs(value), te.const(order, value.dtype))

    parts = tensor(data.shape, lambda *i: term(data[i]), f"{data.name}_terms", ELEMWISE)
    if order == math.inf:
        largest = max(parts, axis, keepdims)
        zero = te.const(0, data.dtype)
        return tensor(
            largest.shape, lambda *i: te.maximum(largest[i], zero), f"{data.name}_norm", ELEMWISE
        )
    total: Tensor = sum(parts, axis, keepdims)
    if order == 1:
        return total

    def root(value: Any) -> Any:
        return te.sqrt(value) if order == 2 else te.power(value, te.const(1 / order, data.dtype))

    return tensor(total.shape, lambda *i: root(total[i]), f"{data.name}_norm", ELEMWISE)


def summed(
    data: Tensor, axis: Any, keepdims: bool, term: Callable[..., Any], suffix: str
) -> Tensor:
    """Add up terms over dimensions; all together are one stage.

    Parameters
    ----------
    data : Tensor
        Floats.
    axis : int, sequence of int or None
        The dimensions.
    keepdims : bool
        Keep them, with the extent 1.
    term : callable
        Returns a term from an element and the place of the result that it is added to.
    suffix : str
        End of the result's name.
    """

    def over_axes(value: Any, axes: Sequence[Any]) -> Any:
        own = term(value, _kept(value.indices, axes, keepdims) if axes else tuple(value.indices))
        return te.sum(own, axis=axes) if axes else own

    made: Tensor = _reduced(data, axis, keepdims, over_axes, COMM_REDUCE, suffix)
    return made


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
    if not dimensions(axis, len(data.shape), name):  # the position is 0, whatever is read
        zero = te.const(0, "int32")
        return tensor(
            data.shape,
            lambda *i: te.select(data[i] == data[i], zero, zero),
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
