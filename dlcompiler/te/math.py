"""Mathematical functions: `exp`, `sin`, `floor`, `popcount` …; see `dlcompiler.ir.functions`.

All functions take and return the same kinds of values:

Parameters
----------
x, y : expression, axis, number or Tensor
    The arguments. A function of a whole tensor applies element by element and gives a tensor.
    Functions of floats convert integers and conditions to ``float32``, except for `fmod` and the
    functions that round, which keep integers.

Returns
-------
Expr or Tensor
    Of the dtype of the converted arguments, unless the function says otherwise. Outside the domain
    of a function, such as ``log(-1)``, the result is NaN.

Examples
--------
>>> from dlcompiler import te
>>> x, n = te.var("x", "float32"), te.var("n", "int32")
>>> te.exp(x), te.sqrt(n)
(Call(exp(x)), Call(sqrt(float32(n))))
>>> te.tanh(te.placeholder((4, 8), name="A")).shape
(4, 8)
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Call, Expr, as_expr, binary, cast, const
from dlcompiler.ir.expr import promoted
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.operators import apply


def _call(name: str, *arguments: Any) -> Any:
    return apply(name, partial(_call_of_numbers, name), *arguments)


def _call_of_numbers(name: str, *arguments: Any) -> Expr:
    signature = FUNCTIONS[name]
    last = signature.last
    first = arguments if last is None else arguments[:-1]
    exprs = promoted(*first) if len(first) == 2 else tuple(map(as_expr, first))
    exprs = tuple(_in_domain(name, expr) for expr in exprs)
    if last is not None:
        exprs = (*exprs, _as_integer(name, arguments[-1], last))
    return Call(name, exprs, signature.result_dtype(exprs[0].dtype))


def _in_domain(name: str, expr: Expr) -> Expr:
    """Convert an argument to the dtype that the function takes, or refuse it; True is 1.0."""
    if FUNCTIONS[name].domain == "float":
        return expr if dtypes.is_float(expr.dtype) else cast(expr, "float32")
    if FUNCTIONS[name].domain == "float32":
        return _as_float32(name, expr)
    if FUNCTIONS[name].domain == "bits":
        return _as_bits(name, expr)
    return _as_integer(name, expr, None)


def _as_float32(name: str, expr: Expr) -> Expr:
    if dtypes.element(expr.dtype) == "float64":
        raise ExpressionError(
            f"te.{name}", "takes a float32", got=f"{expr} ({expr.dtype})",
            hint="convert it: x.astype('float32')",
        )  # fmt: skip
    return cast(expr, dtypes.with_lanes("float32", dtypes.lanes(expr.dtype)))


def _as_bits(name: str, expr: Expr) -> Expr:
    """Convert an integer to the signed one of its width, of which there is a float."""
    expr = _as_integer(name, expr, None)
    if dtypes.bits(expr.dtype) < 16:
        raise ExpressionError(
            f"te.{name}", "no float has 8 bits", got=f"{expr} ({expr.dtype})",
            expected="an integer of 16, 32 or 64 bits",
        )  # fmt: skip
    signed = f"int{dtypes.bits(expr.dtype)}"
    return cast(expr, dtypes.with_lanes(signed, dtypes.lanes(expr.dtype)))


def _as_integer(name: str, value: Any, dtype: str | None) -> Expr:
    expr = as_expr(value)
    if dtypes.is_float(expr.dtype) or dtypes.is_bool(expr.dtype):
        raise ExpressionError(f"te.{name}", "takes an integer", got=f"{expr} ({expr.dtype})")
    if dtype is None:
        dtype = "int32" if dtypes.is_index(expr.dtype) else expr.dtype
    return cast(expr, dtype)


def _of_floats_only(name: str, x: Any, otherwise: Any = None) -> Any:
    """Apply a function of floats; for an integer, return the integer or `otherwise`."""

    def element(value: Any) -> Expr:
        expr = as_expr(value)
        if dtypes.is_float(expr.dtype) or dtypes.is_bool(expr.dtype):
            return _call_of_numbers(name, expr)
        return expr if otherwise is None else otherwise

    return apply(name, element, x)


# -- powers, logarithms, angles -------------------------------------------------------------------


def acos(x: Any) -> Any:
    """Return the inverse cosine [rad], from 0 to pi."""
    return _call("acos", x)


def acosh(x: Any) -> Any:
    """Return the inverse hyperbolic cosine, not negative."""
    return _call("acosh", x)


def asin(x: Any) -> Any:
    """Return the inverse sine [rad], from -pi/2 to pi/2."""
    return _call("asin", x)


def asinh(x: Any) -> Any:
    """Return the inverse hyperbolic sine."""
    return _call("asinh", x)


def atan(x: Any) -> Any:
    """Return the inverse tangent [rad], from -pi/2 to pi/2."""
    return _call("atan", x)


def atanh(x: Any) -> Any:
    """Return the inverse hyperbolic tangent."""
    return _call("atanh", x)


def cos(x: Any) -> Any:
    """Return the cosine of `x` [rad]."""
    return _call("cos", x)


def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine."""
    return _call("cosh", x)


