"""The dtypes of sums and results of products of narrow numbers.

Products of 16-bit floats are summed in float32 and rounded once, at the end; those of int8 are
summed in int32, which is then the result.
"""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ir import Expr
from dlcompiler.ops.rounding import Array, Wide

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8")
"""Dtypes of operators that sum products."""

STORED = ("float16", "bfloat16")
"""Dtypes in which weights of float32 may be stored."""
_SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32"}
_RESULTS = {"int8": "int32"}
_LARGEST_INTEGER = 8
_LEAST, _MOST = -128, 127


def sums_dtype(dtype: str) -> str:
    """Return the dtype of the sums, which is also that of the epilogue's operands.

    Examples
    --------
    >>> sums_dtype("bfloat16"), sums_dtype("int8"), sums_dtype("float64")
    ('float32', 'int32', 'float64')
    """
    return _SUMS.get(dtype, dtype)


def result_dtype(dtype: str) -> str:
    """Return the dtype of the result.

    Examples
    --------
    >>> result_dtype("bfloat16"), result_dtype("int8")
    ('bfloat16', 'int32')
    """
    return _RESULTS.get(dtype, dtype)


def stored(where: str, dtype: str, weight_dtype: str) -> dict[str, str]:
    """Return the parameter for weights that are stored in fewer bits than the data.

    Parameters
    ----------
    where : str
        Name of the operator.
    dtype : str
        Of the data.
    weight_dtype : str
        One of `STORED`, or "" for that of the data.

    Returns
    -------
    dict
        ``weight_dtype``, if it differs from the dtype of the data.

    Raises
    ------
    TuningError
        If weights of float32 cannot be stored so, or the data are not of float32.
    """
    if weight_dtype in ("", dtype):
        return {}
    if weight_dtype not in STORED or dtype != "float32":
        raise TuningError(
            where, "weights are not stored in this dtype", got=f"{weight_dtype!r} for {dtype} data",
            expected=f"{' or '.join(STORED)}, for float32 data",
        )  # fmt: skip
    return {"weight_dtype": weight_dtype}


def converted(value: Expr, dtype: str) -> Expr:
    """Convert a value to a dtype; unchanged if it has that dtype."""
    return value if value.dtype == dtype else value.astype(dtype)


def centred(value: Expr, dtype: str, zero_point: int) -> Expr:
    """Convert a value to a dtype, and subtract what it holds in place of 0."""
    wide = converted(value, dtype)
    made: Expr = wide - te.const(zero_point, dtype) if zero_point else wide
    return made


def zero_point_of(op: str, zero_point: int, dtype: str) -> dict[str, int]:
    """Return the parameter of a workload for a zero point; none if it is 0.

    Parameters
    ----------
    op : str
        Name of the operator.
    zero_point : int
        What the first operand holds in place of 0: the operator subtracts it from each element.
        Integers that stand for numbers, ``(q - zero_point) * scale``, have one.
    dtype : str
        Of the operands.

    Raises
    ------
    TuningError
        If it is no int8, or the operands are none.

    Examples
    --------
    >>> zero_point_of("dense", -128, "int8"), zero_point_of("dense", 0, "float32")
    ({'zero_point': -128}, {})
    """
    is_fitting = type(zero_point) is int and _LEAST <= zero_point <= _MOST
    if not is_fitting or (zero_point and dtype != "int8"):
        raise TuningError(
            op, "zero_point does not fit the dtype", got=f"{zero_point!r}, {dtype}",
            expected=f"an int from {_LEAST} to {_MOST}, of int8; 0 for other dtypes",
        )  # fmt: skip
    return {"zero_point": zero_point} if zero_point else {}


def drawn(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    """Return random numbers in [-1, 1), or integers from -8 to 7, whose sums are exact."""
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_int(dtype):
        return generator.integers(-_LARGEST_INTEGER, _LARGEST_INTEGER, shape).astype(kind)
    values: Wide = generator.uniform(-1, 1, shape)
    return values.astype(kind)
