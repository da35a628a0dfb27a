"""Reductions over some of the dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import Attribute, axis_or_all, boolean, real
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    Pattern,
    Result,
    TensorRelation,
)
from dlcompiler.graph.operators.layouts import Layouts, layout_of
from dlcompiler.graph.operators.pooling import quotient
from dlcompiler.graph.operators.relations import (
    axes_of,
    chosen_axes,
    expect,
    same_dtype,
    static,
    without,
)
from dlcompiler.graph.operators.values import largest, least, rounded, wide
from dlcompiler.ops import reductions
from dlcompiler.ops.helpers import ELEMWISE, tensor

AXES = (
    Attribute("axis", axis_or_all, None, "the dimensions; None: all"),
    Attribute("keepdims", boolean, False, "keep them, with the extent 1"),
    Attribute("exclude", boolean, False, "reduce all dimensions but those in `axis`"),
)


# -- types ----------------------------------------------------------------------------------------


def _reduced(family: str, result: str = "") -> TensorRelation:
    """Return the relation of a reduction of a family of dtypes."""

    def relation(call: CallTypes) -> TensorType:
        kind = call.tensor(0)
        check_family(call, family, kind.dtype)
        axes = axes_of(call, kind.rank)
        shape = without(kind.shape, axes, call.attrs["keepdims"])
        return TensorType(shape, result or kind.dtype)

    return relation


def _position_relation(call: CallTypes) -> TensorType:
    """Return the type of positions; refuse to look for one among no elements."""
    made, kind = _reduced("number", "int32")(call), call.tensor(0)
    empty = [n for n in axes_of(call, kind.rank) if kind.shape[n] == 0]
    if empty and 0 not in made.shape:
        call.fail(f"dimension {empty[0]} has no elements, so none is at a position")
    return made


def check_family(call: CallTypes, family: str, dtype: str) -> None:
    """Refuse a dtype that is not of a family: ``number``, ``float``, ``bool`` or ``any``."""
    takes = {
        "number": not dtypes.is_bool(dtype),
        "float": dtypes.is_float(dtype),
        "bool": dtypes.is_bool(dtype),
    }
    if not takes.get(family, True):
        call.fail(f"takes {family}s, not {dtype}", hint="cast the input: cast(x, dtype=…)")


def _variance_relation(call: CallTypes) -> TensorType:
    made = _reduced("float")(call)
    kind = call.tensor(0)
    same_dtype(call, [kind, expect(call, 1, without(kind.shape, axes_of(call, kind.rank), True),
                                   kind.dtype)])  # fmt: skip
    return made


def _norm_relation(call: CallTypes) -> TensorType:
    if not call.attrs["ord"] > 0:
        call.fail("ord is not positive", got=f"ord={call.attrs['ord']}")
    return _reduced("float")(call)


# -- values ---------------------------------------------------------------------------------------


def reduced_axes(call: Result) -> tuple[int, ...]:
    """Return the axes that a call reduces."""
    kind = call.inputs[0]
    assert isinstance(kind, TensorType)
    return chosen_axes(call.attrs, kind.rank)


def _count(x: Array, axes: Sequence[int]) -> int:
    return math.prod(x.shape[n] for n in axes)


def _evaluate(function: Callable[[Array, tuple[int, ...]], Any]) -> Callable[..., Array]:
    """Return a meaning from a function that reduces axes and keeps them."""

    def evaluate(call: Result, x: Array) -> Array:
        return rounded(function(wide(x), reduced_axes(call)), call.tensor)

    return evaluate


def _sum(x: Array, axes: tuple[int, ...]) -> Any:
    return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)


def _product(x: Array, axes: tuple[int, ...]) -> Any:
    return np.prod(x, axis=axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: tuple[int, ...]) -> Any:
    count = _count(x, axes)
    if not count and not dtypes.is_float(dtypes.from_numpy(x.dtype)):
        return _sum(x, axes)
    return quotient(_sum(x, axes), count)


def _maximum(x: Array, axes: tuple[int, ...]) -> Any:
    start = least(dtypes.from_numpy(x.dtype))
    return np.max(x, axis=axes, keepdims=True, initial=start)


def _minimum(x: Array, axes: tuple[int, ...]) -> Any:
    start = largest(dtypes.from_numpy(x.dtype))
    return np.min(x, axis=axes, keepdims=True, initial=start)


def _all(x: Array, axes: tuple[int, ...]) -> Any:
    return np.all(x, axis=axes, keepdims=True)


def _any(x: Array, axes: tuple[int, ...]) -> Any:
    return np.any(x, axis=axes, keepdims=True)


def _logsumexp(x: Array, axes: tuple[int, ...]) -> Any:
    highest = _maximum(x, axes)
    base = np.where(np.isfinite(highest), highest, 0)
    return np.log(_sum(np.exp(x - base), axes)) + base


def _variance(call: Result, x: Array, mean: Array) -> Array:
    axes = reduced_axes(call)
    count = _count(x, axes) - call.attrs["unbiased"]
    return rounded(_sum(np.square(wide(x) - wide(mean)), axes) / count, call.tensor)


def _norm(call: Result, x: Array) -> Array:
    axes, order = reduced_axes(call), call.attrs["ord"]
    size = np.abs(wide(x))
    if math.isinf(order):
        return rounded(np.max(size, axis=axes, keepdims=True, initial=0), call.tensor)
    return rounded(_sum(size**order, axes) ** (1 / order), call.tensor)


def _evaluate_position(find: Callable[..., Any]) -> Callable[..., Array]:
    """Return the meaning of a place in row-major order of the reduced dimensions."""

    def evaluate(call: Result, x: Array) -> Array:
        axes = reduced_axes(call)
        kept = [n for n in range(x.ndim) if n not in axes]
        count = _count(x, axes)
        rows = x.transpose([*kept, *axes]).reshape([*(x.shape[n] for n in kept), count])
        if not rows.size:  # then there is no result either: the relation of the types says so
            return np.empty(rows.shape[:-1], np.int32).reshape(static(call.tensor))
        if call.attrs["select_last_index"]:
            return rounded(count - 1 - find(rows[..., ::-1], axis=-1), call.tensor)
        return rounded(find(rows, axis=-1), call.tensor)

    return evaluate


# -- definitions ----------------------------------------------------------------------------------


def _define(function: Callable[..., Any]) -> Callable[..., te.Tensor]:
    def define(call: Result, x: te.Tensor) -> te.Tensor:
        made: te.Tensor = function(x, reduced_axes(call), call.attrs["keepdims"])
        return made

    return define


def _define_position(function: Callable[..., te.Tensor]) -> Callable[..., te.Tensor]:
    return lambda call, x: function(
        x, reduced_axes(call), call.attrs["keepdims"], call.attrs["select_last_index"]
    )


def _define_variance(call: Result, x: te.Tensor, mean: te.Tensor) -> te.Tensor:
    return reductions.variance(
        x, mean, reduced_axes(call), call.attrs["keepdims"], call.attrs["unbiased"]
    )


def _define_norm(call: Result, x: te.Tensor) -> te.Tensor:
    return reductions.norm(x, call.attrs["ord"], reduced_axes(call), call.attrs["keepdims"])


def _define_mean(call: Result, x: te.Tensor) -> te.Tensor:
    axes = reduced_axes(call)
    if dtypes.is_float(x.dtype):
        return reductions.mean(x, axes, call.attrs["keepdims"])
    count = math.prod(x.static_shape[n] for n in axes)
    total: te.Tensor = reductions.sum(x, axes, call.attrs["keepdims"])
    if not count:
        return total
    # The quotient is taken in 64 bits: a narrow integer may not hold the count.
    wide_dtype = "uint64" if dtypes.is_unsigned(x.dtype) else "int64"
    divisor = te.const(count, wide_dtype)
    return tensor(
        total.shape,
        lambda *i: te.truncdiv(total[i].astype(wide_dtype), divisor).astype(x.dtype),
        f"{x.name}_mean", ELEMWISE,
    )  # fmt: skip


# -- layouts --------------------------------------------------------------------------------------


def reduced_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a reduction: its axes move with the dimensions."""
    if not current[0]:
        return None
    old, new = layout_of(current[0]), layout_of(wanted)
    if sorted(old.dimensions) != sorted(new.dimensions):
        return None
    gone = {old.axes[n].upper() for n in reduced_axes(call)}
    kept = {old.axes[n].upper() for n in range(len(old.axes)) if n not in reduced_axes(call)}
    if gone & kept or (call.attrs["keepdims"] and any(new.factor(axis) > 1 for axis in gone)):
        return None
    axes = tuple(n for n, axis in enumerate(new.axes) if axis.upper() in gone)
    result = new.text if call.attrs["keepdims"] else _without(new.text, gone)
    return Layouts((wanted,), (result,), {"axis": axes, "exclude": False})


