"""Sliding windows over images in NumPy: the references of convolution and pooling."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.ops.conv2d.plain import Pair

Array: TypeAlias = npt.NDArray[Any]


def out_size(size: int, kernel: int, before: int, after: int, stride: int) -> int:
    """Return how many windows fit along one dimension."""
    return (size + before + after - kernel) // stride + 1


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
