"""Data types as strings: ``"float32"``, ``"int8"``, ``"bool"``, ``"index"``, ``"float32x8"``.

There are three families:

- **data**: ``bool``, ``int8`` … ``int64``, ``uint8`` … ``uint64``, ``float16``, ``bfloat16``,
  ``float32``, ``float64``. Data integers wrap.
- **index**: loop variables, extents and buffer indices. An index never overflows (this is checked
  when shapes are bound), so the simplifier treats it as a mathematical integer. It has 64 bits
  until a late pass narrows it. ``is_int("index")`` is false on purpose: rules for data integers,
  which wrap, do not hold for indices, and vice versa.
- **vectors** of either: the element's name, ``x``, and at least 2 lanes: ``int32x4``, ``indexx8``.

In NumPy arrays, ``bfloat16`` is the dtype of that name from `ml_dtypes`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from dlcompiler.errors import ExpressionError

#: Name of each scalar dtype -> (family, bits of the value).
_SCALARS: dict[str, tuple[str, int]] = {
    "bool": ("bool", 1),
    "index": ("index", 64),
    **{f"int{bits}": ("int", bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": ("uint", bits) for bits in (8, 16, 32, 64)},
    "float16": ("float", 16),
    "bfloat16": ("float", 16),
    "float32": ("float", 32),
    "float64": ("float", 64),
}

#: All scalar dtypes, in the order of the documentation.
SCALARS: tuple[str, ...] = tuple(_SCALARS)

#: The largest finite number of each float.
LARGEST: dict[str, float] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}

_PATTERN = re.compile(rf"({'|'.join(_SCALARS)})(?:x([1-9][0-9]{{0,5}}))?")


@cache
def _parse(dtype: object) -> tuple[str, int]:
    """Split a dtype into ``(element, lanes)``; refuse a text that is not a dtype."""
    match = _PATTERN.fullmatch(dtype) if isinstance(dtype, str) else None
    lanes = int(match[2] or 1) if match else 1
    if match is None or (match[2] is not None and lanes == 1):
        close = difflib.get_close_matches(str(dtype), SCALARS, n=1)
        raise ExpressionError(
            "read a dtype",
            "not the name of a data type",
            got=repr(dtype),
            expected=", ".join(SCALARS) + ", or one of them with lanes: float32x8",
            hint=f"did you mean {close[0]!r}?" if close else None,
        )
    return match[1], lanes


_synonyms: ContextVar[Mapping[str, str] | None] = ContextVar("dtype_synonyms", default=None)


@contextmanager
def synonyms(names: Mapping[str, str]) -> Iterator[None]:
    """Let `as_dtype` understand other names inside a ``with``.

    Parameters
    ----------
    names : mapping of str
        Another name -> the dtype.
    """
    token = _synonyms.set(names)
    try:
        yield
    finally:
        _synonyms.reset(token)


def as_dtype(dtype: object) -> str:
    """Return the name of a dtype that is given by its name or as a NumPy dtype.

    Examples
    --------
    >>> as_dtype("float32x8"), as_dtype(np.float16), as_dtype(np.dtype("int8"))
    ('float32x8', 'float16', 'int8')
    """
    if isinstance(dtype, np.dtype):
        return from_numpy(dtype)
    if isinstance(dtype, type) and (dtype is bool or issubclass(dtype, np.generic)):
        return from_numpy(dtype)
    if isinstance(dtype, str):
        dtype = (_synonyms.get() or {}).get(dtype, dtype)
    _parse(dtype)
    return str(dtype)


def is_dtype(dtype: object) -> bool:
    """Tell whether ``dtype`` is the name of a data type."""
    try:
        _parse(dtype)
    except (ExpressionError, TypeError):
        return False
    return True


@cache
def element(dtype: str) -> str:
    """Return the scalar dtype of one lane.

    Examples
    --------
    >>> element("float32x8")
    'float32'
    """
    return _parse(dtype)[0]


@cache
def lanes(dtype: str) -> int:
    """Return the number of lanes; 1 for a scalar."""
    return _parse(dtype)[1]


@cache
def with_lanes(dtype: str, count: int) -> str:
    """Return the dtype with the same element and ``count`` lanes.

    Examples
    --------
    >>> with_lanes("float32", 8), with_lanes("int8x4", 1)
    ('float32x8', 'int8')
    """
    name = element(dtype)
    if count < 1:
        raise ExpressionError("make a vector dtype", "lanes must be positive", got=str(count))
    return name if count == 1 else f"{name}x{count}"


@cache
def family(dtype: str) -> str:
    """Return ``"bool"``, ``"index"``, ``"int"``, ``"uint"`` or ``"float"``."""
    return _SCALARS[element(dtype)][0]


@cache
def is_float(dtype: str) -> bool:
    """Tell whether the element is a floating-point number."""
    return family(dtype) == "float"


@cache
def is_int(dtype: str) -> bool:
    """Tell whether the element is a data integer, signed or unsigned (not index, not bool)."""
    return family(dtype) in ("int", "uint")


@cache
def is_unsigned(dtype: str) -> bool:
    """Tell whether the element is an unsigned data integer."""
    return family(dtype) == "uint"


@cache
def is_index(dtype: str) -> bool:
    """Tell whether the element is an index."""
    return family(dtype) == "index"


@cache
def is_bool(dtype: str) -> bool:
    """Tell whether the element is a truth value."""
    return family(dtype) == "bool"


@cache
def bits(dtype: str) -> int:
    """Return the number of bits of one lane's value: 1 for bool, 64 for index."""
    return _SCALARS[element(dtype)][1]