def _position_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts of a position along one dimension that is not split."""
    found = reduced_layouts(call, current, wanted)
    if found is None or len(reduced_axes(call)) != 1 or len(found.attrs["axis"]) != 1:  # type: ignore[arg-type]  # axes
        return None
    return found


def _without(text: str, gone: set[str]) -> str:
    layout = layout_of(text)
    return "".join(
        f"{factor or ''}{axis}"
        for axis, factor in zip(layout.axes, layout.factors, strict=True)
        if axis.upper() not in gone
    )


# -- the table ------------------------------------------------------------------------------------


def _reduction(
    name: str, family: str, function: Callable[..., Any], define: Callable[..., te.Tensor],
    doc: str,
) -> GraphOperator:  # fmt: skip
    return GraphOperator(
        name, ("data",), _reduced(family), _evaluate(function), Pattern.REDUCTION, define, AXES,
        doc, reduced_layouts, kernel="reduction",
    )  # fmt: skip


_LAST = Attribute("select_last_index", boolean, False, "the last of equal elements")


def _position_of(name: str, find: Callable[..., Any], doc: str) -> GraphOperator:
    return GraphOperator(
        name, ("data",), _position_relation, _evaluate_position(find), Pattern.REDUCTION,
        _define_position(getattr(reductions, name)), (*AXES, _LAST), doc, _position_layouts,
    )  # fmt: skip


TABLE = (
    _reduction("sum", "number", _sum, _define(reductions.sum), "Add up over dimensions."),
    _reduction("mean", "number", _mean, _define_mean,
               "The mean over dimensions; that of integers is rounded toward zero."),
    _reduction("max", "number", _maximum, _define(reductions.max),
               "The largest element over dimensions; NaN if one is NaN."),
    _reduction("min", "number", _minimum, _define(reductions.min),
               "The smallest element over dimensions; NaN if one is NaN."),
    _reduction("prod", "number", _product, _define(reductions.prod), "Multiply over dimensions."),
    _reduction("all", "bool", _all, _define(reductions.all), "Tell whether all elements are true."),
    _reduction("any", "bool", _any, _define(reductions.any), "Tell whether an element is true."),
    _reduction("logsumexp", "float", _logsumexp, _define(reductions.logsumexp),
               "The logarithm of the sum of the powers e**x."),
    _position_of("argmax", np.argmax,
                 "The position of the largest element, in row-major order of the dimensions."),
    _position_of("argmin", np.argmin,
                 "The position of the smallest element, in row-major order of the dimensions."),
    GraphOperator(
        "variance", ("data", "mean"), _variance_relation, _variance, Pattern.REDUCTION,
        _define_variance,
        (*AXES, Attribute("unbiased", boolean, False, "divide by the number of elements less 1")),
        "The mean of squared distances from the mean, which keeps the reduced dimensions.",
    ),
    GraphOperator(
        "norm", ("data",), _norm_relation, _norm, Pattern.REDUCTION, _define_norm,
        (Attribute("ord", real, 2.0, "power, more than 0; infinity: the largest"), *AXES),
        "The root of the sum of powers: (Σ|x|**ord)**(1/ord).", reduced_layouts,
        kernel="reduction",
    ),
)  # fmt: skip
"""The operators of this module."""
