"""Define convolutions of any shape, to be scheduled by hand.

The names are those of ``topi``, and extents may be symbols. The operators of this package have
other definitions, with the stages that their schedules need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.transforms import pad

Pair: TypeAlias = tuple[int, int]


def conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
    groups: int = 1,
) -> te.Tensor:
    """Convolve images (n, c, h, w) with weights (o, c / groups, kh, kw).

    Parameters
    ----------
    data : Tensor
        Images, of shape ``(n, c, h, w)``.
    weight : Tensor
        Weights, of shape ``(o, c / groups, kh, kw)``.
    stride, dilation : int or pair of int
        One number, or (height, width).
    padding : int, sequence or str
        See `padding_of`.
    out_dtype : str, optional
        What products and sums are computed in.
    groups : int
        Output channels of a group read the input channels of that group only.

    Returns
    -------
    Tensor
        Of the shape ``(n, o, oh, ow)``.

    Examples
    --------
    >>> data, weight = te.placeholder((1, 8, 9, 9)), te.placeholder((16, 8, 3, 3))
    >>> conv2d_nchw(data, weight, stride=2, padding=1)
    Tensor(conv2d_nchw: float32[1, 16, 5, 5])
    """
    n, _, h, w = data.shape
    o, c, kh, kw = weight.static_shape
    if groups < 1 or o % groups:
        raise ExpressionError("conv2d_nchw", "the groups do not divide the channels", got=groups)
    window = SlidingWindow((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(data, 2)
    rc, ry, rx = _reduction_axes(c, kh, kw)

    def element(nn: Any, ff: Any, yy: Any, xx: Any) -> Any:
        channel = rc if groups == 1 else ff // (o // groups) * c + rc
        read = image[(nn, channel, *window.at(yy, xx, ry, rx))]
        return _product(read, weight[ff, rc, ry, rx], out_dtype, [rc, ry, rx])

    return tensor((n, o, *window.out), element, name="conv2d_nchw", tag="conv2d_nchw")


def conv2d_hwcn(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve images (h, w, c, n) with weights (kh, kw, c, o).

    Parameters
    ----------
    data : Tensor
        Images, of shape ``(h, w, c, n)``.
    weight : Tensor
        Weights, of shape ``(kh, kw, c, o)``.
    stride, padding, dilation, out_dtype
        As for `conv2d_nchw`.

    Returns
    -------
    Tensor
        Of shape ``(oh, ow, o, n)``.
    """
    h, w, c, n = data.shape
    kh, kw, _, o = weight.static_shape
    window = SlidingWindow((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(data, 0)
    rc, ry, rx = _reduction_axes(c, kh, kw)

    def element(yy: Any, xx: Any, ff: Any, nn: Any) -> Any:
        read = image[(*window.at(yy, xx, ry, rx), rc, nn)]
        return _product(read, weight[ry, rx, rc, ff], out_dtype, [ry, rx, rc])

    return tensor((*window.out, o, n), element, name="conv2d_hwcn", tag="conv2d_hwcn")


def conv2d_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve images (n, h, w, c) with weights (kh, kw, c, o).

    Parameters
    ----------
    data : Tensor
        Images, of shape ``(n, h, w, c)``.
    weight : Tensor
        Weights, of shape ``(kh, kw, c, o)``.
    stride, padding, dilation, out_dtype
        As for `conv2d_nchw`.

    Returns
    -------
    Tensor
        Of shape ``(n, oh, ow, o)``.
    """
    n, h, w, c = data.shape
    kh, kw, _, o = weight.static_shape
    window = SlidingWindow((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(data, 1)
    rc, ry, rx = _reduction_axes(c, kh, kw)

    def element(nn: Any, yy: Any, xx: Any, ff: Any) -> Any:
        read = image[(nn, *window.at(yy, xx, ry, rx), rc)]
        return _product(read, weight[ry, rx, rc, ff], out_dtype, [ry, rx, rc])

    return tensor((n, *window.out, o), element, name="conv2d_nhwc", tag="conv2d_nhwc")


def depthwise_conv2d_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolve each channel (n, c, h, w) with its own weights (c, m, kh, kw).

    Parameters
    ----------
    data : Tensor
        Images, of shape ``(n, c, h, w)``.
    weight : Tensor
        Weights, of shape ``(c, m, kh, kw)``.
    stride, padding, dilation, out_dtype
        As for `conv2d_nchw`.

    Returns
    -------
    Tensor
        Of shape ``(n, c * m, oh, ow)``.
    """
    n, c, h, w = data.shape
    _, many, kh, kw = weight.static_shape
    window = SlidingWindow((kh, kw), stride, padding, dilation, (h, w))
    image = window.pad(data, 2)
    ry, rx = (over(k, name=name) for k, name in ((kh, "ry"), (kw, "rx")))

    def element(nn: Any, cc: Any, yy: Any, xx: Any) -> Any:
        read = image[(nn, cc // many, *window.at(yy, xx, ry, rx))]
        return _product(read, weight[cc // many, cc % many, ry, rx], out_dtype, [ry, rx])

    shape = (n, c * many, *window.out)
    return tensor(shape, element, name="DepthwiseConv2d", tag="depthwise_conv2d_nchw")


class SlidingWindow:
    """A window that moves over the two dimensions of an image, whose extents may be symbols."""

    def __init__(
        self, kernel: Pair, stride: Any, padding: Any, dilation: Any, sizes: Sequence[Any]
    ) -> None:
        self.strides, self.dilation = pair(stride), pair(dilation)
        reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, self.dilation, strict=True))
        self.before, self.after = padding_of(padding, reach)
        self.out = tuple(
            (size + first + last - k) // step + 1
            for size, first, last, k, step in zip(
                sizes, self.before, self.after, reach, self.strides, strict=True
            )
        )
        """How many windows there are, along the height and the width."""

    def at(self, y: Any, x: Any, ry: Any, rx: Any) -> tuple[Any, Any]:
        """Return the position in the padded image of element (ry, rx) of the window at (y, x)."""
        (sy, sx), (dy, dx) = self.strides, self.dilation
        return y * sy + ry * dy, x * sx + rx * dx

    def pad(self, data: te.Tensor, first: int, value: Any = 0) -> te.Tensor:
        """Pad an image whose height is dimension `first`."""
        if not any((*self.before, *self.after)):
            return data
        rest = len(data.shape) - first - 2
        before = (*[0] * first, *self.before, *[0] * rest)
        after = (*[0] * first, *self.after, *[0] * rest)
        return pad(data, before, after, value, name="pad_temp")


def pair(value: Any) -> Pair:
    """Convert one or two numbers to a pair, for the height and the width."""
    first, second = value if isinstance(value, list | tuple) else (value, value)
    return int(first), int(second)


def padding_of(padding: Any, kernel: Any) -> tuple[Pair, Pair]:
    """Return the padding before and after the height and the width.

    Parameters
    ----------
    padding : int, sequence or str
        One number, (height, width), (top, left, bottom, right), ``"SAME"`` or ``"VALID"``.
    kernel : pair
        Extents (height, width) that a window reaches over, with its dilation.

    Notes
    -----
    ``"SAME"`` pads by ``kernel - 1``, whatever the stride, and puts the larger half first.
    **Source:** ``get_pad_tuple`` of TVM's ``topi.nn``. TensorFlow pads by less where the stride is
    more than 1, and puts the smaller half first.

    Examples
    --------
    >>> padding_of("SAME", (3, 4))
    ((1, 2), (1, 1))
    """
    match padding:
        case "VALID":
            return (0, 0), (0, 0)
        case "SAME":
            before = (int(kernel[0]) // 2, int(kernel[1]) // 2)
            return before, (int(kernel[0]) - 1 - before[0], int(kernel[1]) - 1 - before[1])
        case (top, left, bottom, right):
            return (int(top), int(left)), (int(bottom), int(right))
        case str():
            raise ExpressionError(
                "padding", "not a way to pad", got=repr(padding), expected="'SAME' or 'VALID'"
            )
        case None | (_,) | (_, _, _) | ():
            raise ExpressionError(
                "padding", "not a way to pad", got=repr(padding),
                expected="a number, (height, width), or (top, left, bottom, right)",
            )  # fmt: skip
    return pair(padding), pair(padding)


def _reduction_axes(c: Any, kh: int, kw: int) -> list[Any]:
    names = ((c, "rc"), (kh, "ry"), (kw, "rx"))
    return [over(extent, name=name) for extent, name in names]


def _product(read: Any, weight: Any, out_dtype: str | None, axes: list[Any]) -> Any:
    if out_dtype is not None:
        read, weight = read.astype(out_dtype), weight.astype(out_dtype)
    return te.sum(read * weight, axis=axes)
