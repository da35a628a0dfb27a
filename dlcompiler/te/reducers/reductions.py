"""Reductions: `sum`, `max`, `argmax` …, and reducers that the user defines (`comm_reducer`)."""

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
        The value at each point, a number.
    axis : Axis or sequence of Axis
        The reduction axes (`te.reduce_axis`).
    where : condition, optional
        Only points where it holds are added; elsewhere `expr` is not evaluated.
    init : number or element of a tensor, optional
        The value to start from, by default 0. It must not depend on the reduction axes.

    Returns
    -------
    Reduce
        For the whole body of a `te.compute`: it cannot be an operand of another expression.

    Raises
    ------
    ExpressionError
        If `expr` is a condition, or `axis` is not made of different reduction axes.

    Notes
    -----
    The order of addition is not defined for floats: a schedule may change it. Integers wrap.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0), name="S")
    Tensor(S: float32[4])
    """
    return _single(SUM, expr, axis, where, init)


def prod(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Multiply `expr` over reduction axes, starting from 1.

    Parameters
    ----------
    expr, axis, where, init
        As for `sum`.

    Returns
    -------
    Reduce
        As of `sum`.
    """
    return _single(PROD, expr, axis, where, init)


def max(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Return the largest `expr` over reduction axes.

    Parameters
    ----------
    expr, axis, where, init
        As for `sum`.

    Returns
    -------
    Reduce
        As of `sum`. If a value is NaN, so is the result. Over no points it is `min_value` of the
        dtype.
    """
    return _single(MAX, expr, axis, where, init)


def min(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Reduce:
    """Return the smallest `expr` over reduction axes.

    Parameters
    ----------
    expr, axis, where, init
        As for `sum`.

    Returns
    -------
    Reduce
        As of `sum`. If a value is NaN, so is the result. Over no points it is `max_value` of the
        dtype.
    """
    return _single(MIN, expr, axis, where, init)


def argmax(expr: Any, axis: Axis) -> tuple[Reduce, Reduce]:
    """Return the position of the largest `expr` along a reduction axis, and that value.

    Parameters
    ----------
    expr : expression
        The value at each point, a number.
    axis : Axis
        One reduction axis.

    Returns
    -------
    tuple of Reduce
        The position (int32) and the value, for the body of a `te.compute` of two outputs. Among
        equal values the first position is taken. NaN is ignored. Over no points, or if all values
        are NaN, the results are -1 and `min_value` of the dtype.

    Raises
    ------
    ExpressionError
        If `expr` is a condition, or `axis` is not one reduction axis.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((2, 3), name="A")
    >>> k = te.reduce_axis((0, 3), name="k")
    >>> P, V = te.compute((2,), lambda i: te.argmax(A[i, k], axis=k), name="M")
    >>> te.evaluate([P, V], [np.array([[1, 5, 5], [0, -1, -2]], "float32")])
    (array([1, 0], dtype=int32), array([5., 0.], dtype=float32))
    """
    return _arg("argmax", expr, axis)


def argmin(expr: Any, axis: Axis) -> tuple[Reduce, Reduce]:
    """Return the position of the smallest `expr` along a reduction axis, and that value.

    Parameters
    ----------
    expr, axis
        As for `argmax`.

    Returns
    -------
    tuple of Reduce
        As of `argmax`, with `max_value` over no points.
    """
    return _arg("argmin", expr, axis)


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Define a reducer from a function that combines two partial results.

    Parameters
    ----------
    fcombine : callable
        ``f(x, y)`` combines two partial results. Both are values, or tuples if several values are
        reduced together. In a loop nest, `x` is the result so far and `y` the next value.
    fidentity : callable
        Gets the dtype of each value and returns the identity: combined with it, a partial result
        does not change. It is also the result over no points.
    name : str
        Name in printed programs.

    Returns
    -------
    callable
        ``r(expr, axis, where=None, init=None)`` with the parameters of `te.sum`. If several values
        are reduced together, `expr`, `init` and the result are tuples.

    Raises
    ------
    ExpressionError
        By the reducer when it is called: if a function fails or returns another number of values,
        if the combination uses anything but `x` and `y`, or if the identity is not a constant.

    Notes
    -----
    Schedules may group values (`rfactor`, parallel reductions) or change their order. Such a step
    is refused if a sample shows that it changes the result: the reducer is then not associative or
    not commutative. The samples of floats contain NaN, except for an argmax that is written by
    hand: if a value is NaN, its result depends on the schedule. That of `te.argmax` does not.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> xor = te.comm_reducer(lambda x, y: x ^ y, lambda dtype: te.const(0, dtype), name="xor")
    >>> te.compute((4,), lambda i: xor(A[i, k], axis=k), name="X")
    Tensor(X: int32[4])
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
    """Return the function that applies an existing reducer, as `comm_reducer` returns one."""

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
    """Return the smallest `position` at which `expr` is largest or smallest, and that value.

    Parameters
    ----------
    name : {"argmax", "argmin"}
        Whether to find the largest or the smallest value.
    expr : expression
        The value at each point.
    position : expression
        The number of a point, not negative and different for each point.
    axes : sequence of Axis
        The reduction axes.
    """
    (value,) = _values((expr,), name)
    y = Var("y", value.dtype)
    # A value that is NaN never replaces one, not even another NaN: the result so far is kept.
    unordered = compare("ne", y, y) if dtypes.is_float(value.dtype) else None
    reducer = position_reducer(name, Var("x", value.dtype), y, unordered)
    return positions(reducer, value, position, axes, None)


def position_reducer(name: str, x: Var, y: Var, unordered: Expr | None) -> Reducer:
    """Return the reducer of the largest or smallest value and the first position that has it.

    Parameters
    ----------
    name : {"argmax", "argmin"}
        Whether to keep the largest or the smallest value.
    x, y : Var
        The values of the two partial results.
    unordered : condition of `x` and `y`, optional
        Decides whether `x` is kept if no comparison does: one of the two is NaN.
    """
    i, j = Var("i", "int32"), Var("j", "int32")
    # Of equal values the smaller position is kept, so that the order of the points does not matter.
    # Position -1 is the identity's: any point replaces it.
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
    """Make the reducer: call the user's functions once, on variables of the values' dtypes."""
    where = f"te.comm_reducer {name}"
    if not dtypes_:
        raise ExpressionError(where, "there are no values to reduce", got="()")
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
                where, "the combination uses more than the two partial results",
                got=f"{result}, with {names}",
            )  # fmt: skip
    for expr in identities:
        if _strangers(expr, set()):
            raise ExpressionError(where, "the identity is not a constant", got=str(expr))
    return Reducer(name, lhs=lhs, rhs=rhs, results=results, identities=identities)


def _strangers(expr: Expr, known: set[Var]) -> list[str]:
    """Return the sorted names of an expression's tensors, and of its variables not in `known`."""
    tensors = {node.tensor.name for node in walk(expr) if isinstance(node, TensorLoad)}
    return sorted(tensors | {var.name for var in free_vars(expr) - known})


def _tuple(value: Any, dtypes_: tuple[str, ...], where: str) -> tuple[Expr, ...]:
    """Convert the result of a user's function to expressions of the values' dtypes."""
    items = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(items) != len(dtypes_):
        raise ExpressionError(
            where,
            "wrong number of values",
            got=len(items),
            expected=len(dtypes_),
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
    """Return the values to reduce, with indices as int32; refuse conditions."""
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
    """Return all results of a reduction, one `Reduce` for each."""
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
