"""The words of the language: what a user writes to make tensors and expressions.

The names follow classic TE (and so `sum`, `max`, `all` … shadow Python's here).
"""

from __future__ import annotations

import inspect
import itertools
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Call,
    Const,
    Expr,
    IfThenElse,
    Select,
    as_expr,
    binary,
    cast,
)
from dlcompiler.ir import const as make_const
from dlcompiler.ir import logical as join
from dlcompiler.ir.expr import condition as as_condition
from dlcompiler.te.definition import (
    checked_data_dtype,
    checked_extent,
    checked_name,
    checked_shape,
    define_tensors,
)
from dlcompiler.te.tensor import PlaceholderOp, Tensor

_placeholder_names = (f"placeholder{n or ''}" for n in itertools.count())
_axis_names = (f"rv{n or ''}" for n in itertools.count())

# -- tensors and axes ---------------------------------------------------------------------------


def placeholder(
    shape: Sequence[int] | int, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """Declare an input tensor.

    Parameters
    ----------
    shape : tuple of int
        Extent of each dimension; 0 is allowed.
    dtype : str or numpy.dtype
        Element type.
    name : str, optional
        Unique names are made up for unnamed inputs.
    """
    name = checked_name(name, "te.placeholder") if name is not None else next(_placeholder_names)
    where = f"te.placeholder {name}"
    element = checked_data_dtype(dtype, where)
    return PlaceholderOp(name, checked_shape(shape, where), element).output(0)


def compute(
    shape: Sequence[int] | int,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: object = None,
) -> Any:
    """Define a tensor, or several computed together, element by element.

    Parameters
    ----------
    shape : tuple of int
        Extent of each dimension of the result; a 0-d tensor has the shape ``()``.
    fcompute : callable
        Gets one axis for each dimension and returns the element's expression; a reduction
        (`te.sum` …) stands at its top. Its parameter names become the axes' names. A tuple of
        expressions defines several tensors; of reductions, they are the results of one.
    name : str
        Name of the tensor and of its stage.
    tag : str
        Free text kept with the operation.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple if `fcompute` returns one.

    Raises
    ------
    ExpressionError
        If the function takes another number of arguments than there are dimensions, or a
        reduction stands inside another expression.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> te.compute((8, 4), lambda i, j: A[j, i], name="T")
    Tensor(T: float32[8, 4])
    """
    del attrs  # accepted for classic code; nothing reads it
    where = f"te.compute {name}"
    checked_name(name, where)
    extents = checked_shape(shape, where)
    names = _parameter_names(fcompute, len(extents), where)
    axes = tuple(Axis(n, extent, "data") for n, extent in zip(names, extents, strict=True))
    result = fcompute(*axes)
    if not isinstance(result, list | tuple):
        return define_tensors(name, axes, (result,), where, tag)[0]
    return define_tensors(name, axes, result, where, tag)


def _parameter_names(fcompute: Callable[..., Any], ndim: int, where: str) -> list[str]:
    """Return a name for each axis, from the parameters of the user's function."""
    if not callable(fcompute):
        raise ExpressionError(where, "not a function of the axes", got=repr(fcompute))
    parameters = inspect.signature(fcompute).parameters.values()
    positional = [
        p.name
        for p in parameters
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    variadic = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    if variadic and len(positional) <= ndim:
        return positional + [f"{variadic[0]}{n}" for n in range(ndim - len(positional))]
    if len(positional) != ndim:
        raise ExpressionError(
            where,
            "the function takes another number of axes than the shape has dimensions",
            got=f"{len(positional)} parameters ({', '.join(positional) or 'none'})",
            expected=f"{ndim}",
        )
    return positional


def reduce_axis(dom: Sequence[int], name: str | None = None) -> Axis:
    """Declare an axis to reduce over.

    Parameters
    ----------
    dom : (int, int)
        First value and the value after the last: ``(0, n)``.
    name : str, optional
        Unique names are made up for unnamed axes.
    """
    name = checked_name(name, "te.reduce_axis") if name is not None else next(_axis_names)
    where = f"te.reduce_axis {name}"
    first, end = _pair(dom, where)
    if end < first:
        raise ExpressionError(where, "the domain is empty", got=repr(dom), expected="(0, n)")
    return Axis(name, end - first, "reduce", start=first)


def _pair(dom: Any, where: str) -> tuple[int, int]:
    if not isinstance(dom, Sequence) or len(dom) != 2:
        raise ExpressionError(where, "the domain is not a pair", got=repr(dom), expected="(0, n)")
    return checked_extent(dom[0], where), checked_extent(dom[1], where)


def var(name: str = "n", dtype: str = "int32") -> Expr:
    """Declare a symbolic extent: not supported yet, shapes are numbers.

    Raises
    ------
    ExpressionError
        Always.
    """
    raise ExpressionError(
        f"te.var {name}",
        "symbolic shapes come in a later version",
        got=f"a variable of {dtype}",
        expected="numbers as extents",
        hint="write a Python function that builds the expression for given extents",
    )


def const(value: complex, dtype: Any = "int32") -> Const:
    """Make a literal of `dtype`."""
    return make_const(value, dtype)


# -- choices and conditions -----------------------------------------------------------------------


def if_then_else(condition: Any, then: Any, otherwise: Any) -> Expr:
    """Choose lazily: the side that is not chosen is not evaluated, so a load in it may be guarded.

    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), name="A")
    >>> padded = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), A[i - 1], 0.0))
    """
    cond = as_condition(condition, "te.if_then_else")
    a, b = _same_dtype(then, otherwise)
    return IfThenElse(cond, a, b)


def select(condition: Any, then: Any, otherwise: Any) -> Expr:
    """Choose eagerly: both sides are evaluated."""
    cond = as_condition(condition, "te.select")
    a, b = _same_dtype(then, otherwise)
    return Select(cond, a, b)


def all(*conditions: Any) -> Expr:
    """Return the conjunction of conditions (Python's ``and`` would decide too early)."""
    return join("and", *conditions)


def any(*conditions: Any) -> Expr:
    """Return the disjunction of conditions (Python's ``or`` would decide too early)."""
    return join("or", *conditions)


def _same_dtype(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Convert two values to their common dtype, conditions included."""
    a = as_expr(a) if not isinstance(a, numbers.Number) else a
    b = as_expr(b, a.dtype if isinstance(a, Expr) else None)
    a = as_expr(a, b.dtype)
    dtype = a.dtype if a.dtype == b.dtype else dtypes.promote(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


# -- arithmetic -----------------------------------------------------------------------------------


def minimum(a: Any, b: Any) -> Expr:
    """Return the smaller of two values; NaN wins."""
    return binary("min", a, b)


def maximum(a: Any, b: Any) -> Expr:
    """Return the larger of two values; NaN wins."""
    return binary("max", a, b)


def div(a: Any, b: Any) -> Expr:
    """Divide; integers are divided as ``float32``."""
    return binary("div", a, b)


def floordiv(a: Any, b: Any) -> Expr:
    """Divide integers, rounding toward minus infinity (Python's ``//``)."""
    return binary("floordiv", a, b)


def floormod(a: Any, b: Any) -> Expr:
    """Return the remainder of `floordiv`; it has the sign of the divisor (Python's ``%``)."""
    return binary("floormod", a, b)


def truncdiv(a: Any, b: Any) -> Expr:
    """Divide integers, rounding toward zero (C's ``/``)."""
    return binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> Expr:
    """Return the remainder of `truncdiv`; it has the sign of the dividend (C's ``%``)."""
    return binary("truncmod", a, b)


indexdiv = floordiv
indexmod = floormod


def min_value(dtype: Any) -> Const:
    """Return the smallest value of `dtype` (minus infinity for floats)."""
    return make_const(dtypes.min_value(dtypes.as_dtype(dtype)), dtype)


def max_value(dtype: Any) -> Const:
    """Return the largest value of `dtype` (infinity for floats)."""
    return make_const(dtypes.max_value(dtypes.as_dtype(dtype)), dtype)


def _float_function(name: str, value: Any) -> Expr:
    """Build a call of a function on floats; integers are converted to ``float32``."""
    expr = as_expr(value)
    if dtypes.is_bool(expr.dtype):
        raise ExpressionError(f"te.{name}", "takes a number", got=f"{expr} (bool)")
    if not dtypes.is_float(expr.dtype):
        expr = cast(expr, "float32")
    return Call(name, (expr,), expr.dtype)


def exp(x: Any) -> Expr:
    """Return e**x."""
    return _float_function("exp", x)


def log(x: Any) -> Expr:
    """Return the natural logarithm."""
    return _float_function("log", x)


def sqrt(x: Any) -> Expr:
    """Return the square root."""
    return _float_function("sqrt", x)


def rsqrt(x: Any) -> Expr:
    """Return ``1 / sqrt(x)``."""
    root = _float_function("sqrt", x)
    return binary("div", make_const(1, root.dtype), root)


def sin(x: Any) -> Expr:
    """Return the sine of `x` [rad]."""
    return _float_function("sin", x)


def cos(x: Any) -> Expr:
    """Return the cosine of `x` [rad]."""
    return _float_function("cos", x)


def tan(x: Any) -> Expr:
    """Return the tangent of `x` [rad]."""
    return _float_function("tan", x)


def tanh(x: Any) -> Expr:
    """Return the hyperbolic tangent."""
    return _float_function("tanh", x)


def sigmoid(x: Any) -> Expr:
    """Return ``1 / (1 + exp(-x))``."""
    expr = as_expr(x)
    power_of_e = exp(-expr)
    one = make_const(1, power_of_e.dtype)
    return binary("div", one, binary("add", one, power_of_e))


def erf(x: Any) -> Expr:
    """Return the error function."""
    return _float_function("erf", x)


def floor(x: Any) -> Expr:
    """Round toward minus infinity, as a float."""
    return _float_function("floor", x)


def ceil(x: Any) -> Expr:
    """Round toward infinity, as a float."""
    return _float_function("ceil", x)


def trunc(x: Any) -> Expr:
    """Round toward zero, as a float."""
    return _float_function("trunc", x)


def round(x: Any) -> Expr:
    """Round to the nearest integer, halves to even, as a float."""
    return _float_function("round", x)


def abs(x: Any) -> Expr:
    """Return the absolute value; the smallest signed integer wraps to itself."""
    expr = as_expr(x)
    if dtypes.is_float(expr.dtype):
        return Call("abs", (expr,), expr.dtype)
    if dtypes.is_unsigned(expr.dtype):
        return expr
    return binary("max", expr, -expr)


def power(x: Any, y: Any) -> Expr:
    """Return ``x**y`` of floats."""
    a, b = _same_dtype(x, y)
    if not dtypes.is_float(a.dtype):
        a, b = cast(a, "float32"), cast(b, "float32")
    return Call("pow", (a, b), a.dtype)
