"""Entries of kernels: callables in machine code that check arrays and run a kernel.

An entry is a built-in function of Python (``native/entry.ll``) with a *plan* of its kernel: which
arrays it takes, and what must not overlap. It takes exactly what the plan says, on the fastest way;
everything else it leaves to `dlcompiler.runtime.function`, so that there is one place that refuses.
"""

from __future__ import annotations

import ctypes
import importlib.resources
import itertools
import string
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import MAX_VALUES
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.options import Options
from dlcompiler.target import resolve

Entry: TypeAlias = Callable[..., Any]
"""Takes the arguments of a call. It returns None when the kernel has run, NotImplemented when
nothing was called, and the bytes of a `Status` when the kernel reported an error."""
Pair: TypeAlias = tuple[int, int, int, int]
"""Positions of an output and of another array that it must not overlap, and their sizes [byte]."""

MOST_ARRAYS = 16
"""Most arrays of a kernel with an entry."""
TYPE_OFFSET = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Where an object has the address of its type [byte]."""
_STATUS_WORDS = 1 + MAX_VALUES + 1
"""The number of the message, the values, and the address."""
_FASTCALL = 0x0080
"""**Source:** Python's ``methodobject.h``: METH_FASTCALL."""
_WRITABLE, _FORMAT, _CONTIGUOUS = 0x1, 0x4, 0x38
"""**Source:** Python's ``pybuffer.h``: PyBUF_WRITABLE, PyBUF_FORMAT, PyBUF_C_CONTIGUOUS."""
_PLAN_WORDS, _ARRAY_WORDS = 9, 5


@dataclass(frozen=True, slots=True)
class Status:
    """What a kernel reported: the number of a message from 1, and the values for it."""

    number: int
    values: tuple[int, ...]
    address: int
    """Where the kernel had it; exceptions of Python's functions are kept by this address."""

    @staticmethod
    def of(told: bytes) -> Status:
        """Read what an entry returned."""
        number, *values, address = struct.unpack(f"{_STATUS_WORDS}q", told)
        return Status(number, tuple(values), address)


def declining(*arguments: object) -> Any:
    """Decline every call: the entry of a kernel that has none in machine code."""
    del arguments
    return NotImplemented


def entry_of(
    kernel: int,
    params: Sequence[Param],
    pairs: Iterable[Pair],
    *,
    has_status: bool = False,
    before: Callable[[], object] | None = None,
) -> Entry:
    """Return the entry of a kernel.

    Parameters
    ----------
    kernel : int
        Address of its code, which must outlive the entry: ``void kernel(ptr, …)``, a pointer for
        each array, and one to a status if it has one.
    params : sequence of Param
        Its arrays, of static shapes.
    pairs : iterable of Pair
        The arrays that must not overlap.
    has_status : bool
        Whether the kernel reports errors: the number of one, and `MAX_VALUES` values.
    before : callable, optional
        Called before the kernel; it must live for ever.

    Returns
    -------
    Entry
        `declining` if there are too many arrays, a dtype that buffers have no name for, or an
        extent that no array can have.
    """
    formats = [_format(param.dtype) for param in params]
    if len(params) > MOST_ARRAYS or None in formats or not _has_type_last():
        return declining
    arrays: list[Any] = []
    extents: list[int] = []
    first = _PLAN_WORDS + _ARRAY_WORDS * len(params)
    for param, format_ in zip(params, formats, strict=True):
        flags = _CONTIGUOUS | _FORMAT | (_WRITABLE if param.is_output else 0)
        mask = dtypes.to_numpy(param.dtype).alignment - 1
        shape = param.static_shape
        arrays += [flags, format_, mask, len(shape), first + len(extents)]
        extents += shape
    ranges = [(output, other, -below, above) for output, other, below, above in pairs]
    plan = [
        len(params), kernel, id(np.ndarray), id(None), id(NotImplemented),
        0 if before is None else id(before), int(has_status), len(ranges), first + len(extents),
        *arrays, *extents, *itertools.chain.from_iterable(ranges),
    ]  # fmt: skip
    try:
        words = struct.pack(f"{len(plan)}q", *plan)
    except struct.error:  # an extent that no array can have
        return declining
    made: Entry = _new_function(ctypes.addressof(_definition()), words, None)
    return made


@cache
def _format(dtype: str) -> int | None:
    """Return the format of an array's buffer, a character and a zero, as a number; None: longer."""
    try:
        text = np.empty(1, dtypes.to_numpy(dtype)).data.format
    except (ValueError, BufferError):  # NumPy has no name for it
        return None
    return ord(text) if len(text) == 1 else None


@cache
def _has_type_last() -> bool:
    """Tell whether an object's header ends with the address of its type, as in all CPythons."""
    place = id(np.empty(1)) + TYPE_OFFSET
    return ctypes.c_void_p.from_address(place).value == id(np.ndarray)


class _Definition(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _definition() -> _Definition:
    """Return the definition of entries.

    It is never freed, nor its code: entries refer to it, and when Python ends, threads may still be
    inside. Several threads that come first at once make one each.
    """
    folder = importlib.resources.files("dlcompiler.runtime.native")
    text = string.Template(folder.joinpath("entry.ll").read_text("utf-8"))
    operands = range(MOST_ARRAYS + 1)
    constants = {
        "most_arrays": MOST_ARRAYS,
        "most_operands": len(operands),
        "status_words": _STATUS_WORDS,
        "last_status_word": _STATUS_WORDS - 1,
        "status_bytes": 8 * _STATUS_WORDS,
        "type_offset": TYPE_OFFSET,
        "load_operands": "\n".join(_load(n) for n in operands),
        "pass_operands": ", ".join(f"ptr %operand.{n}" for n in operands),
    }
    loaded = compile_ir(text.substitute(constants), Options.for_target(resolve("cpu")))
    made = _Definition(b"kernel", loaded.address("dlc_enter"), _FASTCALL, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((made, loaded)))
    return made


def _load(number: int) -> str:
    """Return the instructions that load an operand from ``%operands``."""
    return (
        f"  %place.{number} = getelementptr ptr, ptr %operands, i64 {number}\n"
        f"  %operand.{number} = load ptr, ptr %place.{number}, align 8"
    )


_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))
