"""Sliding windows over images in NumPy: the references of convolution and pooling."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import ExpressionError

Array: TypeAlias = npt.NDArray[Any]
Pair: TypeAlias = tuple[int, int]


def pair(value: Any) -> Pair:
    """Return a number, or two, as two: for the height and the width."""
    first, second = value if isinstance(value, list | tuple) else (value, value)
    return int(first), int(second)


def out_size(size: int, kernel: int, before: int, after: int, stride: int) -> int:
    """Return how many windows fit along one dimension."""
    return (size + before + after - kernel) // stride + 1


def padding_of(padding: Any, kernel: Any, strides: Pair, sizes: Any) -> tuple[Pair, Pair]:
    """Return the padding before and after the height and the width.

    Parameters
    ----------
    padding : int, sequence or str
        One number, (height, width), (top, left, bottom, right), ``"SAME"`` or ``"VALID"``.
    kernel, strides, sizes
        Extents (height, width) of the window, of a step, and of the image.
    """
    match padding:
        case "VALID":
            return (0, 0), (0, 0)
        case "SAME":
            steps = [-(-int(size) // stride) for size, stride in zip(sizes, strides, strict=True)]
            total = [
                max((n - 1) * stride + int(k) - int(size), 0)
                for n, stride, k, size in zip(steps, strides, kernel, sizes, strict=True)
            ]
            before = (total[0] // 2, total[1] // 2)
            return before, (total[0] - before[0], total[1] - before[1])
        case (top, left, bottom, right):
            return (int(top), int(left)), (int(bottom), int(right))
        case str():
            raise ExpressionError("padding", "not a way to pad", got=padding)
    return pair(padding), pair(padding)


def padded(images: Array, before: Pair, after: Pair, value: float = 0.0) -> Array:
    """Return images (…, h, w) with a border."""
    border = [(0, 0)] * (images.ndim - 2) + list(zip(before, after, strict=True))
    return np.pad(images, border, constant_values=value)


def windows(images: Array, kernel: Pair, strides: Pair) -> Array:
    """Return all windows of images (…, h, w), as (…, oh, ow, kh, kw); a view."""
    found = np.lib.stride_tricks.sliding_window_view(images, kernel, axis=(-2, -1))
    result: Array = found[..., :: strides[0], :: strides[1], :, :]
    return result


def conv2d(
    images: Array, filters: Array, strides: Pair, before: Pair, after: Pair, groups: int = 1
) -> Array:
    """Convolve images (n, c, h, w) with filters (o, c / groups, kh, kw)."""
    kernel = (filters.shape[2], filters.shape[3])
    seen = windows(padded(images, before, after), kernel, strides)
    parts = [
        np.einsum("nchwij,ocij->nohw", part, weights, optimize=True)
        for part, weights in zip(
            np.split(seen, groups, axis=1), np.split(filters, groups), strict=True
        )
    ]
    return np.concatenate(parts, axis=1)
