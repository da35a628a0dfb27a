"""Count the points of a space that the filters allow, exactly or by a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlcompiler.space.numbering import Indices

_SAMPLE = 1 << 15
_SEED = 0
_DEVIATIONS = 1.96
"""Standard deviations on each side of a normal variable that hold 95 % of it."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of points: exact, or an estimate with a 95 % confidence interval."""

    value: int
    """The number, or the best estimate of it."""
    low: int
    """The lower end of the interval."""
    high: int
    """Its upper end."""

    @property
    def is_exact(self) -> bool:
        """Whether the number is exact."""
        return self.low == self.high

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.value:,}"
        return f"about {self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def estimated(size: int, allows: Callable[[Indices], npt.NDArray[np.bool_]]) -> Count:
    """Estimate from a random sample how many points a function allows.

    Parameters
    ----------
    size : int
        Number of points.
    allows : callable
        Takes an array of points, and returns a mask of those that are allowed.

    Returns
    -------
    Count

    Notes
    -----
    **Source:** E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", Journal of the American Statistical Association 22, 1927: confidence interval of
    a proportion.

    Examples
    --------
    >>> count = estimated(1 << 30, lambda points: points % 4 == 0)
    >>> count.low < 1 << 28 < count.high, count.is_exact
    (True, False)
    """
    points = np.random.default_rng(_SEED).integers(0, size, _SAMPLE)
    share = float(np.mean(allows(points)))
    z, n = _DEVIATIONS, _SAMPLE
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    return Count(round(share * size), math.floor(low * size), math.ceil(high * size))
