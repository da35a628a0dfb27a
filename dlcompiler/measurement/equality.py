"""Compare results with right values: integers exactly, floats within their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.dtypes import is_float
from dlcompiler.errors import InternalError

Array = npt.NDArray[Any]

_NAN_BITS = {2: 0x7FDA, 4: 0x7FD5AA5A, 8: 0x7FFD5AA55AA55A5A}
"""NaN bit patterns, by the bytes of a float, that no computation produces."""
_NUMBER = 77.0
_NO_BOOL = 0xAA
"""A byte that is neither true nor false."""
EXACT = 2.0**53
"""Whole numbers up to this are exact in float64."""


@dataclass(frozen=True)
class Differences:
    """How a result differs from the right one."""

    wrong: Array
    """Whether each element is wrong."""
    worst: float
    """The largest difference that is allowed, as a fraction of its bound; [1]."""

    @property
    def first(self) -> tuple[int, ...] | None:
        """Index of the first element that is wrong."""
        if not self.wrong.any():
            return None
        return tuple(int(i) for i in np.unravel_index(np.argmax(self.wrong), self.wrong.shape))


def error_text(worst: float) -> str:
    """Write the largest error of a right result, which is given as a fraction of its bound.

    Examples
    --------
    >>> error_text(0.088), error_text(0.0004), error_text(0.0)
    ('largest error 9 % of the tolerance', 'largest error below 1 % of the tolerance', 'no error')
    """
    if worst == 0:
        return "no error"
    percent = f"{100 * worst:.0f} %" if worst >= 0.01 else "below 1 %"
    return f"largest error {percent} of the tolerance"


def differences(got: Array, expected: Array, bound: Array | float) -> Differences:
    """Compare a result with the right one.

    Parameters
    ----------
    got : ndarray
        The result.
    expected : ndarray
        The right values: of floats in float64 or in the dtype of the result, of integers and truth
        values in that dtype, or in float64 if they are below 2**53.
    bound : ndarray or float
        How far a float may be away. Infinite or NaN where no number bounds the error: then any
        value is right, apart from NaN where only NaN is expected and the bound is NaN. Integers and
        truth values must be equal.

    Notes
    -----
    Integers are never converted to floats, where different ones above 2**53 would be equal.
    """
    if got.dtype.kind in "biu":
        wrong = as_numbers(got) != as_numbers(as_integers(expected, got.dtype))
        return Differences(np.asarray(wrong), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        values, right = got.astype(np.float64), expected.astype(np.float64)
        distance = np.abs(values - right)
        is_nan = np.isnan(right)
        same = (values == right) | (np.isnan(values) & is_nan)
        same |= np.isposinf(bound) | (np.isnan(bound) & ~is_nan)
        wrong = ~same & ~(distance <= bound)
        fraction = np.where(same, 0.0, distance / np.maximum(bound, np.finfo(np.float64).tiny))
    return Differences(np.asarray(wrong), float(fraction[~wrong].max(initial=0.0)))


def as_integers(values: Array, dtype: Any) -> Array:
    """Convert right values to integers or bools; float64 values must be exact.

    Raises
    ------
    InternalError
        If they are floats that may stand for other integers.
    """
    if values.dtype.kind in "biu":
        return values.astype(dtype, casting="same_kind")
    with np.errstate(invalid="ignore"):
        whole = values.astype(dtype)
    if not ((np.abs(values) <= EXACT) & (whole == values)).all():
        raise InternalError(
            "compare integers", "the right values are floats, which do not hold them",
            expected=f"an array of {np.dtype(dtype)}",
        )  # fmt: skip
    return whole


def as_numbers(array: Array) -> Array:
    """Return bools as bytes, which may be neither 0 nor 1; return other arrays unchanged."""
    return _bits(array) if array.dtype == np.bool_ else array


def _bits(array: Array) -> Array:
    made = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    return made.reshape(array.shape)  # of no dimensions, too


def poison_for(expected: Array, dtype: Any) -> Array:
    """Return the initial contents of an output: every element is wrong until it is written.

    Parameters
    ----------
    expected : ndarray
        The right values, as of `differences`.
    dtype : numpy dtype
        Dtype of the output.
    """
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return np.full(expected.shape, _NO_BOOL, np.uint8).view(np.bool_)
    if kind.kind in "iu":
        return np.asarray(~expected.astype(kind))
    bits = np.full(expected.shape, _NAN_BITS[kind.itemsize], f"u{kind.itemsize}")
    poison = np.where(np.isnan(expected), np.array(_NUMBER, kind), bits.view(kind))
    return np.asarray(poison).astype(kind)


def unwritten(got: Array, poison: Array) -> Array:
    """Return a mask of the elements that still have the bits of the poison."""
    return np.asarray(_bits(got) == _bits(poison))


def has_bounds(expected: Array, bound: Array, dtype: str) -> Array:
    """Return a mask of the elements for which a comparison can find an error."""
    if not is_float(dtype):
        return np.ones(expected.shape, np.bool_)
    return np.isfinite(bound) | (np.isnan(expected) & np.isnan(bound))
