"""Labels of points for learning: logarithms of rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dlcompiler.autotune.models.base import Indices, Vector

FAILURE = 1.0
"""Label of a failed point below that of the slowest successful one [log2]: half as fast."""


def labels(rates: Sequence[float | None]) -> Vector:
    """Return log2 of each rate; a failed point counts as half as fast as the slowest.

    Parameters
    ----------
    rates : sequence of float or None
        Calls per second [1/s], None for a point that failed.

    Examples
    --------
    >>> labels([4.0, None, 16.0]).tolist()
    [2.0, 1.0, 4.0]
    >>> labels([None, None]).tolist()
    [-1.0, -1.0]
    """
    known = [math.log2(rate) for rate in rates if rate is not None]
    failed = min(known, default=0.0) - FAILURE
    return np.array([failed if rate is None else math.log2(rate) for rate in rates], np.float64)


def ordered(
    points: Sequence[int], rates: Sequence[float | None]
) -> tuple[Indices, list[float | None]]:
    """Return points in ascending order with their rates; a fit then does not depend on the order.

    Examples
    --------
    >>> points, rates = ordered([5, 2], [1.0, None])
    >>> points.tolist(), rates
    ([2, 5], [None, 1.0])
    """
    order = sorted(range(len(points)), key=points.__getitem__)
    return np.array([points[n] for n in order], np.int64), [rates[n] for n in order]
