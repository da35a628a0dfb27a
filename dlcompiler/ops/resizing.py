"""Define images of another size, by nearest neighbours, linear or cubic interpolation.

Positions are rational numbers, computed exactly with integers: a result at place x of a dimension
reads at ``(a·x + b) / d``. So a position never falls on the wrong side of an element by rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import ExpressionError
from dlcompiler.ops.helpers import INJECTIVE, tensor
from dlcompiler.te import Tensor

MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
    "half_pixel_symmetric", "tf_crop_and_resize",
)  # fmt: skip
"""How places of the result become positions in the image."""
METHODS = ("nearest_neighbor", "linear", "cubic")
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
"""How a position becomes an element, of the nearest neighbour."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the results along a dimension read: at ``(factor·x + offset) / divisor``."""

    size: int
    """Extent of the image."""
    factor: int
    offset: int
    divisor: int

    @staticmethod
    def of(
        size: int, out: int, mode: str, scale: float | None = None,
        region: tuple[float, float] = (0.0, 1.0),
    ) -> Positions:  # fmt: skip
        """Return the positions of a dimension.

        Parameters
        ----------
        size, out : int
            Extents of the image and of the result.
        mode : str
            One of `MODES`.
        scale : float, optional
            Extent of the result, divided by that of the image, if it is not ``out / size``.
        region : tuple of float
            Of ``tf_crop_and_resize``: the part of the image, from 0 to 1.

        Examples
        --------
        >>> Positions.of(4, 8, "half_pixel")
        Positions(size=4, factor=2, offset=-1, divisor=4)
        """
        # Of float32, as in model files: larger fractions could leave 64 bits.
        ratio = Fraction(size, max(out, 1)) if scale is None else 1 / _fraction(scale)
        start, slope = _line(size, out, mode, ratio, region)
        divisor = start.denominator * slope.denominator // _common(start, slope)
        return Positions(size, int(slope * divisor), int(start * divisor), divisor)

    def at(self, x: Any) -> Any:
        """Return the position of a result, times the divisor."""
        return x * self.factor + self.offset

    @property
    def is_whole(self) -> bool:
        """Tell whether each position is that of an element.

        Examples
        --------
        >>> Positions.of(8, 8, "half_pixel").is_whole, Positions.of(8, 4, "half_pixel").is_whole
        (True, False)
        """
        return not self.factor % self.divisor and not self.offset % self.divisor

    def position(self, x: int) -> Fraction:
        """Return the position of a result."""
        return Fraction(x * self.factor + self.offset, self.divisor)


def _fraction(value: float) -> Fraction:
    return Fraction(float(np.float32(value)))


def _common(a: Fraction, b: Fraction) -> int:
    x, y = a.denominator, b.denominator
    while y:
        x, y = y, x % y
    return x


def _line(
    size: int, out: int, mode: str, ratio: Fraction, region: tuple[float, float]
) -> tuple[Fraction, Fraction]:
    """Return the position of the first result, and the distance of positions."""
    half = Fraction(1, 2)
    match mode:
        case "align_corners":
            resized = size / ratio
            slope = (size - 1) / (resized - 1) if out > 1 and resized > 1 else Fraction(0)
            return Fraction(0), slope
        case "asymmetric":
            return Fraction(0), ratio
        case "tf_half_pixel_for_nn":
            return half * ratio, ratio
        case "pytorch_half_pixel" if out <= 1:
            return Fraction(0), Fraction(0)
        case "half_pixel_symmetric":  # the middles of image and result coincide
            return (size - out * ratio) / 2 + half * ratio - half, ratio
        case "tf_crop_and_resize":
            first, last = map(_fraction, region)
            if out > 1:
                return first * (size - 1), (last - first) * Fraction(size - 1, out - 1)
            return (first + last) / 2 * (size - 1), Fraction(0)
    return half * ratio - half, ratio


@dataclass(frozen=True, slots=True)
class Resize:
    """What is computed from the image."""

    method: str
    """One of `METHODS`."""
    rounding: str = ""
    """One of `ROUNDINGS`; "": downward."""
    alpha: float = -0.5
    """Of ``cubic``: the slope of the kernel."""
    excludes: bool = False
    """Of ``cubic``: weights outside the image are 0, and the others add up to 1."""
    outside: float | None = None
    """Value of results whose position is outside the image; None: that of the nearest element."""


