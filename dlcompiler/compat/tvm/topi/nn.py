"""Classic TVM's ``tvm.topi.nn``: the layers of neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.windows import Pair, padding_of, pair
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.stmt import extent_product
from dlcompiler.ops.defining import BROADCAST, dimensions, over, tensor
from dlcompiler.ops.elementwise import elementwise
from dlcompiler.ops.gemm import batch_matmul, dense
from dlcompiler.ops.softmax import log_softmax, softmax
from dlcompiler.ops.transforms import pad, reshape


def relu(x: te.Tensor) -> Any:
    """Return the larger of each element and 0."""
    return elementwise("relu", lambda value: te.maximum(value, te.const(0, value.dtype)), x)


def leaky_relu(x: te.Tensor, alpha: float) -> Any:
    """Return each element, times `alpha` where it is negative."""
    return elementwise(
        "leaky_relu",
        lambda value: te.select(value > te.const(0, value.dtype), value, value * alpha),
        x,
    )


def conv2d_nchw(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve images (n, c, h, w) with filters (o, c, kh, kw)."""
    n, c, h, w = Input.shape
    o, _, kh, kw = Filter.static_shape
    window = _Window((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(Input, 2)
    rc, ry, rx = _reduction_axes(c, kh, kw)
    return tensor(
        (n, o, *window.out),
        lambda nn, ff, yy, xx: te.sum(
            _as(image[(nn, rc, *window.at(yy, xx, ry, rx))], out_dtype)
            * _as(Filter[ff, rc, ry, rx], out_dtype),
            axis=[rc, ry, rx],
        ),
        name="conv2d_nchw",
        tag="conv2d_nchw",
    )


def conv2d_hwcn(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve images (h, w, c, n) with filters (kh, kw, c, o)."""
    h, w, c, n = Input.shape
    kh, kw, _, o = Filter.static_shape
    window = _Window((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(Input, 0)
    rc, ry, rx = _reduction_axes(c, kh, kw)
    return tensor(
        (*window.out, o, n),
        lambda yy, xx, ff, nn: te.sum(
            _as(image[(*window.at(yy, xx, ry, rx), rc, nn)], out_dtype)
            * _as(Filter[ry, rx, rc, ff], out_dtype),
            axis=[ry, rx, rc],
        ),
        name="conv2d_hwcn",
        tag="conv2d_hwcn",
    )


def conv2d_nhwc(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve images (n, h, w, c) with filters (kh, kw, c, o)."""
    n, h, w, c = Input.shape
    kh, kw, _, o = Filter.static_shape
    window = _Window((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(Input, 1)
    rc, ry, rx = _reduction_axes(c, kh, kw)
    return tensor(
        (n, *window.out, o),
        lambda nn, yy, xx, ff: te.sum(
            _as(image[(nn, *window.at(yy, xx, ry, rx), rc)], out_dtype)
            * _as(Filter[ry, rx, rc, ff], out_dtype),
            axis=[ry, rx, rc],
        ),
        name="conv2d_nhwc",
        tag="conv2d_nhwc",
    )


def depthwise_conv2d_nchw(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve each channel (n, c, h, w) with its own filters (c, m, kh, kw)."""
    n, c, h, w = Input.shape
    _, many, kh, kw = Filter.static_shape
    window = _Window((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(Input, 2)
    ry, rx = (over(k, name=name) for k, name in ((kh, "ry"), (kw, "rx")))
    return tensor(
        (n, c * many, *window.out),
        lambda nn, cc, yy, xx: te.sum(
            _as(image[(nn, cc // many, *window.at(yy, xx, ry, rx))], out_dtype)
            * _as(Filter[cc // many, cc % many, ry, rx], out_dtype),
            axis=[ry, rx],
        ),
        name="DepthwiseConv2d",
        tag="depthwise_conv2d_nchw",
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


def global_pool(data: te.Tensor, pool_type: str) -> te.Tensor:
    """Reduce images (n, c, h, w) to one number for each channel: ``"avg"`` or ``"max"``."""
    kernel = (data.static_shape[2], data.static_shape[3])
    return pool2d(data, kernel, (1, 1), (1, 1), (0, 0), pool_type)


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
    """Reduce windows of images (n, c, h, w): mean (``"avg"``) or largest (``"max"``)."""
    if pool_type not in ("avg", "max") or layout != "NCHW" or ceil_mode:
        raise ExpressionError(
            "topi.nn.pool2d", "not part of dlcompiler yet",
            got=f"pool_type={pool_type!r}, layout={layout!r}, ceil_mode={ceil_mode}",
            expected="'avg' or 'max', 'NCHW', False",
        )  # fmt: skip
    window = _Window(pair(kernel), stride, padding, dilation, data.shape[2:])
    has_border = any((*window.before, *window.after))
    if pool_type == "avg" and has_border and not count_include_pad:
        raise ExpressionError("topi.nn.pool2d", "count_include_pad=False is not here yet")
    is_max = pool_type == "max"
    image = window.pad(data, 2, te.min_value(data.dtype) if is_max else 0)
    ry, rx = (over(k, name=name) for k, name in zip(pair(kernel), "yx", strict=True))
    reduce = te.max if is_max else te.sum
    shape = (*data.shape[:2], *window.out)
    result = tensor(
        shape,
        lambda n, c, y, x: reduce(image[(n, c, *window.at(y, x, ry, rx))], axis=[ry, rx]),
        name="pool_max" if is_max else "pool_sum",
        tag=f"pool_{pool_type}",
    )
    if is_max:
        return result
    count = pair(kernel)[0] * pair(kernel)[1]
    return tensor(shape, lambda *i: result[i] / count, name="pool_avg", tag="elemwise")


class _Window:
    """A window that moves over the two dimensions of an image."""

    def __init__(
        self, kernel: Pair, stride: Any, padding: Any, dilation: Any, sizes: Sequence[Any]
    ) -> None:
        self.strides, self.dilation = pair(stride), pair(dilation)
        reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, self.dilation, strict=True))
        self.before, self.after = padding_of(padding, reach, self.strides, sizes)
        self.out = tuple(
            (size + first + last - k) // step + 1
            for size, first, last, k, step in zip(
                sizes, self.before, self.after, reach, self.strides, strict=True
            )
        )
        """How many windows there are, along the height and the width."""

    def at(self, y: Any, x: Any, ry: Any, rx: Any) -> tuple[Any, Any]:
        """Return where the element (ry, rx) of the window (y, x) is in the padded image."""
        (sy, sx), (dy, dx) = self.strides, self.dilation
        return y * sy + ry * dy, x * sx + rx * dx

    def pad(self, data: te.Tensor, first: int, value: Any = 0) -> te.Tensor:
        """Return an image with its border; its height is dimension `first`."""
        if not any((*self.before, *self.after)):
            return data
        rest = len(data.shape) - first - 2
        before = (*[0] * first, *self.before, *[0] * rest)
        after = (*[0] * first, *self.after, *[0] * rest)
        return pad(data, before, after, value, name="pad_temp")


def _reduction_axes(c: Any, kh: int, kw: int) -> list[Any]:
    names = ((c, "rc"), (kh, "ry"), (kw, "rx"))
    return [over(extent, name=name) for extent, name in names]


def _as(value: Any, dtype: str | None) -> Any:
    return value if dtype is None else value.astype(dtype)


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
]
