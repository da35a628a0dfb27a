"""Evaluate the operations of the loop IR on NumPy scalars and arrays.

The interpreter and ``te.evaluate`` use these functions, so that the semantics in the docstring of
`dlcompiler.ir` are written once as code. A value of a dtype is a NumPy scalar or array of
`storage(dtype)`, with one exception: an index scalar is a Python int, which never overflows.

The functions of a `Call` are in `dlcompiler.ir.function_values`.

The argument `vector` chooses between scalars and arrays: scalar arithmetic avoids ufuncs, which are
ten times slower on NumPy scalars. Callers run the functions inside ``with quiet():``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError
from dlcompiler.ir.expr import Binary, Const, Expr, Var
from dlcompiler.ir.operations import BINARY, COMPARISONS, BinaryOp, CompareOp, fold_index

Value: TypeAlias = Any  # a NumPy scalar, an array, or a Python int for an index
Function: TypeAlias = Callable[..., Value]
Linear: TypeAlias = tuple[dict[Var, int], int]


def quiet() -> np.errstate:
    """Silence NumPy's warnings, because the IR defines overflow, division by zero and NaN."""
    return np.errstate(all="ignore")


storage = dtypes.to_numpy
"""The NumPy dtype that holds one lane."""


def literal(value: bool | int | float, dtype: str) -> Value:
    """Return a literal as a value rounded to `dtype`."""
    if dtypes.is_index(dtype):
        return int(value)
    if dtypes.element(dtype) == "bfloat16":
        return to_bfloat16(np.float64(value))
    return storage(dtype).type(value)


# -- bfloat16 -------------------------------------------------------------------------------------


def to_bfloat16(value: Value) -> Value:
    """Round numbers of any dtype to the nearest bfloat16, ties to even."""
    array = np.asarray(value)
    if array.dtype in (np.int64, np.uint64):
        array = _sticky(array).astype(np.float64)
    if array.dtype in (np.int32, np.uint32, np.float64):
        array = _rounded_to_odd(array.astype(np.float64))
    return array.astype(_BFLOAT16)[()]


_BFLOAT16 = storage("bfloat16")


def _sticky(value: Value) -> Value:
    """Reduce large integers to 53 bits; the last one is set if a lower bit was."""
    kind = value.dtype.type
    kept = (value & ~kind(0x7FF)) | np.where(value & kind(0x7FF), kind(0x800), kind(0))
    is_small = (value < kind(2**53)) & (value > (kind(0) if kind is np.uint64 else -kind(2**53)))
    return np.where(is_small, value, kept)


def _rounded_to_odd(value: Value) -> Value:
    """Round float64 to a float32 whose last bit records that it is inexact.

    Rounding the result once more gives the nearest bfloat16, as if rounded once.

    **Source:** S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
    algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008, theorem 3.
    """
    nearest = np.asarray(value.astype(np.float32))
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    toward_zero = bits - (np.abs(back) > np.abs(value)).astype(np.uint32)
    is_inexact = (back != value) & ~np.isnan(value)
    return np.where(is_inexact, toward_zero | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def _in_float32(function: Function) -> Function:
    """Turn a float32 function into one on bfloat16, which rounds its result."""

    def rounded(*args: Value) -> Value:
        wide = (np.asarray(arg).astype(np.float32)[()] for arg in args)
        return to_bfloat16(function(*wide))

    return rounded


# -- binary operations ----------------------------------------------------------------------------

REDUCTIONS: dict[str, np.ufunc] = {op: BINARY[op].arrays for op in ("add", "mul", "min", "max")}
"""NumPy's functions that reduce an array, by the `op` of a `Reducer`."""


def binary_function(op: BinaryOp, dtype: str, *, vector: bool = False) -> Function:
    """Return the function that computes `op` on two values of `dtype`."""
    function = _binary(op, dtype, vector)
    return _in_float32(function) if dtypes.element(dtype) == "bfloat16" else function


def _binary(op: BinaryOp, dtype: str, vector: bool) -> Function:
    row = BINARY[op]
    if dtypes.is_index(dtype) and not vector and op not in ("add", "sub", "mul"):
        return partial(fold_index, op)
    # Python's operators also work on arrays; the functions without a symbol may not.
    return row.arrays if vector and not row.symbol else row.numbers


def compare_function(op: CompareOp) -> Function:
    """Return the function that compares two values; if one is NaN, only ``ne`` is true."""
    return COMPARISONS[op].numbers


# -- conversions ----------------------------------------------------------------------------------


def cast_function(source: str, target: str, *, vector: bool = False) -> Function:
    """Return the conversion of a value of `source` to `target`."""
    if dtypes.element(target) == "bfloat16":
        return to_bfloat16
    return _cast_array(source, target) if vector else _cast_scalar(source, target)


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
    """Truncate floats to integers; clamp values that are out of range; NaN becomes 0."""
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    wide = np.asarray(
        value, np.float64
    )  # exact; `high` may not be a float, so that it is compared only
    inside = (wide > low) & (wide < high)
    result = np.where(inside, wide, 0).astype(storage(target))
    kind = result.dtype.type
    return np.where(wide >= high, kind(high), np.where(wide <= low, kind(low), result))


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
    """Raise an error unless a value is a NumPy array of this shape and dtype.

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
    if array.shape != shape:
        raise CallError(where, f"{name} has the wrong shape", got=array.shape, expected=shape)
    if array.dtype != dtypes.to_numpy(dtype):
        raise CallError(
            where, f"{name} has the wrong dtype", got=_dtype_text(array.dtype), expected=dtype,
            hint=f"convert it with {name}.astype({dtype!r})",
        )  # fmt: skip


def with_normal_bools(array: Value) -> Value:
    """Return an array of bools as bytes 0 and 1; an array of another dtype is returned as it is.

    A bool is true if its byte is not 0. NumPy's operations mostly agree, but copies keep the byte.

    Examples
    --------
    >>> with_normal_bools(np.array([0, 1, 2], np.uint8).view(bool)).view(np.uint8)
    array([0, 1, 1], dtype=uint8)
    """
    return array if array.dtype != np.bool_ else array.view(np.uint8) != 0


def _dtype_text(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype == _BFLOAT16 else dtype.str
