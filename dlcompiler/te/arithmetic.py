"""Arithmetic, bits and choices: operations on numbers of any dtype.

Each takes expressions, axes and numbers, and whole tensors too, to which it applies element by
element.
"""

from __future__ import annotations

import numbers
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Call, Const, Expr, IfThenElse, Select, as_expr, binary, cast, compare
from dlcompiler.ir import const as make_const
from dlcompiler.ir import logical as join
from dlcompiler.ir.expr import as_index, negate, promoted
from dlcompiler.ir.expr import condition as as_condition
from dlcompiler.ir.operators import apply, operate

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


def likely(condition: Any) -> Expr:
    """Return a condition unchanged, with the hint that it is nearly always true."""
    expr = as_condition(condition, "te.likely")
    return Call("likely", (expr,), expr.dtype)


def assume_bounds(index: Any) -> Expr:
    """Return an index unchanged, with the promise that it is inside the tensor that it indexes.

    An index that is read from a tensor is checked when the program runs: a call raises where one is
    outside. This leaves the check out. The promise stands in the text of the loop nest; where it is
    broken, the program reads memory of others. `te.evaluate` and the simulator still check.

    Parameters
    ----------
    index
        An integer expression, used as an index.

    Examples
    --------
    >>> from dlcompiler import te
    >>> T, I = te.placeholder((10, 4), name="T"), te.placeholder((3,), "int32", name="I")
    >>> te.compute((3, 4), lambda i, j: T[te.assume_bounds(I[i]), j], name="rows").op.body
    TensorLoad(T[assume_bounds(index(I[i])), j])
    """
    return Call("assume_bounds", (as_index(index, "te.assume_bounds"),), "index")


def _same_dtype(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Convert two values to their common dtype, conditions included."""
    a = as_expr(a) if not isinstance(a, numbers.Number) else a
    b = as_expr(b, a.dtype if isinstance(a, Expr) else None)
    a = as_expr(a, b.dtype)
    dtype = a.dtype if a.dtype == b.dtype else dtypes.promote(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


# -- arithmetic -----------------------------------------------------------------------------------


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two values; NaN wins."""
    return operate("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two values; NaN wins."""
    return operate("max", a, b)


def div(a: Any, b: Any) -> Any:
    """Divide as C does: floats exactly, integers toward zero (as `truncdiv`).

    Python's ``/`` divides integers as ``float32``.
    """
    return apply("div", _div, a, b)


def _div(a: Any, b: Any) -> Expr:
    is_float = dtypes.is_float(promoted(a, b)[0].dtype)
    return binary("div" if is_float else "truncdiv", a, b)


def floordiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward minus infinity (Python's ``//``)."""
    return operate("floordiv", a, b)


def floormod(a: Any, b: Any) -> Any:
    """Return the remainder of `floordiv`; it has the sign of the divisor (Python's ``%``)."""
    return operate("floormod", a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward zero (C's ``/``)."""
    return operate("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> Any:
    """Return the remainder of `truncdiv`; it has the sign of the dividend (C's ``%``)."""
    return operate("truncmod", a, b)


indexdiv = floordiv
indexmod = floormod


def ceildiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward infinity; by zero gives 0."""
    return apply("ceildiv", _ceildiv, a, b)


def _ceildiv(a: Any, b: Any) -> Expr:
    x, y = promoted(a, b)
    if dtypes.is_index(x.dtype):
        return negate(binary("floordiv", negate(x), y))
    has_rest = compare("ne", binary("floormod", x, y), 0)  # -x would wrap
    return binary("add", binary("floordiv", x, y), cast(has_rest, x.dtype))


def power(a: Any, b: Any) -> Any:
    """Return ``a**b``.

    Of an integer and a Python int from 0 to 64 this is the product of integers, which wraps; else
    integers are converted to ``float32``.
    """
    return operate("pow", a, b)


def abs(x: Any) -> Any:
    """Return the absolute value; the smallest signed integer wraps to itself."""
    return operate("abs", x)


def min_value(dtype: Any) -> Const:
    """Return the smallest value of `dtype` (minus infinity for floats)."""
    return make_const(dtypes.min_value(dtypes.as_dtype(dtype)), dtype)


def max_value(dtype: Any) -> Const:
    """Return the largest value of `dtype` (infinity for floats)."""
    return make_const(dtypes.max_value(dtypes.as_dtype(dtype)), dtype)


def infinity(dtype: Any = "float32") -> Const:
    """Return positive infinity; `dtype` is a float's."""
    return make_const(float("inf"), dtype)


# -- bits -----------------------------------------------------------------------------------------


def bitwise_and(a: Any, b: Any) -> Any:
    """Return ``a & b`` of integers, or of conditions."""
    return operate("bitand", a, b)


def bitwise_or(a: Any, b: Any) -> Any:
    """Return ``a | b`` of integers, or of conditions."""
    return operate("bitor", a, b)


def bitwise_xor(a: Any, b: Any) -> Any:
    """Return ``a ^ b`` of integers, or of conditions."""
    return operate("bitxor", a, b)


def bitwise_not(a: Any) -> Any:
    """Return ``~a`` of an integer, or of a condition."""
    return operate("invert", a)


def left_shift(a: Any, b: Any) -> Any:
    """Return ``a << b``; a shift by the width or more, or by less than 0, gives 0."""
    return operate("shl", a, b)


def right_shift(a: Any, b: Any) -> Any:
    """Return ``a >> b``, which keeps the sign of signed integers.

    A shift by the width or more, or by less than 0, gives 0, and -1 of a negative number.
    """
    return operate("shr", a, b)


shift_left = left_shift
shift_right = right_shift
