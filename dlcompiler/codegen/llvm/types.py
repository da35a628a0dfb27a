"""Write types, constants and identifiers of LLVM IR."""

from __future__ import annotations

import math
import re
import struct
from functools import cache, lru_cache

from dlcompiler import dtypes
from dlcompiler.errors import TargetError
from dlcompiler.ir import numeric

MAX_LANES = 64
"""Longer vectors make LLVM slow or abort; no machine has them."""

_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}
_PLAIN_IDENTIFIER = re.compile(r"[A-Za-z._$-][A-Za-z0-9._$-]*")


@cache
def scalar_type(dtype: str) -> str:
    """Return the LLVM type of one lane's value: ``i1`` for bool, ``i16`` for bfloat16."""
    return _FLOATS.get(dtypes.element(dtype)) or f"i{dtypes.bits(dtype)}"


@cache
def value_type(dtype: str) -> str:
    """Return the LLVM type of a value in a register.

    Examples
    --------
    >>> value_type("float32x8"), value_type("bool"), value_type("index")
    ('<8 x float>', 'i1', 'i64')
    """
    lanes = dtypes.lanes(dtype)
    if lanes > MAX_LANES:
        raise TargetError(
            "generate LLVM code",
            f"a vector of more than {MAX_LANES} lanes",
            got=dtype,
            expected=f"at most {MAX_LANES} lanes",
            hint="split the axis first and vectorize the inner part",
        )
    return scalar_type(dtype) if lanes == 1 else f"<{lanes} x {scalar_type(dtype)}>"


@cache
def memory_type(dtype: str) -> str:
    """Return the LLVM type of a value in memory: a bool takes a byte there."""
    return value_type(dtypes.with_lanes("uint8" if is_bool(dtype) else dtype, dtypes.lanes(dtype)))


def is_bool(dtype: str) -> bool:
    """Tell whether the lanes are bools, whose LLVM types in memory and registers differ."""
    return dtypes.family(dtype) == "bool"


@cache
def intrinsic_suffix(dtype: str) -> str:
    """Return the suffix for this type in the name of an overloaded intrinsic.

    Examples
    --------
    >>> intrinsic_suffix("float32x8"), intrinsic_suffix("index")
    ('v8f32', 'i64')
    """
    lanes = dtypes.lanes(dtype)
    letter = "f" if dtypes.element(dtype) in _FLOATS else "i"
    return ("" if lanes == 1 else f"v{lanes}") + f"{letter}{dtypes.bits(dtype)}"


def constant(value: bool | int | float, dtype: str) -> str:
    """Return a literal of `dtype` as an operand, equal in all lanes.

    Integers are wrapped and floats are rounded to the dtype.

    Examples
    --------
    >>> constant(200, "int8"), constant(0.1, "float32"), constant(1, "indexx4")
    ('-56', '0x3FB99999A0000000', 'splat (i64 1)')
    """
    # -0.0 == 0.0, but they are two constants.
    return _constant(value, dtype, value == 0 and math.copysign(1, value) < 0)


@lru_cache(maxsize=4096)
def _constant(value: bool | int | float, dtype: str, _is_negative_zero: bool) -> str:
    text = _scalar_constant(value, dtypes.element(dtype))
    if dtypes.lanes(dtype) == 1:
        return text
    return f"splat ({scalar_type(dtype)} {text})"


def _scalar_constant(value: bool | int | float, element: str) -> str:
    if element == "bool":
        return "true" if value else "false"
    if dtypes.is_float(element):
        return _float_constant(float(value), element)
    bits = dtypes.bits(element)
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def _float_constant(value: float, element: str) -> str:
    """Return a float constant by its bits; LLVM wants a float32 as the bits of a double."""
    if element == "bfloat16":
        return str(numeric.literal(value, element).view("int16"))
    if element == "float16":
        (bits,) = struct.unpack("<H", struct.pack("<e", _rounded(value, "e")))
        return f"0xH{bits:04X}"
    if element == "float32":
        value = _rounded(value, "f")
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{bits:016X}"


def _rounded(value: float, code: str) -> float:
    """Round to the float format `code` of `struct`; a number that is too large gets infinite."""
    try:
        (result,) = struct.unpack(f"<{code}", struct.pack(f"<{code}", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(result)


def identifier(name: str) -> str:
    """Return `name` as it stands after ``%`` or ``@``, quoted where LLVM needs it."""
    if _PLAIN_IDENTIFIER.fullmatch(name):
        return name
    plain = b'"\\'
    text = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in plain else f"\\{byte:02X}"
        for byte in name.encode()
    )
    return f'"{text}"'
