"""Numbering of points: the positions of the knobs' values are digits of a mixed-radix number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import TuningError

Indices = npt.NDArray[np.int64]

_MOST_POINTS = 1 << 62
"""Most points: their numbers fit into 64 bits with room for sums."""


class Numbering:
    """Numbering of points by integers in mixed radix; the first digit is the least significant.

    Parameters
    ----------
    sizes : sequence of int
        The number of values of each digit.

    Raises
    ------
    TuningError
        If there are more than 2^62 points.

    Examples
    --------
    >>> numbering = Numbering((3, 2))
    >>> numbering.digits(np.array([0, 1, 5])).tolist()
    [[0, 0], [1, 0], [2, 1]]
    >>> numbering.points(np.array([[2, 1]])).tolist()
    [5]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.size = math.prod(sizes)
        """Number of points."""
        if self.size > _MOST_POINTS:
            raise TuningError(
                "number the points of a space", "there are too many", got=f"{self.size:.3g}",
                expected="at most 2^62", hint="offer fewer values for some knobs",
            )  # fmt: skip
        self.sizes: Indices = np.array(sizes, np.int64)
        self.places: Indices = np.array([math.prod(sizes[:n]) for n in range(len(sizes))], np.int64)
        """For each digit: how much the number of a point grows when the digit grows by 1."""

    def digits(self, points: npt.ArrayLike) -> Indices:
        """Return the digits of points, shape ``(n, digits)``."""
        numbers = np.asarray(points, np.int64).reshape(-1, 1)
        digits: Indices = numbers // self.places % self.sizes
        return digits

    def points(self, digits: npt.ArrayLike) -> Indices:
        """Return the points with given digits, shape ``(n, digits)``: the inverse of `digits`."""
        points: Indices = np.asarray(digits, np.int64) @ self.places
        return points

    def neighbours(self, point: int) -> Indices:
        """Return the points that differ in one digit, in the order of digits, then of values."""
        (own,) = self.digits([point])
        steps = [
            (np.delete(np.arange(size), digit) - digit) * place
            for size, digit, place in zip(self.sizes, own, self.places, strict=True)
        ]
        return point + np.concatenate([np.empty(0, np.int64), *steps])

    def chunks(self, length: int) -> Iterator[Indices]:
        """Yield all points in ascending order, at most `length` at once."""
        for start in range(0, self.size, length):
            yield np.arange(start, min(start + length, self.size), dtype=np.int64)
