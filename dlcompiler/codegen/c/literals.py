"""Write constants in C with exactly the value and the type of the loop IR."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler import dtypes
from dlcompiler.codegen.c.text import ATOM, UNARY, Text
from dlcompiler.ir import numeric


def literal(value: bool | int | float, dtype: str) -> Text:
    """Return the C text of a constant of a dtype.

    Examples
    --------
    >>> literal(0.1, "float32").text, literal(-(2**31), "int32").text, literal(7, "uint32").text
    ('0.1f', 'INT32_MIN', '7u')
    """
    if dtypes.is_bool(dtype):
        return Text("true" if value else "false")
    if dtypes.is_float(dtype):
        return _float(value, dtype)
    return _integer(int(value), dtype)


def _float(value: float, dtype: str) -> Text:
    rounded = float(numeric.literal(value, dtype))
    suffix = "" if dtype == "float64" else "f"
    if math.isnan(rounded):
        return Text("NAN")
    if math.isinf(rounded):
        return Text("INFINITY") if rounded > 0 else Text("-INFINITY", UNARY)
    digits = repr(rounded) if dtype == "float64" else str(np.float32(rounded))
    if "." not in digits and "e" not in digits:
        digits += ".0"
    return Text(digits + suffix, UNARY if digits.startswith("-") else ATOM)


def _integer(value: int, dtype: str) -> Text:
    bits = dtypes.bits(dtype)
    if dtypes.is_unsigned(dtype):
        if bits < 32:
            return Text(str(value))
        return Text(f"UINT64_C({value})" if bits == 64 else f"{value}u")
    if bits >= 32 and value == dtypes.min_value(dtype):
        return Text(f"INT{bits}_MIN")
    text = str(value) if -(2**31) < value < 2**31 else f"INT64_C({abs(value)})"
    if value < 0:
        return Text(text if text.startswith("-") else f"-{text}", UNARY)
    return Text(text)
