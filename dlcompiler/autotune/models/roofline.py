"""Roofline model: a kernel takes at least the time of its arithmetic and of its memory traffic."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Vector
from dlcompiler.autotune.models.labels import labels, ordered

Limits = Callable[[Indices], Vector]
"""Returns the seconds that each limit allows, shape ``(n, limits)`` [s]."""

CYCLE_S = 1 / 3e9
"""A cycle at 3 GHz [s], used until measurements set the factor."""
_LEAST_S = 1e-12
_CYCLES = re.compile(r"program\.(?P<limit>.+) cycles")


class RooflineModel:
    """Predicts the time of the tightest limit: arithmetic, or one level of memory.

    It ranks without measurements. Measurements set one factor for all points, since the limits
    ignore latencies, loop overhead and tails, which make real kernels slower.

    Parameters
    ----------
    names : sequence of str
        Names of the limits: ``arithmetic``, ``L1``, ``L2``, ….
    limits : callable
        Returns the time of each limit for given points [s].

    Notes
    -----
    **Source:** S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
    model for multicore architectures", CACM 52, 2009; a roof for each level of memory: A. Ilic,
    F. Pratas, L. Sousa, "Cache-aware roofline model", 2014.
    """

    name = "roofline"
    """Its name in the registry of models."""

    def __init__(self, names: Sequence[str], limits: Limits) -> None:
        self.columns = tuple(names)
        """The limits."""
        self._limits = limits
        self._factor = 0.0
        self._error = 0.0
        self._binding: Mapping[str, float] = dict.fromkeys(self.columns, 0.0)

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Set the factor between roofline and measurement to the median over the points."""
        chosen, known = ordered(points, rates)
        timed = np.array([rate is not None for rate in known], np.bool_)
        if not timed.any():
            return
        measured = labels(known)[timed]
        seconds = self._seconds(chosen[timed])
        apart = measured + np.log2(seconds.max(axis=1))
        self._factor = float(np.median(apart))
        self._error = float(np.std(apart))
        counts = np.bincount(seconds.argmax(axis=1), minlength=len(self.columns))
        shares = counts / counts.sum()
        self._binding = dict(zip(self.columns, map(float, shares), strict=True))

    def predict(self, points: Indices) -> Vector:
        """Predict log2 of the calls per second of each point."""
        predicted: Vector = self._factor - np.log2(self._seconds(points).max(axis=1))
        return predicted

    def spread(self, points: Indices) -> Vector:
        """Return the standard deviation of the errors at the measured points [log2]."""
        return np.full(len(points), self._error)

    def importance(self) -> Mapping[str, float]:
        """Return the share of the measured points at which each limit is the tightest."""
        return self._binding

    def contributions(self, points: Indices) -> Vector:
        """Return what each limit adds to each prediction [log2].

        The first limit gets the difference to a time of one second. Each further limit gets what
        it adds to the time of those before it: nothing, unless it is tighter.
        """
        rising = np.maximum.accumulate(self._seconds(points), axis=1)
        steps = -np.diff(np.log2(rising), axis=1, prepend=0.0)
        return np.concatenate([steps, np.full((len(rising), 1), self._factor)], axis=1)

    def _seconds(self, points: Indices) -> Vector:
        seconds: Vector = np.maximum(np.asarray(self._limits(points), np.float64), _LEAST_S)
        return seconds


def limits_of(features: FeatureSource, rates: Mapping[str, float]) -> Limits:
    """Return the time limits of columns that count operations, bytes or cycles of a call.

    Parameters
    ----------
    features : FeatureSource
        Its columns named in `rates` count operations, bytes or cycles, as ``log2(1 + count)``.
    rates : mapping of str to float
        For each of these columns, how many the machine does in a second [1/s].
    """
    places = [features.columns.index(name) for name in rates]
    speeds = np.array(list(rates.values()))

    def seconds(points: Indices) -> Vector:
        counts = np.exp2(np.asarray(features.rows(points)[:, places], np.float64)) - 1.0
        found: Vector = np.nan_to_num(counts, nan=0.0) / speeds
        return found

    return seconds


def roofline_of(features: FeatureSource) -> RooflineModel | None:
    """Make the model from columns with the cycles of each limit; None if there are none.

    Until measurements set the factor, a cycle counts as `CYCLE_S`.
    """
    rates = {name: 1 / CYCLE_S for name in features.columns if _CYCLES.fullmatch(name)}
    return RooflineModel(tuple(rates), limits_of(features, rates)) if rates else None
