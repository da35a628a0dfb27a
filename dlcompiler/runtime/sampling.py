"""Sample the time of a call until its median is precise enough, or the time limit is reached."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from dlcompiler.runtime.timing import (
    Call,
    Timing,
    batch_size,
    measured_here,
    sample,
    undisturbed,
)

CONFIDENCE = 0.95
"""Probability with which `median_interval` covers the median."""
NOISY = 0.05
"""Half width of a median's interval, relative to the median, above which a time is unreliable."""

FAR = 2.0
"""How many times slower than the best a call must be for its precise time not to matter."""

_NEVER_COLD_S = 10e-3  # for a call of this length, filling the caches is a small part


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits on the number and the time of samples."""

    least: int = 5
    """Fewest samples; of a call that takes so long that they need eight budgets, three."""
    most: int = 100
    """Most samples."""
    floor_s: float = 0.01
    """Samples add up to this at least, within `most` [s]."""
    budget_s: float = 0.08
    """Time after which no sample begins, if there are `least` samples [s]."""
    tight: float = 0.015
    """Half width of the median's interval that is tight enough near the best, relative to the
    median."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The samples of a time, and whether its median is reliable."""

    timing: Timing
    """The samples."""
    is_noisy: bool
    """Whether the time limit was reached while the median was uncertain by more than `NOISY`."""


def sampled(
    call: Call,
    effort: Effort,
    *,
    best_s: float | None = None,
    seen_s: Sequence[float] = (),
    before: Call | None = None,
) -> Sampled:
    """Measure how long a call takes; a slow call is measured less precisely.

    Parameters
    ----------
    call : callable
        What to measure, without arguments; it was called before.
    effort : Effort
        When to end.
    best_s : float, optional
        The shortest time so far [s]. A call that is `FAR` times slower is given up after the third
        time that says so, one that is twice as far after the second.
    seen_s : sequence of float
        Times of earlier calls, which count as evidence for giving up [s].
    before : callable, optional
        Called before each sample, for example to flush the caches; a sample is then one call.

    Returns
    -------
    Sampled
    """
    far_s = math.inf if best_s is None else FAR * best_s
    samples: list[float] = []
    with undisturbed():
        size = 1 if before is not None else batch_size(call)
        start = time.perf_counter()
        while True:
            if before is not None:
                before()
            samples.append(sample(call, size) / size)
            spent = time.perf_counter() - start
            if _is_hopeless([*seen_s, *samples], far_s):
                return Sampled(_timing(samples, size), is_noisy=False)
            if _is_enough(samples, spent, effort, _needed(samples, best_s, effort)):
                break
    is_noisy = half_width(samples) > NOISY
    return Sampled(_timing(samples, size), is_noisy)


def _timing(samples: Sequence[float], size: int) -> Timing:
    return Timing(tuple(samples), batch=size, provenance=measured_here())


def tells_enough(seen_s: Sequence[float], best_s: float | None) -> bool:
    """Tell whether the first calls were so slow that no more samples are needed.

    Parameters
    ----------
    seen_s : sequence of float
        Times of the first calls [s].
    best_s : float, optional
        The shortest time so far [s].
    """
    is_long = min(seen_s) > _NEVER_COLD_S
    return best_s is not None and is_long and _is_hopeless(seen_s, FAR * best_s)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return an interval that contains the median with a probability of `CONFIDENCE`.

    Fewer than six samples are not enough for this: then it is the range of the samples.

    Notes
    -----
    **Source:** order statistics, J. D. Gibbons, S. Chakraborti, "Nonparametric Statistical
    Inference", section 5.2: the k-th smallest and the k-th largest of n enclose the median with
    probability ``1 - 2·P(Binomial(n, 1/2) < k)``, whatever the distribution is.

    Examples
    --------
    >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    (2.0, 8.0)
    """
    ordered = sorted(samples)
    k = _rank(len(ordered))
    return ordered[k - 1], ordered[-k]


def ratio_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median ratio of two calls' times, paired by round.

    Examples
    --------
    >>> ratio_interval([2.0, 4.0, 3.0], [1.0, 2.0, 2.0])
    (1.5, 2.0)
    """
    return median_interval([x / y for x, y in zip(a, b, strict=True)])


def half_width(samples: Sequence[float]) -> float:
    """Return half the width of the median's interval, relative to the median."""
    low, high = median_interval(samples)
    return (high - low) / 2 / statistics.median(samples)


@cache
def _rank(n: int) -> int:
    """Return the largest k whose interval of n samples has the required confidence, at least 1."""
    k, outside = 1, 2 * 0.5**n
    while k < n // 2:
        outside += 2 * math.comb(n, k) * 0.5**n
        if outside > 1 - CONFIDENCE:
            break
        k += 1
    return k


def _is_hopeless(times_s: Sequence[float], far_s: float) -> bool:
    """Tell whether a call is far slower than the best; one slow time alone may be noise."""
    count, least = len(times_s), min(times_s)
    return (count >= 2 and least > 2 * far_s) or (count >= 3 and least > far_s)


def _needed(samples: Sequence[float], best_s: float | None, effort: Effort) -> float:
    """Return the required half width: an eighth of the distance from the best time."""
    if best_s is None:
        return effort.tight
    distance = statistics.median(samples) / best_s - 1
    return min(max(effort.tight, distance / 8), max(effort.tight, NOISY))


def _is_enough(samples: Sequence[float], spent_s: float, effort: Effort, needed: float) -> bool:
    if len(samples) < effort.least:
        return len(samples) >= 3 and spent_s >= 8 * effort.budget_s
    if len(samples) >= effort.most or spent_s >= effort.budget_s:
        return True
    return spent_s >= effort.floor_s and half_width(samples) <= needed