def resize(
    data: Tensor, dims: Sequence[int], out: Sequence[int], positions: Sequence[Positions],
    of: Resize, dtype: str, name: str = "T_resize", tag: str = INJECTIVE,
) -> Tensor:  # fmt: skip
    """Define an image of another size.

    Parameters
    ----------
    data : Tensor
        The image.
    dims : sequence of int
        Its spatial dimensions.
    out : sequence of int
        Their extents in the result.
    positions : sequence of Positions
        Where they read.
    of : Resize
        What is computed.
    dtype : str
        Dtype of the result; of ``linear`` and ``cubic`` also that of the computation.
    name, tag : str
        Of the result.
    """
    shape = list(data.shape)
    for n, extent in zip(dims, out, strict=True):
        shape[n] = extent

    def element(*i: Any) -> Any:
        taps = [_taps(i[n], line, of, dtype) for n, line in zip(dims, positions, strict=True)]
        total: Any = None
        for chosen in itertools.product(*taps):
            places, weight = list(i), None
            for n, (place, factor) in zip(dims, chosen, strict=True):
                places[n] = place
                if factor is not None:
                    weight = factor if weight is None else weight * factor
            read = _as(data[tuple(places)], dtype)
            term = read if weight is None else read * weight
            total = term if total is None else total + term
        return _inside(total, [i[n] for n in dims], positions, of)

    return tensor(shape, element, name, tag)


def _inside(total: Any, places: Sequence[Any], positions: Sequence[Positions], of: Resize) -> Any:
    """Replace the results whose position is outside the image."""
    if of.outside is None:
        return total
    tests = []
    for place, line in zip(places, positions, strict=True):
        tests += [line.at(place) >= 0, line.at(place) <= (line.size - 1) * line.divisor]
    return te.select(te.all(*tests), total, te.const(of.outside, "float64").astype(total.dtype))


def _taps(x: Any, line: Positions, of: Resize, dtype: str) -> list[tuple[Any, Any]]:
    """Return the elements of a dimension that a result reads, with their weights."""
    at, d, last = line.at(x), line.divisor, line.size - 1

    def place(index: Any) -> Any:
        return te.minimum(te.maximum(index, 0), last)

    if of.method == "nearest_neighbor":
        return [(place(_rounded(at, d, of.rounding)), None)]
    if line.is_whole:
        return [(place(x * (line.factor // d) + line.offset // d), None)]
    first = te.floordiv(at, d)
    # Sixteen bits hold few integers: the fraction is computed with more.
    own = dtype if dtypes.bytes_of(dtype) > 2 else "float32"
    fraction = (at - first * d).astype(own) / te.const(d, own)
    if of.method == "linear":
        weights = [te.const(1, own) - fraction, fraction]
        return [(place(first + n), _as(w, dtype)) for n, w in enumerate(weights)]
    weights = [_cubic(te.const(1 - n, own) + fraction if n < 2 else te.const(n - 1, own) - fraction,
                      of.alpha, is_near=n in (1, 2)) for n in range(4)]  # fmt: skip
    if of.excludes:
        zero = te.const(0, own)
        weights = [
            te.select(te.all(first + n >= 1, first + n <= last + 1), w, zero)
            for n, w in enumerate(weights)
        ]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    return [(place(first + n - 1), _as(w, dtype)) for n, w in enumerate(weights)]


def _as(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def _rounded(at: Any, divisor: int, rounding: str) -> Any:
    """Return ``at / divisor``, rounded to an integer."""
    match rounding:
        case "" | "floor":
            return te.floordiv(at, divisor)
        case "ceil":
            return te.floordiv(at + divisor - 1, divisor)
        case "round_prefer_floor":
            return te.floordiv(2 * at + divisor - 1, 2 * divisor)
        case "round" | "round_prefer_ceil":
            return te.floordiv(2 * at + divisor, 2 * divisor)
    raise ExpressionError("resize", "no such rounding", got=repr(rounding))


def _cubic(distance: Any, alpha: float, *, is_near: bool) -> Any:
    """Return the weight of an element at a distance of less than 1, or of 1 to 2.

    **Source:** R. Keys, "Cubic convolution interpolation for digital image processing", IEEE
    Transactions on Acoustics, Speech, and Signal Processing 29(6), 1981, equation 15.
    """

    def number(value: float) -> Any:
        return te.const(value, distance.dtype)

    if is_near:
        inner = (number(alpha + 2) * distance - number(alpha + 3)) * distance
        return inner * distance + number(1)
    inner = (number(alpha) * distance - number(5 * alpha)) * distance + number(8 * alpha)
    return inner * distance - number(4 * alpha)
