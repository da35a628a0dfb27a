"""Call Python functions from machine code: arrays are views, exceptions reach the caller.

Code calls ``i64 NAME(ptr kinds, ptr values, ptr status)``. ``kinds`` is a text of one word for each
argument: ``i`` an integer, ``f`` a float, ``b`` a bool, ``r:float32:2`` an array to read and
``w:float32:2`` one to write, with dtype and dimensions. ``values`` has 8 bytes for a number (a
float as a double); for an array its address, its extents and its strides in elements. The result is
0, or 1 where the function raised: the exception is kept under the address of the status, which
belongs to one call of a kernel, until the caller of the kernel takes it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.runtime.registry import get_global_func

_Callback = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
_raised: dict[int, BaseException] = {}


@cache
def _thunk(name: str) -> Any:
    """Return the C function for a name. It is never freed, so that code may keep its address."""

    def run(kinds: int, values: int, status: int) -> int:
        try:
            function = get_global_func(name)
            assert function is not None
            function(*_arguments(ctypes.string_at(kinds), values))
        except BaseException as error:
            _raised.setdefault(status, error)
            return 1
        return 0

    return _Callback(run)


def address(name: str) -> int:
    """Return the address by which code calls the function registered under a name.

    Raises
    ------
    UserError
        If there is none.
    """
    get_global_func(name)
    value = ctypes.cast(_thunk(name), ctypes.c_void_p).value
    assert value is not None
    return value


def take_raised(status: int) -> BaseException | None:
    """Remove and return the exception of the call whose status is at this address."""
    return _raised.pop(status, None)


def _arguments(kinds: bytes, values: int) -> Iterator[Any]:
    words = kinds.decode().split()
    sizes = [1 if len(word) == 1 else 1 + 2 * int(word.rpartition(":")[2]) for word in words]
    numbers = (ctypes.c_int64 * sum(sizes)).from_address(values)
    at = 0
    for word, size in zip(words, sizes, strict=True):
        yield _argument(word, numbers[at : at + size])
        at += size


def _argument(kind: str, values: list[int]) -> Any:
    match kind:
        case "i":
            return values[0]
        case "b":
            return bool(values[0])
        case "f":
            return struct.unpack("d", struct.pack("q", values[0]))[0]
    mode, dtype, _ = kind.split(":")
    rank = len(values) // 2
    return _view(values[0], values[1 : 1 + rank], values[1 + rank :], dtype, mode)


def _view(
    start: int, shape: list[int], strides: list[int], dtype: str, mode: str
) -> np.ndarray[Any, Any]:
    """Return an array that views existing memory; it is read-only for inputs."""
    element = dtypes.to_numpy(dtype)
    if 0 in shape:
        return np.empty(shape, element)
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * (span * element.itemsize)).from_address(start)
    steps = [n * element.itemsize for n in strides]
    array = np.ndarray(shape, element, memoryview(memory), strides=steps)
    array.flags.writeable = mode == "w"
    return array