def erf(x: Any) -> Any:
    """Return the error function."""
    return _call("erf", x)


def exp(x: Any) -> Any:
    """Return e**x."""
    return _call("exp", x)


def exp10(x: Any) -> Any:
    """Return 10**x."""
    return _call("exp10", x)


def exp2(x: Any) -> Any:
    """Return 2**x."""
    return _call("exp2", x)


def log(x: Any) -> Any:
    """Return the natural logarithm."""
    return _call("log", x)


def log10(x: Any) -> Any:
    """Return the logarithm to the base 10."""
    return _call("log10", x)


def log1p(x: Any) -> Any:
    """Return ``log(1 + x)``, accurate also for `x` near 0."""
    return _call("log1p", x)


def log2(x: Any) -> Any:
    """Return the logarithm to the base 2."""
    return _call("log2", x)


def rsqrt(x: Any) -> Any:
    """Return ``1 / sqrt(x)``."""
    return _call("rsqrt", x)


def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return _call("sigmoid", x)


def sin(x: Any) -> Any:
    """Return the sine of `x` [rad]."""
    return _call("sin", x)


def sinh(x: Any) -> Any:
    """Return the hyperbolic sine."""
    return _call("sinh", x)


def sqrt(x: Any) -> Any:
    """Return the square root."""
    return _call("sqrt", x)


