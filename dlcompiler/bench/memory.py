"""Arrays to measure on: aligned alike for all who take part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
"""A cache line [byte]."""
INPUT, EXPECTED, BOUND = "input:", "expected:", "bound:"
"""Begin the names of inputs, of right outputs, and of how far a result may be from them."""
ALONE = "alone:"
"""Begins the names of arrays of our kernel for one thread, where it is another operator's."""
PLAIN = "plain:"
"""Begins the names of arrays that peers take in place of one that was packed ahead."""


def aligned(shape: Sequence[int], dtype: Any = np.float32) -> npt.NDArray[Any]:
    """Return an array that begins at a cache line; all of its bytes are 0xFF, in floats a NaN."""
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
