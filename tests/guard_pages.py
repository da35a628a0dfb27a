"""Arrays between protected pages: an access out of bounds crashes the process."""

import ctypes
import mmap

import numpy as np


def guarded_array(shape, dtype, *, at_end=True):
    """Return an array that ends where a page ends, or begins where one begins."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    page = mmap.PAGESIZE
    inner = -(-max(size, 1) // page) * page
    region = mmap.mmap(-1, inner + 2 * page)
    view = np.frombuffer(region, "uint8")
    libc = ctypes.CDLL(None, use_errno=True)
    for start in (0, page + inner):
        assert libc.mprotect(ctypes.c_void_p(view.ctypes.data + start), page, 0) == 0
    begin = page + inner - size if at_end else page
    return view[begin : begin + size].view(dtype).reshape(shape)
