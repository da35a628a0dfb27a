"""Classic TVM's ``tvm.topi.nn``: the layers of neural networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler import te
from dlcompiler.compat.literals import converted
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.topi.math import cast
from dlcompiler.compat.tvm.topi.nn import utils
from dlcompiler.compat.tvm.topi.nn.products import (
    batch_matmul,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    dense,
    depthwise_conv2d_nchw,
)
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.stmt import extent_product
from dlcompiler.ops.conv2d.plain import pair, windows_of
from dlcompiler.ops.conv2d.shapes import Pair, Window
from dlcompiler.ops.convolutions import Windows
from dlcompiler.ops.elementwise import elementwise
from dlcompiler.ops.helpers import BROADCAST, dimensions, over, tensor
from dlcompiler.ops.pool2d import KINDS, Pooling
from dlcompiler.ops.pool2d import pool2d as define_pool2d
from dlcompiler.ops.softmax import log_softmax, softmax
from dlcompiler.ops.transforms import pad, reshape


def _pooled(
    data: te.Tensor, kernel: Pair, window: Windows, how: tuple[str, bool, str, bool]
) -> te.Tensor:
    """Pool by the operator ``pool2d``, for images with constant extents."""
    kind, ceil_mode, layout, counts_padding = how
    first = layout.index("H")
    sizes = data.static_shape[first : first + 2]
    given = [
        Window(sizes[n], kernel[n], window.strides[n], window.before[n], window.after[n],
               window.dilation[n])
        for n in (0, 1)
    ]  # fmt: skip
    # TVM pads by stride - 1 more: a window may end less than a stride behind the edge.
    over_edge = [of.stride - 1 if ceil_mode else 0 for of in given]
    rows, columns = (
        replace(of, after=of.after + more) for of, more in zip(given, over_edge, strict=True)
    )
    pooling = Pooling(kind, rows, columns, layout, counts_padding)
    return define_pool2d(data, pooling, (given[0], given[1]), is_wide=False)


def relu(x: te.Tensor) -> Any:
    """Return the maximum of each element and 0."""
    return elementwise("relu", lambda value: te.maximum(value, te.const(0, value.dtype)), x)


def leaky_relu(x: te.Tensor, alpha: float) -> Any:
    """Return each element; negative elements are multiplied by `alpha`."""
    return elementwise(
        "leaky_relu",
        lambda value: te.select(
            value > te.const(0, value.dtype), value, value * converted(alpha, value.dtype)
        ),
        x,
    )


def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """Add a bias along one dimension."""
    (n,) = dimensions(axis, len(data.shape), "topi.nn.bias_add")
    return tensor(data.shape, lambda *i: data[i] + bias[i[n]], "T_add", BROADCAST)


def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Multiply and shift each channel of images (n, c, h, w)."""
    return tensor(
        Input.shape, lambda b, c, i, j: Input[b, c, i, j] * Scale[c] + Shift[c], name="ScaleShift"
    )


def flatten(data: te.Tensor) -> te.Tensor:
    """Join all dimensions but the first."""
    return reshape(data, (data.shape[0], extent_product(data.shape[1:])))


def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """Reduce images to one number for each channel: ``"avg"`` or ``"max"``."""
    first = max(layout.find("H"), 0)
    kernel = data.static_shape[first : first + 2]
    return pool2d(data, kernel, (1, 1), (1, 1), (0, 0), pool_type, False, layout)


def pool2d(
    data: te.Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Reduce windows of images: mean (``"avg"``) or largest (``"max"``).

    The mean of integers is truncated toward zero. Means and sums of 8 and 16 bits are int32.
    """
    if pool_type not in KINDS or layout not in ("NCHW", "NHWC"):
        raise ExpressionError(
            "topi.nn.pool2d", "not part of dlcompiler yet",
            got=f"pool_type={pool_type!r}, layout={layout!r}",
            expected="'avg' or 'max', 'NCHW' or 'NHWC'",
        )  # fmt: skip
    if pool_type == "avg" and data.dtype in ("int8", "int16", "uint8", "uint16"):
        data = cast(data, "int32")
    window = windows_of(pair(kernel), stride, padding, dilation)
    has_border = any((*window.before, *window.after))
    leaves_out = pool_type == "avg" and has_border and not count_include_pad
    if layout == "NHWC" or ceil_mode or leaves_out:
        return _pooled(
            data, pair(kernel), window, (pool_type, ceil_mode, layout, count_include_pad)
        )
    is_max = pool_type == "max"
    image = window.pad(data, (2, 3), te.min_value(data.dtype) if is_max else 0)
    ry, rx = (over(k, name=name) for k, name in zip(pair(kernel), "yx", strict=True))
    reduce = te.max if is_max else te.sum
    shape = (*data.shape[:2], *window.out(data.shape[2:]))
    result = tensor(
        shape,
        lambda n, c, y, x: reduce(image[(n, c, *window.at((y, x), (ry, rx)))], axis=[ry, rx]),
        name="pool_max" if is_max else "pool_sum",
        tag=f"pool_{pool_type}",
    )
    if is_max:
        return result
    count = pair(kernel)[0] * pair(kernel)[1]
    return tensor(shape, lambda *i: te.div(result[i], count), name="pool_avg", tag="elemwise")


__getattr__ = reporter(__name__)
__all__ = [
    "batch_matmul",
    "bias_add",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "dense",
    "depthwise_conv2d_nchw",
    "flatten",
    "global_pool",
    "leaky_relu",
    "log_softmax",
    "pad",
    "pool2d",
    "relu",
    "scale_shift_nchw",
    "softmax",
    "utils",
]
