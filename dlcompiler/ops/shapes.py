"""Convert shapes to the texts that workloads hold: ``(64, 1000)`` is ``64x1000``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.errors import TuningError

MAX_ELEMENTS = 1 << 40
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def shape_text(shape: Sequence[int] | str, where: str) -> str:
    """Convert a shape to text; a shape that is already a text is only checked.

    Raises
    ------
    TuningError
        It is not a shape, or too large.

    Examples
    --------
    >>> shape_text((64, 1000), "softmax"), shape_text("7", "softmax"), shape_text((), "sum")
    ('64x1000', '7', 'scalar')
    """
    # The elements of bytes are numbers: b"3" would be the shape (51,).
    is_text = isinstance(shape, str | bytes)
    text = str(shape) if is_text else "x".join(map(str, shape)) or "scalar"
    if text != "scalar" and re.fullmatch(r"[0-9]+(x[0-9]+)*", text, re.ASCII) is None:
        raise TuningError(where, "not a shape", got=repr(shape), expected="a tuple, or '64x1000'")
    if math.prod(shape_of(text)) > MAX_ELEMENTS:
        raise TuningError(
            where, "the shape has too many elements", got=text, expected=f"at most {MAX_ELEMENTS}"
        )
    return text


def shape_of(text: str) -> tuple[int, ...]:
    """Read the shape from a text of a workload."""
    return () if text == "scalar" else tuple(int(extent) for extent in text.split("x"))


def checked_dtype(dtype: object, allowed: Sequence[str], where: str) -> str:
    """Check that an operator supports a dtype, and return its name."""
    name = dtypes.as_dtype(dtype)
    if name not in allowed:
        raise TuningError(
            where, "not a dtype of this operator", got=repr(name), expected=", ".join(allowed)
        )
    return name


def checked_dimension(axis: int, ndim: int, where: str) -> int:
    """Convert a dimension that may be negative, counting from the end, to a nonnegative one."""
    if type(axis) is not int or not -ndim <= axis < ndim:
        raise TuningError(
            where, "no such dimension", got=repr(axis),
            expected=f"an int from {-ndim} to {ndim - 1}",
        )  # fmt: skip
    return axis % ndim


def numbers(given: Sequence[int] | str) -> tuple[int, ...]:
    """Read integers from a sequence, or from a text such as ``"0,2"``."""
    if isinstance(given, str | bytes):
        return tuple(int(n) for n in str(given).split(",") if n)
    return tuple(map(operator.index, given))


def numbers_text(given: Sequence[int]) -> str:
    """Return integers as the text that a workload holds."""
    return ",".join(map(str, given))
