"""Rounds: batches of trials, and how well the cost model ranked them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.trial import Trial

_PART = 4


@dataclass(frozen=True, slots=True)
class Round:
    """The trials that the tuner proposed together."""

    number: int
    """Counted from 0, as `Trial.round`."""
    first: int
    """Index of its first trial."""
    count: int
    """How many points were chosen; the trials that were done, once it is complete."""
    searching_s: float
    """Time of choosing them [s]."""
    walkers: tuple[int, ...] = ()
    """Points at which the tuner's walkers were."""
    trained_on: int = 0
    """How many measured points the model could learn from; 0 without a model."""
    is_complete: bool = False
    """Whether all its trials are done."""
    correlation: float | None = None
    """Rank correlation of predicted and measured times; None: too few were predicted."""
    recall: float | None = None
    """Share of the fastest quarter that the model predicted to be in it; None: as above."""

    def completed(self, trials: Sequence[Trial]) -> Round:
        """Return the round with the number of its trials and the accuracy of predictions."""
        predicted, measured = predictions(trials)
        return replace(
            self,
            count=len(trials),
            is_complete=True,
            correlation=rank_correlation(predicted, measured),
            recall=recall(predicted, measured, max(1, math.ceil(len(predicted) / _PART))),
        )


def predictions(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    """Return predicted and measured seconds of the trials that were predicted [s].

    A trial that failed has no time: it counts as infinitely slow.
    """
    pairs = [
        (trial.predicted_s, math.inf if trial.seconds is None else trial.seconds)
        for trial in trials
        if trial.predicted_s is not None
    ]
    return [predicted for predicted, _ in pairs], [measured for _, measured in pairs]


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation; None if it is not defined.

    Equal values share the mean of their ranks.

    Parameters
    ----------
    predicted, measured : sequence of float
        Numbers in the same order; ``inf`` is the largest.

    Notes
    -----
    **Source:** C. Spearman, "The proof and measurement of association between two things", 1904:
    Pearson's correlation of the ranks.

    Examples
    --------
    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    >>> rank_correlation([1.0, 1.0], [1.0, 2.0]) is None
    True
    """
    if len(predicted) < 2:
        return None
    first, second = (_ranks(values) - (len(values) - 1) / 2 for values in (predicted, measured))
    scale = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / scale if scale else None


def recall(predicted: Sequence[float], measured: Sequence[float], count: int) -> float | None:
    """Return the share of the `count` fastest that were predicted to be among them.

    Parameters
    ----------
    predicted, measured : sequence of float
        Seconds in the same order; ``inf`` for what failed, which is never among the fastest [s].
    count : int
        Number of the fastest.

    Returns
    -------
    float or None
        None if there are not more than `count`, or nothing has succeeded.

    Examples
    --------
    >>> recall([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0], 2)
    0.5
    """
    if len(predicted) <= count:
        return None
    fastest = [int(n) for n in np.argsort(measured, kind="stable")[:count]]
    fastest = [n for n in fastest if math.isfinite(measured[n])]
    if not fastest:
        return None
    expected = {int(n) for n in np.argsort(predicted, kind="stable")[:count]}
    return sum(n in expected for n in fastest) / len(fastest)


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the rank of each value, from 0; equal values share the mean of their ranks."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    mean: npt.NDArray[np.float64] = last - (counts - 1) / 2
    return mean[place]
