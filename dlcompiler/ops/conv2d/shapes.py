"""The windows, workload parameters and NumPy reference that all convolutions share.

A convolution reads images (n, c, h, w) and weights (o, c / groups, kh, kw), and gives
``out[n, o, y, x] = sum over i, p, q of image[n, i, y*stride + p*dilation - before, …] * weight[o,
i, p, q]``, where the image counts as 0 outside its edges. As usual in deep learning, the kernel is
not flipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.errors import TuningError
from dlcompiler.ops import widening
from dlcompiler.ops.base import Reference
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.rounding import Array, Wide, rounded, sum_bound
from dlcompiler.ops.shapes import checked_dtype
from dlcompiler.space import Workload

FLOATS = ("float32", "float64")
MAX_EXTENT = 1 << 20
MAX_PADDING = 1 << 16

Pair: TypeAlias = tuple[int, int]
Sizes: TypeAlias = int | tuple[int, int]
Padding: TypeAlias = int | tuple[int, int] | tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A window that slides along one dimension of an image.

    Examples
    --------
    >>> Window(size=224, kernel=7, stride=2, before=3, after=3).out
    112
    >>> Window(size=5, kernel=3, before=-1, after=-1).out, Window(size=2, kernel=3).out
    (1, 0)
    """

    size: int
    """Extent of the image."""
    kernel: int
    """Number of elements that a window reads."""
    stride: int = 1
    """Distance between two windows."""
    before: int = 0
    """Zeros before the image; a negative number removes elements."""
    after: int = 0
    """Zeros after the image; a negative number removes elements."""
    dilation: int = 1
    """Distance between the elements of the kernel."""

    @property
    def reach(self) -> int:
        """Extent from the first to the last element of the kernel."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def out(self) -> int:
        """Number of windows; 0 if the kernel is larger than the padded image."""
        room = self.size + self.before + self.after - self.reach
        return room // self.stride + 1 if room >= 0 else 0

    @property
    def span(self) -> int:
        """Extent of the padded image up to the last element that a window reads."""
        return (self.out - 1) * self.stride + self.reach if self.out else 0

    @property
    def is_inside(self) -> bool:
        """Tell whether all windows lie inside the image."""
        return self.before <= 0 and self.span - self.before <= self.size


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a convolution: all its parameters except the layout."""

    n: int
    """Number of images."""
    c: int
    """Input channels."""
    o: int
    """Output channels."""
    rows: Window
    """The window along the height."""
    columns: Window
    """The window along the width."""
    groups: int
    """Output channels of a group read the input channels of that group only."""
    dtype: str
    """Dtype of images and weights."""
    epilogue: str = ""
    """See `dlcompiler.ops.epilogues`."""
    zero_point: int = 0
    """What images of int8 hold in place of 0: it is subtracted from each element."""

    @property
    def sums_dtype(self) -> str:
        """Dtype of the sums and of the epilogue's operands."""
        return widening.sums_dtype(self.dtype)

    @property
    def result_dtype(self) -> str:
        """Dtype of the result."""
        return widening.result_dtype(self.dtype)

    @property
    def image(self) -> tuple[int, int, int, int]:
        """Shape of the images: ``(n, c, h, w)``."""
        return self.n, self.c, self.rows.size, self.columns.size

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """Shape of the weights: ``(o, c / groups, kh, kw)``."""
        return self.o, self.c // self.groups, self.rows.kernel, self.columns.kernel

    @property
    def result(self) -> tuple[int, int, int, int]:
        """Shape of the result: ``(n, o, oh, ow)``."""
        return self.n, self.o, self.rows.out, self.columns.out

    @property
    def terms(self) -> int:
        """Number of products that are summed for one element of the result."""
        return self.c // self.groups * self.rows.kernel * self.columns.kernel

    @property
    def is_copied(self) -> bool:
        """Tell whether images are first copied, to pad them or to convert their dtype."""
        is_inside = self.rows.is_inside and self.columns.is_inside
        return not is_inside or self.dtype != self.sums_dtype

    @property
    def reads_in_place(self) -> bool:
        """Tell whether the image itself is the matrix of columns, so that nothing is copied.

        The number of pixels must also be a multiple of 16, so that they fill whole vectors.
        """
        return self.rows.out * self.columns.out % 16 == 0 and all(
            window.kernel == window.stride == 1 and not window.before and window.out == window.size
            for window in (self.rows, self.columns)
        )

    @property
    def flops(self) -> int:
        """Number of multiplications and additions [FLOP]."""
        return 2 * self.n * self.o * self.rows.out * self.columns.out * self.terms


