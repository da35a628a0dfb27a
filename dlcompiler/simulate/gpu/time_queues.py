"""How long warps take that share the resources of a multiprocessor.

All warps do the same. Each uses one resource after the other, and finds some of the others there.
This is a closed queueing network, whose mean values have a simple approximation.

**Source:** P. Schweitzer, "Approximate analysis of multiclass closed networks of queues", 1979;
E. Lazowska and others, "Quantitative System Performance", 1984, section 6.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_STEPS = 60
"""Halvings of the interval that has the result; [1]."""


def clocks_together(demands: Sequence[tuple[float, float]], delay: float) -> float:
    """Return the clocks after which each of some equal warps has used all that it needs.

    This is the C that solves ``C = delay + Σ d / (1 - (n - 1) · d / C)``: a warp uses a resource
    for d clocks, and the n - 1 others keep it busy for the part ``(n - 1) · d / C`` of the time.

    Parameters
    ----------
    demands
        For each resource, the clocks that a warp uses it, and how many warps share it.
    delay
        Clocks in which a warp waits for results, and nothing is in its way.

    Examples
    --------
    >>> clocks_together([(10, 1)], 90)  # alone
    100.0
    >>> clocks_together([(10, 8)], 0)  # one resource, always busy
    80.0
    >>> round(clocks_together([(10, 8)], 90))  # more than 100, since some come together
    115
    >>> round(clocks_together([(10, 64)], 90))  # nearly as many as the resource takes: 640
    642
    """
    least = max([delay + sum(d for d, _ in demands), *(d * (n - 1) for d, n in demands)])
    most = delay + sum(d * max(n, 1) for d, n in demands)
    if most <= least:
        return float(least)
    shares = [(d, d * max(n - 1, 0)) for d, n in demands]
    for _ in range(_STEPS):
        middle = (least + most) / 2
        if _needed(shares, delay, middle) > middle:
            least = middle
        else:
            most = middle
    return float(most)


def _needed(shares: Sequence[tuple[float, float]], delay: float, clocks: float) -> float:
    """Return what a warp needs if all of them go through once in some clocks.

    `shares` has for each resource the clocks that a warp uses it, and those of all others.
    """
    total = delay
    for own, others in shares:
        busy = others / clocks
        if busy >= 1:
            return math.inf
        total += own / (1 - busy)
    return total
