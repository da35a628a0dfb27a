"""Arrays between protected pages, so that accesses outside them end the process.

A kernel that reads or writes outside such an array ends its process at once, instead of changing a
neighbour silently.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import MeasurementError

Array = npt.NDArray[Any]
Place = Literal["begin", "end", "aligned"]

GUARD_BYTES = 1 << 16
"""Size of the protected memory on each side, so that an access a row too far is also found."""
_CACHE_LINE = 64
_HUGE_PAGE = 2 << 20
_NO_ACCESS, _READ = 0, 1  # PROT_NONE, PROT_READ


def guarded(shape: Sequence[int], dtype: npt.DTypeLike, place: Place) -> Array:
    """Return an array between forbidden pages, whose memory is zero.

    Parameters
    ----------
    shape : sequence of int
        Its shape.
    dtype : dtype
        Its dtype.
    place : {"begin", "end", "aligned"}
        ``"begin"``: forbidden memory ends where it begins; ``"end"``: forbidden memory begins where
        it ends, so that it may be aligned to its elements only; ``"aligned"``: it begins at a
        multiple of 64 bytes, as memory that kernels are timed on should.

    Raises
    ------
    MeasurementError
        There is no memory for it.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    page = max(mmap.PAGESIZE, GUARD_BYTES)
    # Page by page, arrays of a kernel would begin at the same place of their pages, where a store
    # to one delays loads of another (4 KiB aliasing): one line further than the page's beginning.
    extra = _CACHE_LINE if place == "aligned" else 0
    inner = -(-max(size + extra, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        region = mmap.mmap(-1, inner + 2 * page)
    except OSError as error:
        raise MeasurementError("make an array", "no memory", got=f"{size} bytes: {error}") from None
    memory = np.frombuffer(region, np.uint8)
    if inner >= 2 * _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        region.madvise(mmap.MADV_HUGEPAGE, page, inner)  # as NumPy does for arrays of this size
    for start in (0, page + inner):
        _protect(memory.ctypes.data + start, page, _NO_ACCESS)
    begin = page + (inner - size if place == "end" else extra)
    return memory[begin : begin + size].view(dtype).reshape(shape)


def guarded_copy(array: Array, place: Place) -> Array:
    """Return a copy between forbidden pages that cannot be written."""
    copy = guarded(array.shape, array.dtype, place)
    copy[...] = array
    page = mmap.PAGESIZE
    start = copy.ctypes.data // page * page
    end = -(-(copy.ctypes.data + max(copy.nbytes, 1)) // page) * page
    if copy.nbytes:
        _protect(start, end - start, _READ)
    return copy


def _protect(address: int, size: int, access: int) -> None:
    if _mprotect()(address, size, access) != 0:
        raise MeasurementError("guard an array", "memory cannot be protected", got=f"{size} bytes")


@cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
