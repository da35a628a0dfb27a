"""Reverse mode through a reduction: from the adjoint of its result to those of its values."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Binary,
    Compare,
    Expr,
    IfThenElse,
    Not,
    Reduce,
    Reducer,
    Select,
    TensorLoad,
    Var,
    binary,
    cast,
    compare,
    const,
    extent_expr,
    structural_equal,
    substitute,
)
from dlcompiler.ir.operations import BinaryOp
from dlcompiler.te.arithmetic import all as all_of
from dlcompiler.te.arithmetic import any as any_of
from dlcompiler.te.definition import define_tensors
from dlcompiler.te.gradient.body import Adjoint
from dlcompiler.te.math import isnan
from dlcompiler.te.reducers.reductions import first_of, position_reducer, positions, prod
from dlcompiler.te.reducers.reductions import min as min_of
from dlcompiler.te.tensor import Tensor

_OPERATIONS: tuple[BinaryOp, ...] = ("add", "mul", "min", "max")


def seed_of_reduction(tensor: Tensor, body: Reduce, given: Expr, where: str) -> Adjoint:
    """Return the adjoint of the values of a reduction whose result is `tensor`.

    Parameters
    ----------
    tensor
        The result.
    body
        The reduction.
    given
        The adjoint of an element of `tensor`, as an expression of the data axes.
    where
        Names the reduction in errors.

    Notes
    -----
    - Sum: each value gets the adjoint of the result.
    - Maximum and minimum: the first value that equals the result gets the adjoint. Its position is
      computed by an additional stage. Comparing values with the result would be wrong if they are
      rounded differently. If the result is NaN, the first NaN gets the adjoint; its position is
      another stage. A reducer written as a choice, ``select(x > y, x, y)``, keeps or drops NaN
      depending on the order of values, and the stage of the position does the same.
    - Product: each value gets the adjoint times the product of the other values, which is computed
      by an additional stage. Dividing the result by the value would fail for 0. For n values, this
      multiplies n*n factors.
    """
    guarded = Adjoint(given)
    if body.condition is not None:
        guarded = guarded.under(body.condition, is_lazy=True)
    match _operation(body, where):
        case "add":
            return guarded
        case "mul":
            others = _others(tensor, body, where)
            factor = others[(*tensor.axis, *(axis.var for axis in body.axes))]
            return Adjoint(binary("mul", given, factor), guarded.guard)
        case op:
            place = _place(tensor, body, "argmax" if op == "max" else "argmin", where)
            here = cast(_number(body.axes), "int32")
            return guarded.under(compare("eq", place, here), is_lazy=False)


def _operation(body: Reduce, where: str) -> BinaryOp:
    """Return the operation of a reduction; refuse a reduction whose derivative is not known."""
    name = body.reducer.name
    if body.init:
        raise ExpressionError(
            where, "the derivative of a reduction with init= is not supported",
            got=f"init={', '.join(map(str, body.init))}",
            hint="leave out init=, and add the start value in another te.compute",
        )  # fmt: skip
    if len(body.values) > 1:
        raise ExpressionError(
            where, "the derivative of a reduction of several values together is not supported",
            got=name, hint="use te.max or te.min" if name in ("argmax", "argmin") else None,
        )  # fmt: skip
    if body.reducer.op in _OPERATIONS:
        return body.reducer.op
    own = _operation_of(body.reducer, body.dtype)
    if own is not None:
        return own
    raise ExpressionError(
        where, "the derivative of this reducer is not known",
        got=f"{name}: {', '.join(map(str, body.reducer.results))}",
        expected="a sum, a product, a maximum or a minimum, with its own identity",
    )  # fmt: skip


def _operation_of(reducer: Reducer, dtype: str) -> BinaryOp | None:
    """Return the operation that equals a user's reducer with its identity; None if none does."""
    (result,), (identity,) = reducer.results, reducer.identities
    op, *operands = _operands(result)
    if op not in _OPERATIONS or set(operands) != {*reducer.lhs, *reducer.rhs}:
        return None
    return op if structural_equal(identity, Reducer(op, op).identity(dtype)) else None


