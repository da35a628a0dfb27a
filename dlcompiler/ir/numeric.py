"""What each operation computes, on NumPy scalars and arrays: the arithmetic of the loop IR.

The interpreter and ``te.evaluate`` take their operations from here, so that the semantics in the
docstring of `dlcompiler.ir` are written down once as code. A value of a dtype is a NumPy scalar or
array of `storage(dtype)`, but for one case: an index scalar is a Python int, which never overflows.

The functions say which of the two they take by `vector`: scalar arithmetic on NumPy scalars avoids
ufuncs, which are ten times slower there. Callers run them inside ``with quiet():``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError, InternalError
from dlcompiler.ir.expr import Binary, BinaryOp, CompareOp, Const, Expr, Var, fold_index

Value: TypeAlias = Any  # a NumPy scalar, an array, or a Python int for an index
Function: TypeAlias = Callable[..., Value]
Linear: TypeAlias = tuple[dict[Var, int], int]


def quiet() -> np.errstate:
    """Silence NumPy's warnings: wrapping, division by zero and NaN are defined here."""
    return np.errstate(all="ignore")


def storage(dtype: str) -> np.dtype[np.generic]:
    """Return the NumPy dtype that holds one lane; bfloat16 is held as float32."""
    return np.dtype("float32") if dtypes.element(dtype) == "bfloat16" else dtypes.to_numpy(dtype)


def literal(value: bool | int | float, dtype: str) -> Value:
    """Return a literal as a value of `dtype`, rounded to it."""
    if dtypes.is_index(dtype):
        return int(value)
    result = storage(dtype).type(value)
    return round_bfloat16(result) if dtypes.element(dtype) == "bfloat16" else result


def round_bfloat16(value: Value) -> Value:
    """Round float32 values to the nearest bfloat16 (ties to even), held as float32."""
    wide = np.asarray(value, np.float32)
    bits = wide.view(np.uint32)
    nearest = (bits + (((bits >> 16) & 1) + 0x7FFF)) & 0xFFFF0000
    return np.where(np.isnan(wide), wide, nearest.astype(np.uint32).view(np.float32))[()]


# -- binary operations ----------------------------------------------------------------------------

_PLAIN: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
}

REDUCTIONS: dict[str, np.ufunc] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def binary_function(op: BinaryOp, dtype: str, *, vector: bool = False) -> Function:
    """Return the function of two values of `dtype` that `op` stands for."""
    function = _binary(op, dtype, vector)
    if dtypes.element(dtype) != "bfloat16":
        return function
    return lambda a, b: round_bfloat16(function(a, b))


def _binary(op: BinaryOp, dtype: str, vector: bool) -> Function:
    if op in ("min", "max"):
        if vector:
            return REDUCTIONS[op]
        return _scalar_min if op == "min" else _scalar_max
    if dtypes.is_index(dtype) and not vector and op not in ("add", "sub", "mul"):
        return partial(fold_index, op)
    if op == "truncdiv":
        return _truncdiv
    if op == "truncmod":
        return np.fmod
    return _PLAIN[op]


def _scalar_min(a: Value, b: Value) -> Value:
    return a if a < b or a != a else b


def _scalar_max(a: Value, b: Value) -> Value:
    return a if a > b or a != a else b


def _truncdiv(a: Value, b: Value) -> Value:
    """Divide toward zero: one above the floor where that was inexact and negative."""
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


_COMPARISONS: dict[str, Function] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def compare_function(op: CompareOp) -> Function:
    """Return the comparison of two values; with a NaN all are false but ``ne``."""
    return _COMPARISONS[op]


# -- conversions ----------------------------------------------------------------------------------


def cast_function(source: str, target: str, *, vector: bool = False) -> Function:
    """Return the conversion of a value of `source` to `target`."""
    convert = _cast_array(source, target) if vector else _cast_scalar(source, target)
    if dtypes.element(target) != "bfloat16":
        return convert
    return lambda value: round_bfloat16(convert(value))


def _cast_scalar(source: str, target: str) -> Function:
    kind = storage(target).type
    if dtypes.is_bool(target):
        return lambda value: kind(value != 0)
    if dtypes.is_float(source) and not dtypes.is_float(target):
        return _saturating_scalar(target)
    if dtypes.is_index(target):
        return int
    if dtypes.is_index(source):  # NumPy converts its own integers: it wraps them, and rounds once
        return lambda value: kind(np.int64(value))
    return kind


