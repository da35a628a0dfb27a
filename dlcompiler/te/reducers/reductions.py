"""Reductions: how the values over some axes become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Expr,
    Logical,
    Reduce,
    Reducer,
    Select,
    TensorLoad,
    Var,
    as_expr,
    cast,
    compare,
    free_vars,
    walk,
)
from dlcompiler.ir import const as make_const
from dlcompiler.ir.expr import condition as as_condition
from dlcompiler.ir.names import checked_label
from dlcompiler.te.given_functions import call_given

SUM = Reducer("sum", "add")
MIN = Reducer("min", "min")
MAX = Reducer("max", "max")
PROD = Reducer("prod", "mul")


def sum(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Add up `expr` over one or several reduction axes.

    Parameters
    ----------
    expr : expression
        The value at each point.
    axis : Axis or sequence of Axis
        The reduction axes.
    where : condition, optional
        Only points where it holds count; elsewhere `expr` is not evaluated.
    init : number or element of a tensor, optional
        What to start from, in place of 0.
    """
    return _single(SUM, expr, axis, where, init)


def prod(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Multiply `expr` over reduction axes; see `sum`."""
    return _single(PROD, expr, axis, where, init)


def max(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Return the largest `expr` over reduction axes; NaN wins. See `sum`."""
    return _single(MAX, expr, axis, where, init)


def min(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Return the smallest `expr` over reduction axes; NaN wins. See `sum`."""
    return _single(MIN, expr, axis, where, init)


def argmax(expr: Any, axis: Axis) -> tuple[Reduce, Reduce]:
    """Return the first position of the largest `expr` along a reduction axis, and that value.

    Returns
    -------
    tuple of Reduce
        The position (int32), and the value. For the body of a `te.compute` of two outputs. Of
        nothing, -1 and the smallest value; NaN never wins.
    """
    return _arg("argmax", expr, axis)


def argmin(expr: Any, axis: Axis) -> tuple[Reduce, Reduce]:
    """Return the first position of the smallest `expr` along a reduction axis, and that value.

    See `argmax`.
    """
    return _arg("argmin", expr, axis)


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Make a reduction of one's own.

    Parameters
    ----------
    fcombine : callable
        Merges two partial results: ``f(x, y)``, where both are values or, for a reduction of
        several values together, tuples. A loop nest gives the result so far as `x`, and one value
        more as `y`. Steps that group values, or change their order, are refused where a sample
        shows that this gives another result. NaN is among the samples of floats, but for an argmax
        written by hand, whose result with a NaN depends on the schedule; `argmax` has one result.
    fidentity : callable
        Gets the dtype of each value and returns what changes nothing when merged: the result over
        no points.
    name : str
        Name in printed programs.

    Returns
    -------
    callable
        ``r(expr, axis, where=None, init=None)``; `expr` and `init` are tuples for several values,
        and so is the result.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> xor = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name="product")
    >>> te.compute((4,), lambda i: xor(A[i, k], axis=k), name="P")
    Tensor(P: int32[4])
    """
    checked_label(name, "te.comm_reducer")
    known: dict[tuple[str, ...], Reducer] = {}

    def reduce(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Any:
        is_single = not isinstance(expr, list | tuple)
        values = tuple(map(_as_data, (expr,) if is_single else expr))
        key = tuple(value.dtype for value in values)
        if key not in known:
            known[key] = _reducer(fcombine, fidentity, name, key, is_single=is_single)
        results = _reductions(known[key], values, axis, where, init)
        return results[0] if is_single else results

    return reduce


def with_reducer(reducer: Reducer) -> Callable[..., Any]:
    """Return the function that reduces as an existing reduction does; see `comm_reducer`."""

    def reduce(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Any:
        is_single = not isinstance(expr, list | tuple)
        values = tuple(map(_as_data, (expr,) if is_single else expr))
        results = _reductions(reducer, values, axis, where, init)
        return results[0] if is_single else results

    return reduce


def _arg(name: str, expr: Any, axis: Axis) -> tuple[Reduce, Reduce]:
    axes = _checked_axes(axis, name)
    if len(axes) != 1:
        raise ExpressionError(f"te.{name}", "takes one axis", got=f"{len(axes)} axes")
    return first_of(name, expr, as_expr(axes[0]), axes)


def first_of(name: str, expr: Any, position: Expr, axes: Sequence[Axis]) -> tuple[Reduce, Reduce]:
    """Return the least `position` of the largest or smallest `expr`, and that value; see `argmax`.

    Parameters
    ----------
    name : {"argmax", "argmin"}
        Which is looked for.
    expr : expression
        The value at each point.
    position : expression
        What tells the points apart: an integer that is not negative.
    axes : sequence of Axis
        The reduction axes.
    """
    (value,) = _values((expr,), name)
    y = Var("y", value.dtype)
    # NaN loses, to NaN too.
    unordered = compare("ne", y, y) if dtypes.is_float(value.dtype) else None
    reducer = position_reducer(name, Var("x", value.dtype), y, unordered)
    return positions(reducer, value, position, axes, None)


def position_reducer(name: str, x: Var, y: Var, unordered: Expr | None) -> Reducer:
    """Return the reducer that keeps the largest or smallest value, and where it is found first.

    Parameters
    ----------
    name : {"argmax", "argmin"}
        Which is looked for.
    x, y : Var
        Two values.
    unordered : condition of `x` and `y`, optional
        Whether `x` is kept where it is neither less than `y`, nor equal, nor greater.
    """
    i, j = Var("i", "int32"), Var("j", "int32")
    # The first of equals, in whatever order they come: -1 stands for nothing.
    first = Logical("and", compare("ge", i, 0), Logical("or", compare("lt", i, j), j < 0))
    wins = Logical(
        "or",
        compare("gt" if name == "argmax" else "lt", x, y),
        Logical("and", Logical("and", x <= y, x >= y), first),
    )
    if unordered is not None:
        wins = Logical("or", wins, unordered)
    start = dtypes.min_value(x.dtype) if name == "argmax" else dtypes.max_value(x.dtype)
    return Reducer(
        name,
        lhs=(i, x),
        rhs=(j, y),
        results=(Select(wins, i, j), Select(wins, x, y)),
        identities=(make_const(-1, "int32"), make_const(start, x.dtype)),
    )


def positions(
    reducer: Reducer, value: Expr, position: Expr, axes: Sequence[Axis], where: Expr | None
) -> tuple[Reduce, Reduce]:
    """Return the position and the value that a `position_reducer` keeps; see `first_of`."""
    a, b = _reductions(reducer, (cast(position, "int32"), value), axes, where, None)
    return a, b


def _reducer(
    fcombine: Callable[[Any, Any], Any],
    fidentity: Callable[..., Any],
    name: str,
    dtypes_: tuple[str, ...],
    *,
    is_single: bool,
) -> Reducer:
    """Call the user's functions on variables of the values' dtypes."""
    where = f"te.comm_reducer {name}"
    if not dtypes_:
        raise ExpressionError(where, "no value is reduced", got="()")
    lhs = tuple(Var(f"x{n}", dtype) for n, dtype in enumerate(dtypes_))
    rhs = tuple(Var(f"y{n}", dtype) for n, dtype in enumerate(dtypes_))
    each = "one value" if is_single else f"a tuple of {len(lhs)} values"
    merges = f"{where}: the function that combines"
    begins = f"{where}: the function of the identity"
    operands = (lhs[0], rhs[0]) if is_single else (lhs, rhs)
    combined = call_given(fcombine, operands, merges, f"f(x, y), each {each}")
    identity = call_given(fidentity, dtypes_, begins, f"f({', '.join(map(repr, dtypes_))})")
    results = _tuple(combined, dtypes_, merges)
    identities = _tuple(identity, dtypes_, begins)
    for result in results:
        names = ", ".join(_strangers(result, {*lhs, *rhs}))
        if names:
            raise ExpressionError(
                where, "the combination depends on more than the two partial results",
                got=f"{result}, with {names}",
            )  # fmt: skip
    for expr in identities:
        if _strangers(expr, set()):
            raise ExpressionError(where, "the identity is not a constant", got=str(expr))
    return Reducer(name, lhs=lhs, rhs=rhs, results=results, identities=identities)


def _strangers(expr: Expr, known: set[Var]) -> list[str]:
    """Return the names of variables that are not known, and of tensors, in the order of names."""
    tensors = {node.tensor.name for node in walk(expr) if isinstance(node, TensorLoad)}
    return sorted(tensors | {var.name for var in free_vars(expr) - known})


def _tuple(value: Any, dtypes_: tuple[str, ...], where: str) -> tuple[Expr, ...]:
    """Return what a user's function returned as expressions of the values' dtypes."""
    items = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(items) != len(dtypes_):
        raise ExpressionError(
            where, "another number of values", got=len(items), expected=len(dtypes_)
        )
    try:
        exprs = [as_expr(item, dtype) for item, dtype in zip(items, dtypes_, strict=True)]
    except ExpressionError as error:
        raise ExpressionError(
            where, "not a value", got=repr(value), because=f"{error.operation}: {error.problem}"
        ) from error
    return tuple(cast(expr, dtype) for expr, dtype in zip(exprs, dtypes_, strict=True))


def _single(reducer: Reducer, expr: Any, axis: Any, where: Any, init: Any) -> Reduce:
    (value,) = _values((expr,), reducer.name)
    return _reductions(reducer, (value,), axis, where, init)[0]


def _values(exprs: Sequence[Any], name: str) -> tuple[Expr, ...]:
    """Return what is reduced as data, or refuse conditions, which have no sum."""
    values = tuple(map(_as_data, exprs))
    for value in values:
        if dtypes.is_bool(value.dtype):
            raise ExpressionError(
                f"te.{name}", "cannot reduce conditions", got=str(value),
                hint="use .astype('int32'), or te.comm_reducer with te.all or te.any",
            )  # fmt: skip
    return values


def _as_data(value: Any) -> Expr:
    """Return an expression of data: an index becomes ``int32``."""
    expr = as_expr(value)
    return cast(expr, "int32") if expr.dtype == "index" else expr


def _reductions(
    reducer: Reducer, values: tuple[Expr, ...], axis: Any, where: Any, init: Any
) -> tuple[Reduce, ...]:
    """Return every result of a reduction."""
    operation = f"te.{reducer.name}"
    axes = _checked_axes(axis, reducer.name)
    condition = None if where is None else as_condition(where, f"{operation}: where")
    start: tuple[Expr, ...] = ()
    if init is not None:
        kinds = tuple(value.dtype for value in values)
        start = _tuple(init, kinds, f"{operation}: init")
    return tuple(
        Reduce(reducer, values, axes, condition, start, index) for index in range(len(values))
    )


def _checked_axes(axis: Any, name: str) -> tuple[Axis, ...]:
    where = f"te.{name}"
    axes = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    for item in axes:
        if not isinstance(item, Axis) or item.kind != "reduce":
            raise ExpressionError(
                where, "can only reduce over reduction axes", got=repr(item),
                expected="an axis made by te.reduce_axis, or a list of them",
            )  # fmt: skip
    if len(set(axes)) != len(axes) or not axes:
        raise ExpressionError(where, "each axis must be given once", got=repr(axes))
    return axes