def _operands(result: Expr) -> tuple[BinaryOp, Expr, Expr] | tuple[None]:
    """Return the operation of a combination and its operands; recognise max and min as choices."""
    match result:
        case Binary(op, a, b):
            return op, a, b
        case Select(Compare(op, a, b), x, y) | IfThenElse(Compare(op, a, b), x, y) if op in (
            "lt",
            "le",
            "gt",
            "ge",
        ) and {x, y} == {a, b}:
            is_greater = (op in ("gt", "ge")) == (x is a)
            return "max" if is_greater else "min", a, b
    return (None,)


def _place(tensor: Tensor, body: Reduce, name: str, where: str) -> Expr:
    """Return the number of the point whose value is the result of a maximum or minimum."""
    kept = _kept(body.reducer)
    if kept is not None:
        x, y = (Var(var.name, var.dtype) for var in (*body.reducer.lhs, *body.reducer.rhs))
        chosen = substitute(kept, {body.reducer.lhs[0]: x, body.reducer.rhs[0]: y})
        is_nan = any_of(compare("ne", x, x), compare("ne", y, y))
        reducer = position_reducer(name, x, y, all_of(is_nan, chosen))
        return _element(_first(tensor, body, reducer, where), tensor)
    reducer = first_of(name, body.value, _number(body.axes), body.axes)[0].reducer
    first = _element(_first(tensor, body, reducer, where), tensor)
    nan = _element(_first_nan(tensor, body, where), tensor)
    none = const(dtypes.max_value("int32"), "int32")
    return Select(compare("lt", nan, none), nan, first)


def _element(stage: Tensor, tensor: Tensor) -> Expr:
    return TensorLoad(stage, tuple(axis.var for axis in tensor.axis))


def _kept(reducer: Reducer) -> Expr | None:
    """Return the condition under which a reducer keeps its left value; None if it has none."""
    match reducer.results:
        case (Select(condition, x, _) | IfThenElse(condition, x, _),):
            return condition if x is reducer.lhs[0] else Not(condition)
    return None


def _first(tensor: Tensor, body: Reduce, reducer: Reducer, where: str) -> Tensor:
    """Define the tensor with the number of the first point that has the maximum or minimum."""
    axes, reduced, values = _copied(tensor, body)
    condition = None if body.condition is None else substitute(body.condition, values)
    value = substitute(body.value, values)
    results = positions(reducer, value, _number(reduced), reduced, condition)
    return define_tensors(f"{tensor.name}.first", axes, results, where)[0]


def _first_nan(tensor: Tensor, body: Reduce, where: str) -> Tensor:
    """Return the number of the first point whose value is NaN; the largest int32 if none is."""
    axes, reduced, values = _copied(tensor, body)
    value = substitute(body.value, values)
    is_nan = isnan(value)
    if body.condition is not None:
        is_nan = all_of(substitute(body.condition, values), is_nan)
    result = min_of(cast(_number(reduced), "int32"), reduced, where=is_nan)
    return define_tensors(f"{tensor.name}.nan", axes, (result,), where)[0]


def _number(axes: Sequence[Axis]) -> Expr:
    """Return the number of a point when the points of all axes are counted in order."""
    result: Expr = axes[0].var
    for axis in axes[1:]:
        result = binary("add", binary("mul", result, extent_expr(axis.extent)), axis.var)
    return result


def _others(tensor: Tensor, body: Reduce, where: str) -> Tensor:
    """Define the tensor that holds, for each value of a product, the product of all others."""
    axes, reduced, values = _copied(tensor, body)
    points = [Axis(axis.name, axis.extent, "data") for axis in body.axes]
    is_other = any_of(*(compare("ne", a.var, b.var) for a, b in zip(reduced, points, strict=True)))
    if body.condition is not None:
        is_other = all_of(is_other, substitute(body.condition, values))
    product = prod(substitute(body.value, values), reduced, where=is_other)
    return define_tensors(f"{tensor.name}.others", (*axes, *points), (product,), where)[0]


def _copied(tensor: Tensor, body: Reduce) -> tuple[tuple[Axis, ...], list[Axis], dict[Var, Expr]]:
    """Copy the axes of a reduction; return data axes, reduction axes, and old -> new variables."""
    axes = tuple(Axis(axis.name, axis.extent, "data") for axis in tensor.axis)
    reduced = [Axis(a.name, a.extent, "reduce", start=a.start) for a in body.axes]
    pairs = zip((*tensor.axis, *body.axes), (*axes, *reduced), strict=True)
    return axes, reduced, {old.var: new.var for old, new in pairs}