def workload(
    op: str,
    /,
    *,
    c: int,
    h: int,
    w: int,
    o: int,
    kernel: Sizes,
    n: int = 1,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    dtype: str = "float32",
    epilogue: str = "",
    allowed: Sequence[str] = FLOATS,
    **others: int | str,
) -> Workload:
    """Return the workload of a convolution.

    Parameters
    ----------
    op : str
        Name of the operator.
    n, c, h, w : int
        Shape of the images.
    o : int
        Output channels.
    kernel, stride, dilation : int or tuple of int
        One number, or (height, width).
    padding : int or tuple of int
        One number, (height, width), or (top, left, bottom, right); negative numbers cut.
    groups : int
        Divides the input channels and the output channels.
    dtype : str
        Of images and weights; the result is of the same, and of int8 int32. The operands of the
        epilogue are of the sums' dtype: see `dlcompiler.ops.widening`.
    epilogue : str
        See `dlcompiler.ops.epilogues`.
    allowed : sequence of str
        The dtypes that the operator takes.
    **others
        Further parameters of the operator, which follow.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    kernel_h, kernel_w = _pair(op, "kernel", kernel)
    stride_h, stride_w = _pair(op, "stride", stride)
    dilation_h, dilation_w = _pair(op, "dilation", dilation)
    top, left, bottom, right = _padding(op, padding)
    for name, extent in (("n", n), ("c", c), ("h", h), ("w", w), ("o", o)):
        _require(op, name, extent, 0, MAX_EXTENT)
    _require(op, "groups", groups, 1, MAX_EXTENT)
    if c % groups or o % groups:
        raise TuningError(
            op, "the groups do not divide the channels", got=f"c={c}, o={o}, groups={groups}"
        )
    checked_dtype(dtype, allowed, op)
    Epilogue.check(epilogue, dtype, op)
    return Workload.of(
        op, n=n, c=c, h=h, w=w, o=o, kernel_h=kernel_h, kernel_w=kernel_w,
        stride_h=stride_h, stride_w=stride_w, pad_top=top, pad_left=left, pad_bottom=bottom,
        pad_right=right, dilation_h=dilation_h, dilation_w=dilation_w, groups=groups,
        dtype=dtype, epilogue=epilogue, **others,
    )  # fmt: skip


def shape_of(workload: Workload) -> Shape:
    """Return the shape of a workload."""
    p: Mapping[str, Any] = workload.as_dict()
    rows, columns = (
        Window(p[size], p[f"kernel_{d}"], p[f"stride_{d}"], p[first], p[last], p[f"dilation_{d}"])
        for size, d, first, last in (
            ("h", "h", "pad_top", "pad_bottom"),
            ("w", "w", "pad_left", "pad_right"),
        )
    )
    return Shape(
        p["n"], p["c"], p["o"], rows, columns, p["groups"], p["dtype"], p.get("epilogue", ""),
        p.get("zero_point", 0),
    )  # fmt: skip


def weight_dtype_of(workload: Workload) -> str:
    """Return the dtype that weights are stored in."""
    p: Mapping[str, Any] = workload.as_dict()
    return str(p.get("weight_dtype", p["dtype"]))


def _pair(op: str, name: str, value: Any) -> Pair:
    first, second = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    for number in (first, second):
        _require(op, name, number, 1, MAX_EXTENT)
    return first, second


def _padding(op: str, value: Any) -> tuple[int, int, int, int]:
    match value:
        case (height, width):
            sides = (height, width, height, width)
        case (top, left, bottom, right):
            sides = (top, left, bottom, right)
        case _:
            sides = (value, value, value, value)
    for number in sides:
        _require(op, "padding", number, -MAX_PADDING, MAX_PADDING)
    return sides


def _require(op: str, name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        problem = "out of range" if type(value) is int else "not an int"
        expected = f"an int from {least} to {most}"
        raise TuningError(op, f"{name} is {problem}", got=repr(value), expected=expected)


def refused(op: str, name: str, value: Any, expected: str) -> TuningError:
    """Return the error for a parameter value that is not among its choices."""
    return TuningError(op, f"{name} is not one of the choices", got=repr(value), expected=expected)


def inside(window: Window, index: Any, end: int | None = None) -> list[Any]:
    """Return the conditions for an index to be inside the image, without those that always hold.

    Parameters
    ----------
    window : Window
        The window that reads.
    index : Expr
        Where, counted from the first element of the image.
    end : int, optional
        Upper end of the index, if more is read than the window needs.
    """
    end = window.span - window.before if end is None else end
    found = [index >= 0] if window.before > 0 else []
    return found + ([index < window.size] if end > window.size else [])


# -- the reference ------------------------------------------------------------------------------


def reference(
    workload: Workload, seed: int, *, factor: float = 1.0, result: str = "result"
) -> Reference:
    """Return random inputs, the expected result, and its error bound.

    Parameters
    ----------
    workload : Workload
        Of `workload`.
    seed : int
        Of the inputs: ``data``, ``weight``, and the operands of the epilogue.
    factor : float
        Factor on the error bound of a plain sum, for less accurate algorithms.
    result : str
        Name of the output.

    Returns
    -------
    Reference
        All in NCHW and OIHW.
    """
    shape = shape_of(workload)
    generator = np.random.default_rng(seed)
    data = widening.drawn(shape.image, shape.dtype, generator)
    weight = widening.drawn(shape.weight, weight_dtype_of(workload), generator)
    epilogue = Epilogue.read(shape.epilogue, channel=1)
    operands = epilogue.inputs(shape.result, shape.sums_dtype, generator)
    centred = data.astype(np.float64) - shape.zero_point
    exact = convolve(shape, centred, weight)
    magnitude = convolve(shape, np.abs(centred), np.abs(weight))
    bound = factor * sum_bound(magnitude, shape.terms, shape.sums_dtype)
    expected, bound = epilogue.reference(exact, bound, operands, shape.sums_dtype)
    if shape.result_dtype != shape.sums_dtype:
        bound = rounded(expected, bound, shape.result_dtype)
    inputs = {"data": data, "weight": weight, **operands}
    return Reference(inputs, {result: expected}, {result: bound}, plain=inputs)


def convolve(shape: Shape, data: Array, weight: Array) -> Wide:
    """Convolve images (n, c, h, w) with weights (o, c / groups, kh, kw) in float64.

    Returns
    -------
    array
        Of the shape ``(n, o, oh, ow)``.
    """
    rows, columns, groups = shape.rows, shape.columns, shape.groups
    image = framed(shape, data.astype(np.float64))
    image = image.reshape(shape.n, groups, shape.c // groups, *image.shape[2:])
    filters = weight.astype(np.float64).reshape(groups, shape.o // groups, *shape.weight[1:])
    sums = np.zeros((shape.n, groups, shape.o // groups, rows.out * columns.out))
    for p, q in np.ndindex(rows.kernel, columns.kernel):
        seen = image[
            ...,
            p * rows.dilation :: rows.stride,
            q * columns.dilation :: columns.stride,
        ][..., : rows.out, : columns.out]
        sums += filters[..., p, q] @ seen.reshape(*seen.shape[:3], rows.out * columns.out)
    return sums.reshape(shape.result)


def framed(shape: Shape, data: Array) -> Array:
    """Return images (…, h, w) with their padding; negative padding removes elements."""
    result = data
    for dimension, window in ((-2, shape.rows), (-1, shape.columns)):
        border = [(0, 0)] * result.ndim
        border[dimension] = (max(window.before, 0), max(window.after, 0))
        result = np.pad(result, border)
        first = max(-window.before, 0)
        kept = max(window.size + window.before + window.after, 0)
        cut: list[Any] = [slice(None)] * result.ndim
        cut[dimension] = slice(first, first + kept)
        result = result[tuple(cut)]
    return result