def tan(x: Any) -> Any:
    """Return the tangent of `x` [rad]."""
    return _call("tan", x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return _call("tanh", x)


def atan2(y: Any, x: Any) -> Any:
    """Return the angle [rad] from -pi to pi of the point (x, y).

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A, B = (te.placeholder((2,), "float32", name=name) for name in "AB")
    >>> te.evaluate(te.atan2(A, B), list(np.array([[0.0, 1.0], [-1.0, 0.0]], "float32")))
    array([3.1415927, 1.5707964], dtype=float32)
    """
    return _call("atan2", y, x)


def hypot(x: Any, y: Any) -> Any:
    """Return ``sqrt(x**2 + y**2)``, without overflow in the squares."""
    return _call("hypot", x, y)


# -- rounding and parts of floats -----------------------------------------------------------------


def ceil(x: Any) -> Any:
    """Round a float toward infinity; the result is a float. An integer is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.ceil(A), [np.array([-1.5, -0.5, 0.5, 1.5], "float32")])
    array([-1., -0.,  1.,  2.], dtype=float32)
    """
    return _of_floats_only("ceil", x)


def floor(x: Any) -> Any:
    """Round a float toward minus infinity, to a float. An integer is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.floor(A), [np.array([-1.5, -0.5, 0.5, 1.5], "float32")])
    array([-2., -1.,  0.,  1.], dtype=float32)
    """
    return _of_floats_only("floor", x)


def trunc(x: Any) -> Any:
    """Round a float toward zero, to a float. An integer is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.trunc(A), [np.array([-1.5, -0.5, 0.5, 1.5], "float32")])
    array([-1., -0.,  0.,  1.], dtype=float32)
    """
    return _of_floats_only("trunc", x)


def round(x: Any) -> Any:
    """Round a float to the nearest whole number, to a float; halves go to the even number.

    An integer is returned unchanged. `nearbyint` is the same function.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.round(A), [np.array([-1.5, -0.5, 0.5, 2.5], "float32")])
    array([-2., -0.,  0.,  2.], dtype=float32)
    """
    return _of_floats_only("round", x)


nearbyint = round


def copysign(x: Any, y: Any) -> Any:
    """Return `x` with the sign of `y`.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A, B = (te.placeholder((2,), "float32", name=name) for name in "AB")
    >>> te.evaluate(te.copysign(A, B), list(np.array([[1.5, -2.0], [-0.0, 3.0]], "float32")))
    array([-1.5,  2. ], dtype=float32)
    """
    return _call("copysign", x, y)


def fmod(x: Any, y: Any) -> Any:
    """Return the exact remainder of ``x / y`` rounded toward zero; it has the sign of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.fmod(A, 3), [np.array([-7.5, -2.0, 2.0, 7.5], "float32")])
    array([-1.5, -2. ,  2. ,  1.5], dtype=float32)
    """
    return apply("fmod", _fmod, x, y)


def _fmod(x: Any, y: Any) -> Expr:
    a, b = promoted(x, y)
    if dtypes.is_float(a.dtype) or dtypes.is_bool(a.dtype):
        return _call_of_numbers("fmod", a, b)
    return binary("truncmod", a, b)


def ldexp(x: Any, n: Any) -> Any:
    """Return ``x * 2**n`` for an integer `n`.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "float32", name="A")
    >>> te.evaluate(te.ldexp(A, 3), [np.array([-1.5, 0.25, 1.0], "float32")])
    array([-12.,   2.,   8.], dtype=float32)
    """
    return _call("ldexp", x, n)


def tf32(x: Any) -> Any:
    """Round a float32 to TF32, as tensor cores multiply it; the result is a float32.

    Of the 23 bits of mantissa, 10 remain; halves are rounded away from 0. Other numbers are first
    converted to float32; float64 is refused.

    Notes
    -----
    **Source:** PTX ISA 8.8, "cvt.rna.tf32.f32".

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "float32", name="A")
    >>> te.evaluate(te.tf32(A), [np.array([1, 1 + 2**-11, 1 + 2**-12], "float32")])
    array([1.       , 1.0009766, 1.       ], dtype=float32)
    """
    return _call("tf32", x)


def sort_key(x: Any) -> Any:
    """Return an int32 that compares as a float32 does, for sorting.

    0 and -0 have the same key. All NaN have the largest key, so that they come last. Other numbers
    are first converted to float32; float64 is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> te.evaluate(te.sort_key(A), [np.array([-1e-45, -0.0, 1e-45, np.nan], "float32")])
    array([        -1,          0,          1, 2147483647], dtype=int32)
    """
    return _call("sort_key", x)


def to_bits(x: Any) -> Any:
    """Return the bits of a float as a signed integer of the same width.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((2,), "float32", name="A")
    >>> te.evaluate(te.to_bits(A), [np.array([1, -0.0], "float32")])
    array([ 1065353216, -2147483648], dtype=int32)
    """
    return _call("to_bits", x)


def from_bits(x: Any) -> Any:
    """Return the float whose bits an integer of 16, 32 or 64 bits is; see `to_bits`.

    Of 16 bits it is a float16.
    """
    return _call("from_bits", x)


def nextafter(x: Any, y: Any) -> Any:
    """Return the next representable number after `x` in the direction of `y`."""
    return _call("nextafter", x, y)


def isnan(x: Any) -> Any:
    """Tell whether a float is NaN; false for integers.

    Examples
    --------
    >>> from dlcompiler import te
    >>> import numpy as np
    >>> A = te.placeholder((3,), name="A")
    >>> te.evaluate(te.isnan(A), [np.array([1, np.nan, np.inf], "float32")])
    array([False,  True, False])
    """
    return _of_floats_only("isnan", x, const(False, "bool"))


def isinf(x: Any) -> Any:
    """Tell whether a float is infinite; false for integers."""
    return _of_floats_only("isinf", x, const(False, "bool"))


def isfinite(x: Any) -> Any:
    """Tell whether a float is neither infinite nor NaN; true for integers."""
    return _of_floats_only("isfinite", x, const(True, "bool"))


# -- bits of integers -----------------------------------------------------------------------------


def popcount(x: Any) -> Any:
    """Return the number of bits of an integer that are 1, in its dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.popcount(A), [np.array([0, 7, -1], "int32")])
    array([ 0,  3, 32], dtype=int32)
    """
    return _call("popcount", x)


def clz(x: Any) -> Any:
    """Return the number of leading zero bits of an integer, as int32; all bits for 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((3,), "int32", name="A")
    >>> te.evaluate(te.clz(A), [np.array([0, 1, -1], "int32")])
    array([32, 31,  0], dtype=int32)
    """
    return _call("clz", x)