@cache
def bytes_of(dtype: str) -> int:
    """Return the size of a value in memory, over all lanes [byte]; a bool lane takes one byte."""
    return max(bits(dtype) // 8, 1) * lanes(dtype)


@cache
def min_value(dtype: str) -> int | float:
    """Return the smallest value of the element, which is the identity of ``max``.

    It is ``-inf`` for floats, and ``False`` for bool. The smallest finite number would not be an
    identity: the maximum of ``-inf`` alone is ``-inf``.
    """
    match family(dtype):
        case "float":
            return float("-inf")
        case "bool":
            return False
        case "uint":
            return 0
        case _:
            return int(-(2 ** (bits(dtype) - 1)))


@cache
def max_value(dtype: str) -> int | float:
    """Return the largest value of the element, the identity of ``min``; ``inf`` for floats."""
    match family(dtype):
        case "float":
            return float("inf")
        case "bool":
            return True
        case "uint":
            return int(2 ** bits(dtype) - 1)
        case _:
            return int(2 ** (bits(dtype) - 1) - 1)


@cache
def promote(a: str, b: str) -> str:
    """Return the dtype to which the operands of an operation are converted.

    Parameters
    ----------
    a, b : str
        Two dtypes. A scalar is broadcast to the other's lanes; two different lane counts are
        refused.

    Returns
    -------
    str

    Raises
    ------
    ExpressionError
        If no data type can represent the values of both, or the numbers of lanes differ.

    Notes
    -----
    The first matching row applies. Unlike in NumPy, integers never lead to float64.

    ====================== ====================== ============================================
    one                    other                  result
    ====================== ====================== ============================================
    same                   same                   the same
    bool                   anything               the other
    index                  data                   the data dtype
    float                  integer                the float
    float16                bfloat16               float32
    same family            same family            the wider
    uintN                  intM with M > N        intM
    uintN, N ≤ 32          intM with M ≤ N        int of 2N bits: int32 + uint32 -> int64
    uint64                 any signed integer     refused: no type has both ranges
    ====================== ====================== ============================================

    A Python or NumPy number takes the dtype of the other operand, which must be able to represent
    it (``x + 200`` with an int8 is refused). There are two exceptions: a float beside an integer, a
    bool or an index is ``float32``; an int beside a bool, or without another operand, is ``int32``.

    Examples
    --------
    >>> promote("float32", "int64"), promote("uint8", "int8"), promote("index", "int32")
    ('float32', 'int16', 'int32')
    """
    return with_lanes(_promote_elements(element(a), element(b)), _common_lanes(a, b))


def _common_lanes(a: str, b: str) -> int:
    counts = {lanes(a), lanes(b)} - {1}
    if len(counts) > 1:
        raise ExpressionError(
            "promote dtypes",
            "vectors of different lengths cannot be combined",
            got=f"{a} and {b}",
            expected="equal lanes, or one scalar",
        )
    return counts.pop() if counts else 1


def _promote_elements(a: str, b: str) -> str:
    families = family(a), family(b)
    if a == b or families[1] == "bool":
        return a
    if families[0] == "bool":
        return b
    if "index" in families:
        return b if families[0] == "index" else a
    if families == ("float", "float"):
        return "float32" if bits(a) == bits(b) else max(a, b, key=bits)
    if "float" in families:
        return a if families[0] == "float" else b
    return _promote_integers(a, b)


def _promote_integers(a: str, b: str) -> str:
    if family(a) == family(b):
        return max(a, b, key=bits)
    signed, unsigned = (b, a) if is_unsigned(a) else (a, b)
    if bits(signed) > bits(unsigned):
        return signed
    if bits(unsigned) <= 32:
        return f"int{2 * bits(unsigned)}"
    raise ExpressionError(
        "promote dtypes",
        "no data type holds the values of both",
        got=f"{a} and {b}",
        hint="cast one of them: x.astype('int64') or x.astype('uint64')",
    )


def to_numpy(dtype: str) -> np.dtype[np.generic]:
    """Return the NumPy dtype of one lane in memory; ``index`` is int64."""
    name = element(dtype)
    if name == "bfloat16":
        bfloat16: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype("int64" if name == "index" else name)


def from_numpy(dtype: npt.DTypeLike) -> str:
    """Return the name of a NumPy dtype (or of what ``np.dtype`` accepts).

    Raises
    ------
    ExpressionError
        If the dtype has no counterpart here, or a foreign byte order.
    """
    return _name_of(np.dtype(dtype))


@cache
def _name_of(numpy_dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype; NumPy makes its own anew each time, from parts."""
    if numpy_dtype.name in _SCALARS and numpy_dtype.isnative:
        return numpy_dtype.name
    swapped = numpy_dtype.name in _SCALARS
    raise ExpressionError(
        "convert a NumPy dtype",
        "foreign byte order" if swapped else "no such data type here",
        got=repr(numpy_dtype),
        expected=", ".join(name for name in SCALARS if name != "index"),
        hint="use array.astype(array.dtype.newbyteorder('='))" if swapped else None,
    )
