"""Classic TVM's ``tvm.topi.testing``: references in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.windows import conv2d
from dlcompiler.ops.conv2d.plain import padding_of, pair


def conv2d_nchw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    """Convolve images (n, c, h, w) with filters (o, c / groups, kh, kw); see `padding_of`."""
    before, after = padding_of(padding, w_np.shape[2:])
    return conv2d(a_np, w_np, pair(stride), before, after, groups)


def conv2d_hwcn_python(a_np: Any, w_np: Any, stride: Any, padding: Any) -> Any:
    """Convolve images (h, w, c, n) with filters (kh, kw, c, o)."""
    images, filters = a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(images, filters, stride, padding).transpose(2, 3, 1, 0)


def conv2d_nhwc_python(a_np: Any, w_np: Any, stride: Any, padding: Any) -> Any:
    """Convolve images (n, h, w, c) with filters (kh, kw, c, o)."""
    images, filters = a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(images, filters, stride, padding).transpose(0, 2, 3, 1)


def depthwise_conv2d_python_nchw(input_np: Any, filter_np: Any, stride: Any, padding: Any) -> Any:
    """Convolve each channel (n, c, h, w) with its own filters (c, m, kh, kw)."""
    channels, many, *kernel = filter_np.shape
    filters = filter_np.reshape(channels * many, 1, *kernel)
    return conv2d_nchw_python(input_np, filters, stride, padding, groups=channels)


def softmax_python(a_np: Any, axis: int = 1) -> Any:
    """Return exp(x) divided by its sum along a dimension."""
    powers = np.exp(a_np - a_np.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


__getattr__ = reporter(__name__)
__all__ = [
    "conv2d_hwcn_python",
    "conv2d_nchw_python",
    "conv2d_nhwc_python",
    "depthwise_conv2d_python_nchw",
    "softmax_python",
]
