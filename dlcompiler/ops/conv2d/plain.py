"""Define convolutions of any shape, to be scheduled by hand.

The names are those of ``topi``, and extents may be symbols. The operators of this package have
other definitions, with the stages that their schedules need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.convolutions import Convolution, Windows, convolve
from dlcompiler.ops.helpers import over, tensor

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
    windows = windows_of(weight.static_shape[2:], stride, padding, dilation)
    of = Convolution(windows, "NCHW", "OIHW", groups=groups, out_dtype=out_dtype)
    return convolve(data, weight, of, "conv2d_nchw", ("nn", "ff", "yy", "xx"))


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
    windows = windows_of(weight.static_shape[:2], stride, padding, dilation)
    of = Convolution(windows, "HWCN", "HWIO", out_dtype=out_dtype)
    return convolve(data, weight, of, "conv2d_hwcn", ("yy", "xx", "ff", "nn"))


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
    windows = windows_of(weight.static_shape[:2], stride, padding, dilation)
    of = Convolution(windows, "NHWC", "HWIO", out_dtype=out_dtype)
    return convolve(data, weight, of, "conv2d_nhwc", ("nn", "yy", "xx", "ff"))


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
    windows = windows_of((kh, kw), stride, padding, dilation)
    image = windows.pad(data, (2, 3))
    ry, rx = (over(k, name=name) for k, name in ((kh, "ry"), (kw, "rx")))

    def element(nn: Any, cc: Any, yy: Any, xx: Any) -> Any:
        read = image[(nn, cc // many, *windows.at((yy, xx), (ry, rx)))]
        factor = weight[cc // many, cc % many, ry, rx]
        if out_dtype is not None:
            read, factor = read.astype(out_dtype), factor.astype(out_dtype)
        return te.sum(read * factor, axis=[ry, rx])

    shape = (n, c * many, *windows.out((h, w)))
    return tensor(shape, element, name="DepthwiseConv2d", tag="depthwise_conv2d_nchw")


def windows_of(kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Windows:
    """Return windows over the height and the width; `padding` is as for `padding_of`."""
    size, distance = pair(tuple(kernel)), pair(dilation)
    reach = tuple((k - 1) * d + 1 for k, d in zip(size, distance, strict=True))
    return Windows(size, pair(stride), *padding_of(padding, reach), distance)


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
