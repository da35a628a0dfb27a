"""Statistics of repeated measurements: medians with intervals, and geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median of paired ratios."""

    median: float
    """Above 1: the second one of the pair is faster."""
    low: float
    """Lower end of the interval of `median_interval`."""
    high: float
    """Its upper end."""


def paired_ratio(seconds: Sequence[float], ours: Sequence[float]) -> Ratio:
    """Return the median of a peer's times divided by ours, round by round, with its interval.

    Examples
    --------
    >>> paired_ratio([2.0, 4.0, 3.0, 2.0, 2.0, 2.2], [1.0, 2.0, 1.5, 1.0, 1.0, 1.0])
    Ratio(median=2.0, low=2.0, high=2.2)
    """
    ratios = [a / b for a, b in zip(seconds, ours, strict=True)]
    return Ratio(statistics.median(ratios), *median_interval(ratios))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval that holds the median of the distribution with 95 % confidence.

    Notes
    -----
    Of n sorted values, the k-th smallest and the k-th largest enclose the median unless fewer than
    k values lie on one side of it, which has the probability ``2·P(Binomial(n, ½) < k)``, whatever
    the distribution. Of fewer than six values, no two are enough: the interval is then all of them.
    **Source:** H. A. David, H. N. Nagaraja, *Order Statistics*, 3rd ed., section 7.1.

    Examples
    --------
    >>> median_interval(range(1, 10))
    (2, 8)
    """
    ordered = sorted(values)
    n = len(ordered)
    rank, outside = 1, 2.0 ** (1 - n)
    while True:
        outside += 2.0 ** (1 - n) * math.comb(n, rank)
        if outside > 1 - CONFIDENCE or rank + 1 > (n + 1) // 2:
            return ordered[rank - 1], ordered[n - rank]
        rank += 1


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers.

    Examples
    --------
    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(math.fsum(map(math.log, values)) / len(values))
