"""Arrays for measurements that begin at a cache line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
"""A cache line [byte]."""


def aligned(shape: Sequence[int], dtype: Any = np.float32) -> npt.NDArray[Any]:
    """Return an array that begins at a cache line, filled with bytes 0xFF (NaN for floats)."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.full(size + ALIGNMENT, 0xFF, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    array: npt.NDArray[Any] = raw[start : start + size].view(dtype).reshape(shape)
    return array


def aligned_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that begins at a cache line."""
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy
