"""Define convolutions of any rank, layout and number of groups by one reduction.

The operators of `dlcompiler.ops.conv2d` have other definitions, with the stages that their
schedules need. Extents of images may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.layouts import Layout, layout_of
from dlcompiler.ops.transforms import pad

_TAPS = {1: ("rx",), 2: ("ry", "rx"), 3: ("rz", "ry", "rx")}
"""Number of spatial dimensions -> names of the reduction axes of a window."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that slide over the spatial dimensions of an image; a number for each dimension.

    Examples
    --------
    >>> Windows((3, 3), strides=(2, 2), before=(1, 1), after=(1, 1), dilation=(1, 1)).out((8, 9))
    (4, 5)
    """

    kernel: tuple[int, ...]
    """Elements that a window reads."""
    strides: tuple[int, ...]
    """Distance between windows."""
    before: tuple[int, ...]
    """Padding before the image."""
    after: tuple[int, ...]
    """Padding after it."""
    dilation: tuple[int, ...]
    """Distance between the elements of a window."""

    @property
    def reach(self) -> tuple[int, ...]:
        """Extent from the first to the last element of a window."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def out(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return how many windows there are over an image of this size."""
        return tuple(
            (size + first + last - reach) // step + 1
            for size, first, last, reach, step in zip(
                sizes, self.before, self.after, self.reach, self.strides, strict=True
            )
        )

    def at(self, places: Sequence[Any], taps: Sequence[Any]) -> tuple[Any, ...]:
        """Return where an element of a window is in the padded image."""
        return tuple(
            place * step + tap * distance
            for place, step, tap, distance in zip(
                places, self.strides, taps, self.dilation, strict=True
            )
        )

    def pad(self, data: te.Tensor, where: Sequence[int], value: Any = 0) -> te.Tensor:
        """Pad an image whose spatial dimensions are at these places."""
        if not any((*self.before, *self.after)):
            return data
        before, after = [0] * len(data.shape), [0] * len(data.shape)
        for n, first, last in zip(where, self.before, self.after, strict=True):
            before[n], after[n] = first, last
        return pad(data, before, after, value, name="pad_temp")


@dataclass(frozen=True, slots=True)
class Convolution:
    """What a convolution computes, and how its operands are stored."""

    windows: Windows
    data_layout: str = "NCHW"
    """Layout of the images: N, C and the spatial dimensions."""
    kernel_layout: str = "OIHW"
    """Layout of the weights: O, I and the spatial dimensions."""
    out_layout: str = ""
    """Layout of the result; "" for that of the images."""
    groups: int = 1
    """Output channels of a group read the input channels of that group only."""
    out_dtype: str | None = None
    """Dtype to which factors are converted before the multiplication."""


def spatial_of(layout: Layout) -> str:
    """Return the letters of the spatial dimensions of a layout: ``"HW"``."""
    return "".join(sorted(set(layout.dimensions) - set("NCOIG"), key="DHW".index))


def convolve(
    data: te.Tensor, weight: te.Tensor, of: Convolution, name: str = "conv",
    axes: Sequence[str] = (),
) -> te.Tensor:  # fmt: skip
    """Define a convolution.

    Parameters
    ----------
    data : Tensor
        Images, in the layout ``of.data_layout``.
    weight : Tensor
        Weights, in ``of.kernel_layout``; input channels are those of one group.
    of : Convolution
        What is computed.
    name : str
        Of the result; also its tag.
    axes : sequence of str
        Names of the axes of the result.

    Returns
    -------
    Tensor
        In ``of.out_layout``.

    Examples
    --------
    >>> x, w = te.placeholder((1, 3, 9), name="x"), te.placeholder((4, 3, 2), name="w")
    >>> windows = Windows((2,), (1,), (0,), (0,), (1,))
    >>> convolve(x, w, Convolution(windows, "NCW", "OIW"))
    Tensor(conv: float32[1, 4, 8])
    """
    images, kernels = layout_of(of.data_layout), layout_of(of.kernel_layout)
    results = layout_of(of.out_layout or of.data_layout)
    spatial = spatial_of(images)
    sizes, weights = images.extents(data.shape), kernels.extents(weight.shape)
    channels, inner = weights["O"], weights["I"]
    if of.groups < 1 or channels % of.groups:
        raise ExpressionError(name, "the groups do not divide the channels", got=of.groups)
    if isinstance(sizes["C"], int) and sizes["C"] != inner * of.groups:
        raise ExpressionError(
            name, "the images have another number of channels than the weights",
            got=f"{sizes['C']} channels", expected=f"{inner * of.groups}",
        )  # fmt: skip
    image = of.windows.pad(data, [images.index(letter) for letter in spatial])
    rc = over(inner, "rc")
    taps = [over(k, tap) for k, tap in zip(of.windows.kernel, _TAPS[len(spatial)], strict=True)]

    def element(*places: Any) -> Any:
        at = results.element(places)
        channel = rc if of.groups == 1 else at["C"] // (channels // of.groups) * inner + rc
        read = of.windows.at([at[letter] for letter in spatial], taps)
        pixel = dict(zip(spatial, read, strict=True))
        tap = dict(zip(spatial, taps, strict=True))
        left = image[images.place({"N": at["N"], "C": channel, **pixel})]
        right = weight[kernels.place({"O": at["C"], "I": rc, **tap})]
        order = {"I": rc, **tap}
        return te.sum(
            _as(left, of.out_dtype) * _as(right, of.out_dtype),
            axis=[order[letter] for letter in kernels.dimensions if letter in order],
        )

    out = dict(zip(spatial, of.windows.out([sizes[letter] for letter in spatial]), strict=True))
    shape = results.shape({"N": sizes["N"], "C": channels, **out})
    return tensor(shape, named_axes(element, axes), name=name, tag=name)


def convolve_transposed(
    data: te.Tensor, weight: te.Tensor, of: Convolution, extra: Sequence[int],
    name: str = "conv_transpose",
) -> te.Tensor:  # fmt: skip
    """Define a transposed convolution: the gradient of a convolution for its images.

    A result looks for the elements of the images that are added to it: each place of the kernel
    has one, or none if the place is between two elements or beyond the edge.

    Parameters
    ----------
    data : Tensor
        Images, in the layout ``of.data_layout``.
    weight : Tensor
        Weights, in ``of.kernel_layout``: I are the channels of the images, O those of the result in
        one group.
    of : Convolution
        What is computed; its padding is cut off from the result.
    extra : sequence of int
        More elements behind the result in each spatial dimension.
    name : str
        Of the result; also its tag.

    Returns
    -------
    Tensor
        In ``of.out_layout``.
    """
    images, kernels = layout_of(of.data_layout), layout_of(of.kernel_layout)
    results = layout_of(of.out_layout or of.data_layout)
    spatial, windows = spatial_of(images), of.windows
    sizes, weights = images.extents(data.shape), kernels.extents(weight.shape)
    inner, outer = weights["I"] // of.groups, weights["O"]
    rc = over(inner, "rc")
    taps = [over(k, tap) for k, tap in zip(windows.kernel, _TAPS[len(spatial)], strict=True)]
    rows = list(zip(spatial, windows.strides, windows.dilation, windows.before, taps, strict=True))

    def element(*places: Any) -> Any:
        at, inside = results.element(places), []
        pixel = {"N": at["N"], "C": rc if of.groups == 1 else at["C"] // outer * inner + rc}
        for letter, step, distance, first, tap in rows:
            place = at[letter] + first - tap * distance
            inside += [place >= 0, place < (sizes[letter] - 1) * step + 1]
            inside += [te.floormod(place, step) == 0] if step > 1 else []
            pixel[letter] = te.floordiv(place, step) if step > 1 else place
        own = at["C"] if of.groups == 1 else at["C"] % outer
        right = weight[
            kernels.place({"I": pixel["C"], "O": own, **dict(zip(spatial, taps, strict=True))})
        ]
        product = _as(data[images.place(pixel)], of.out_dtype) * _as(right, of.out_dtype)
        zero = te.const(0, product.dtype)
        return te.sum(te.if_then_else(te.all(*inside), product, zero), axis=[rc, *taps])

    out = {
        letter: (sizes[letter] - 1) * step + reach - first - last + more
        for letter, step, reach, first, last, more in zip(
            spatial, windows.strides, windows.reach, windows.before, windows.after, extra,
            strict=True,
        )
    }  # fmt: skip
    shape = results.shape({"N": sizes["N"], "C": outer * of.groups, **out})
    return tensor(shape, element, name=name, tag=name)


def named_axes(element: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Give the parameters of a function of axes names; without names, return it as it is."""
    if not names:
        return element
    kind = Parameter.POSITIONAL_ONLY
    signature = Signature([Parameter(name, kind) for name in names])
    element.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return element


def _as(value: Any, dtype: str | None) -> Any:
    return value if dtype is None else value.astype(dtype)
