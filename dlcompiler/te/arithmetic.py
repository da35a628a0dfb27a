"""Arithmetic, bit operations, conditions and choices on numbers of any dtype.

All operations take and return the same kinds of values, unless they say otherwise:

Parameters
----------
a, b : expression, axis, number or Tensor
    The operands, which are converted to their common dtype. An operation on whole tensors applies
    element by element and gives a tensor.

Returns
-------
Expr or Tensor
    Of the common dtype of the operands.
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
    """Choose one of two values, and evaluate only that one.

    So the condition may guard a read that would be outside its tensor.

    Parameters
    ----------
    condition : condition
        Decides which value is taken.
    then, otherwise : expression or number
        The value if the condition holds, and if it does not.

    Returns
    -------
    Expr
        Of the common dtype of both values.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), name="A")
    >>> padded = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), A[i - 1], 0.0))
    """
    cond = as_condition(condition, "te.if_then_else")
    a, b = _same_dtype(then, otherwise)
    return IfThenElse(cond, a, b)


def select(condition: Any, then: Any, otherwise: Any) -> Expr:
    """Choose one of two values, after evaluating both.

    Parameters
    ----------
    condition, then, otherwise
        As for `if_then_else`.

    Returns
    -------
    Expr
        Of the common dtype of both values.

    Examples
    --------
    >>> from dlcompiler import te
    >>> x = te.var("x", "float32")
    >>> te.select(x > 0, x, 0)
    Select(select(x > 0.0, x, 0.0))
    """
    cond = as_condition(condition, "te.select")
    a, b = _same_dtype(then, otherwise)
    return Select(cond, a, b)


def all(*conditions: Any) -> Expr:
    """Tell whether all conditions hold; later ones are evaluated only if those before hold.

    Python's ``and`` cannot be used on expressions: their values are not known yet.

    Examples
    --------
    >>> from dlcompiler import te
    >>> i = te.var("i")
    >>> te.all(i >= 1, i < 5)
    Logical(i >= 1 and i < 5)
    """
    return join("and", *conditions)


def any(*conditions: Any) -> Expr:
    """Tell whether any condition holds; later ones are evaluated only if those before fail.

    Python's ``or`` cannot be used on expressions: their values are not known yet.

    Examples
    --------
    >>> from dlcompiler import te
    >>> i = te.var("i")
    >>> te.any(i < 1, i >= 5)
    Logical(i < 1 or i >= 5)
    """
    return join("or", *conditions)


def likely(condition: Any) -> Expr:
    """Return a condition unchanged, marked as nearly always true for the code generator.

    Examples
    --------
    >>> from dlcompiler import te
    >>> i = te.var("i")
    >>> te.likely(i < 5)
    Call(likely(i < 5))
    """
    expr = as_condition(condition, "te.likely")
    return Call("likely", (expr,), expr.dtype)


def assume_bounds(index: Any) -> Expr:
    """Return an index unchanged, with the promise that it is inside its tensor.

    By default, an index that is read from a tensor is checked when the program runs, and the call
    raises if it is outside. With this promise the check is left out. If the promise is broken, the
    program reads or writes memory outside the tensor. `te.evaluate` and the simulator still check.

    Parameters
    ----------
    index : expression
        An integer expression, used as an index.

    Returns
    -------
    Expr
        Of dtype index; the promise is visible in the printed program.

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
    """Return the smaller of two values; NaN if one of them is NaN."""
    return operate("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two values; NaN if one of them is NaN.

    Examples
    --------
    >>> from dlcompiler import te
    >>> import numpy as np
    >>> A = te.placeholder((3,), name="A")
    >>> te.evaluate(te.maximum(A, 0.0), [np.array([-1, 2, np.nan], "float32")])
    array([ 0.,  2., nan], dtype=float32)
    """
    return operate("max", a, b)


def div(a: Any, b: Any) -> Any:
    """Divide as C does: integers are rounded toward zero, as by `truncdiv`; floats are not.

    Python's ``/`` on expressions converts integers to ``float32`` before it divides.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.div(A, 2), [np.array([-7, -6, 7], "int32")])
    array([-3, -3,  3], dtype=int32)
    """
    return apply("div", _div, a, b)


def _div(a: Any, b: Any) -> Expr:
    is_float = dtypes.is_float(promoted(a, b)[0].dtype)
    return binary("div" if is_float else "truncdiv", a, b)


def floordiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward minus infinity (Python's ``//``).

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.floordiv(A, 2), [np.array([-7, -6, 7], "int32")])
    array([-4, -3,  3], dtype=int32)
    """
    return operate("floordiv", a, b)


def floormod(a: Any, b: Any) -> Any:
    """Return the remainder of `floordiv`; it has the sign of the divisor (Python's ``%``).

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.floormod(A, 4), [np.array([-7, -6, 7], "int32")])
    array([1, 2, 3], dtype=int32)
    """
    return operate("floormod", a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward zero (C's ``/``).

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.truncdiv(A, 2), [np.array([-7, -6, 7], "int32")])
    array([-3, -3,  3], dtype=int32)
    """
    return operate("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> Any:
    """Return the remainder of `truncdiv`; it has the sign of the dividend (C's ``%``).

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.truncmod(A, 4), [np.array([-7, -6, 7], "int32")])
    array([-3, -2,  3], dtype=int32)
    """
    return operate("truncmod", a, b)


indexdiv = floordiv
indexmod = floormod


def ceildiv(a: Any, b: Any) -> Any:
    """Divide integers, rounding toward infinity; a division by zero gives 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.ceildiv(A, 2), [np.array([-7, -6, 7], "int32")])
    array([-3, -3,  4], dtype=int32)
    """
    return apply("ceildiv", _ceildiv, a, b)


def _ceildiv(a: Any, b: Any) -> Expr:
    x, y = promoted(a, b)
    if dtypes.is_index(x.dtype):
        return negate(binary("floordiv", negate(x), y))
    has_rest = compare("ne", binary("floormod", x, y), 0)  # -x would wrap
    return binary("add", binary("floordiv", x, y), cast(has_rest, x.dtype))


def power(a: Any, b: Any) -> Any:
    """Return ``a**b``.

    If `a` is an integer and `b` a Python int from 0 to 64, this is a product of integers, which
    wraps. Otherwise integers are converted to ``float32``.

    Examples
    --------
    >>> from dlcompiler import te
    >>> x, n = te.var("x", "float32"), te.var("n", "int32")
    >>> te.power(x, 0.5), te.power(n, 2)
    (Call(pow(x, 0.5)), Binary(n*n))
    """
    return operate("pow", a, b)


def abs(x: Any) -> Any:
    """Return the absolute value; the smallest signed integer wraps to itself."""
    return operate("abs", x)


def min_value(dtype: Any) -> Const:
    """Return the smallest value of `dtype` as a literal (minus infinity for floats).

    Examples
    --------
    >>> from dlcompiler import te
    >>> te.min_value("int8"), te.min_value("float32")
    (Const(-128), Const(-inf))
    """
    return make_const(dtypes.min_value(dtypes.as_dtype(dtype)), dtype)


def max_value(dtype: Any) -> Const:
    """Return the largest value of `dtype` as a literal (infinity for floats).

    Examples
    --------
    >>> from dlcompiler import te
    >>> te.max_value("int8"), te.max_value("float32")
    (Const(127), Const(inf))
    """
    return make_const(dtypes.max_value(dtypes.as_dtype(dtype)), dtype)


def infinity(dtype: Any = "float32") -> Const:
    """Return positive infinity as a literal of a float dtype."""
    return make_const(float("inf"), dtype)


# -- bits -----------------------------------------------------------------------------------------


def bitwise_and(a: Any, b: Any) -> Any:
    """Return ``a & b`` of two integers or two conditions."""
    return operate("bitand", a, b)


def bitwise_or(a: Any, b: Any) -> Any:
    """Return ``a | b`` of two integers or two conditions."""
    return operate("bitor", a, b)


def bitwise_xor(a: Any, b: Any) -> Any:
    """Return ``a ^ b`` of two integers or two conditions."""
    return operate("bitxor", a, b)


def bitwise_not(a: Any) -> Any:
    """Return ``~a`` of an integer or a condition.

    Examples
    --------
    >>> from dlcompiler import te
    >>> i = te.var("i", "uint8")
    >>> te.bitwise_not(i)
    Binary(~i)
    """
    return operate("invert", a)


def left_shift(a: Any, b: Any) -> Any:
    """Return ``a << b``; 0 if `b` is negative, or not below the number of bits.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int8", name="A")
    >>> te.evaluate(te.left_shift(A, 4), [np.array([1, -1, 16], "int8")])
    array([ 16, -16,   0], dtype=int8)
    """
    return operate("shl", a, b)


def right_shift(a: Any, b: Any) -> Any:
    """Return ``a >> b``, which keeps the sign of signed integers.

    If `b` is negative, or not below the number of bits, the result is 0, or -1 for a negative `a`.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int8", name="A")
    >>> te.evaluate(te.right_shift(A, 4), [np.array([1, -1, 16], "int8")])
    array([ 0, -1,  1], dtype=int8)
    """
    return operate("shr", a, b)


shift_left = left_shift
shift_right = right_shift
