"""The dtypes of sums and results of products of narrow numbers.

Products of 16-bit floats are summed in float32 and rounded once, at the end; those of int8 are
summed in int32, which is then the result.
"""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes
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


def drawn(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    """Return random numbers in [-1, 1), or integers from -8 to 7, whose sums are exact."""
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_int(dtype):
        return generator.integers(-_LARGEST_INTEGER, _LARGEST_INTEGER, shape).astype(kind)
    values: Wide = generator.uniform(-1, 1, shape)
    return values.astype(kind)