def _cast_array(source: str, target: str) -> Function:
    kind = storage(target)
    if dtypes.is_bool(target):
        return lambda value: np.asarray(value) != 0
    if dtypes.is_float(source) and not dtypes.is_float(target):
        return partial(_saturate, target=target)
    return lambda value: np.asarray(value).astype(kind)


def _saturating_scalar(target: str) -> Function:
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    kind: Function = int if dtypes.is_index(target) else storage(target).type

    def convert(value: Value) -> Value:
        if value != value:
            return kind(0)
        number = float(value)
        return kind(low if number <= low else high if number >= high else int(number))

    return convert


def _saturate(value: Value, *, target: str) -> Value:
    """Truncate floats to integers; out of range goes to the nearest end, NaN to 0."""
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    wide = np.asarray(value, np.float64)  # exact; `high` itself may have no float of its own
    inside = (wide > low) & (wide < high)
    result = np.where(inside, wide, 0).astype(storage(target))
    kind = result.dtype.type
    return np.where(wide >= high, kind(high), np.where(wide <= low, kind(low), result))


# -- functions ------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Function] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "pow": np.power,
    "round": np.rint,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
_erf_elements = np.frompyfunc(math.erf, 1, 1)


def call_function(name: str, dtype: str) -> Function:
    """Return the function of floats that a call by `name` computes, on scalars and arrays."""
    if name == "erf":
        function: Function = partial(_erf, kind=storage(dtype))
    elif name in _FUNCTIONS:
        function = _FUNCTIONS[name]
    else:
        raise InternalError(f"call {name}", "the language has no such function")
    if dtypes.element(dtype) != "bfloat16":
        return function
    return lambda *args: round_bfloat16(function(*args))


def _erf(value: Value, *, kind: np.dtype[np.generic]) -> Value:
    return np.asarray(_erf_elements(value), np.float64).astype(kind)[()]


# -- index expressions and arguments --------------------------------------------------------------


def linear_form(expr: Expr) -> Linear | None:
    """Return (factor of each variable, constant) of an index expression; None if it is not a sum.

    The oracles use this and not `arith`: they must not trust the simplifier that they check.
    """
    return _linear_form(expr, {})


def _linear_form(expr: Expr, memo: dict[int, Linear | None]) -> Linear | None:
    if id(expr) not in memo:
        memo[id(expr)] = _linear_node(expr, memo)
    return memo[id(expr)]


def _linear_node(expr: Expr, memo: dict[int, Linear | None]) -> Linear | None:
    match expr:
        case Const(value, "index"):
            return {}, int(value)
        case Var(_, "index"):
            return {expr: 1}, 0
        case Binary("add" | "sub" | "mul" as op, a, b, dtype="index"):
            left, right = _linear_form(a, memo), _linear_form(b, memo)
            if left is None or right is None:
                return None
            if op != "mul":
                return _linear_sum(left, right, 1 if op == "add" else -1)
            if not right[0]:
                left, right = right, left
            return _linear_sum(({}, 0), right, left[1]) if not left[0] else None
    return None


def _linear_sum(a: Linear, b: Linear, factor: int) -> Linear:
    terms = dict(a[0])
    for var, coefficient in b[0].items():
        terms[var] = terms.get(var, 0) + factor * coefficient
    return {var: c for var, c in terms.items() if c}, a[1] + factor * b[1]


def check_array(array: object, name: str, shape: tuple[int, ...], dtype: str, where: str) -> None:
    """Refuse what is not a NumPy array of this shape and dtype.

    Raises
    ------
    CallError
    """
    if not isinstance(array, np.ndarray):
        raise CallError(
            where,
            f"{name} is not a NumPy array",
            got=type(array).__name__,
            hint="convert it with numpy.asarray",
        )
    if dtypes.element(dtype) == "bfloat16":
        raise CallError(
            where,
            f"{name} is bfloat16, which NumPy arrays cannot hold",
            hint="use float32 arrays and cast inside the expression",
        )
    if array.shape != shape:
        raise CallError(where, f"{name} has the wrong shape", got=array.shape, expected=shape)
    if array.dtype != dtypes.to_numpy(dtype):
        raise CallError(
            where, f"{name} has the wrong dtype", got=array.dtype.str, expected=dtype,
            hint=f"convert it with {name}.astype({dtype!r})",
        )  # fmt: skip
