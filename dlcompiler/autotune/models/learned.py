"""Cost models that learn: a learner on the features of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix, Vector
from dlcompiler.autotune.models.experience import Prior
from dlcompiler.autotune.models.labels import labels, ordered
from dlcompiler.autotune.models.learners import Learner


class LearnedModel:
    """Predicts log2 of the calls per second from features of points.

    Parameters
    ----------
    name : str
        As a user asks for it.
    features : FeatureSource
        Describes points.
    learner : Learner
        Learns what the rates have to do with the features.
    prior : Prior, optional
        What other shapes have taught: the learner then learns what it leaves over, and it counts
        the less the more points are known.
    """

    def __init__(
        self, name: str, features: FeatureSource, learner: Learner, prior: Prior | None = None
    ) -> None:
        self.name = name
        """As a user asks for it."""
        self.columns = features.columns
        """What its features are."""
        self._features = features
        self._learner = learner
        self._prior = prior
        self._weight = 1.0
        self._is_fitted = False
        self._last: tuple[Indices, Matrix] | None = None

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Learn from measured points: calls per second [1/s], None for one that failed."""
        chosen, known = ordered(points, rates)
        rows, target = self._features.rows(chosen), labels(known)
        if self._prior is not None:
            self._weight = self._prior.weight(len(chosen))
            target = target - self._weight * self._prior.predict(rows)
        self._learner.fit(rows, target)
        self._is_fitted = True

    def predict(self, points: Indices) -> Vector:
        """Return log2 of the calls per second that it expects of each point.

        Before it is fitted: of a prior, relative to the best of a shape; else 0.
        """
        rows = self._rows(points)
        predicted = self._learner.predict(rows) if self._is_fitted else np.zeros(len(rows))
        if self._prior is not None and self._weight:
            predicted = predicted + self._weight * self._prior.predict(rows)
        return predicted

    def spread(self, points: Indices) -> Vector:
        """Return the standard deviation of each prediction [log2]."""
        if not self._is_fitted:
            return np.zeros(len(points))
        return self._learner.spread(self._rows(points))

    def importance(self) -> Mapping[str, float]:
        """Return what part of its decisions each feature makes.

        They add up to 1, or are all 0 as long as nothing tells one point from another.
        """
        found = self._learner.importance() if self._is_fitted else np.zeros(len(self.columns))
        total = float(found.sum())
        shares = found / total if total else found
        return dict(zip(self.columns, map(float, shares), strict=True))

    def contributions(self, points: Indices) -> Vector:
        """Return what each feature adds to each prediction [log2].

        Shape ``(len(points), len(columns) + 1)``; the last column is what all points share, and
        each row adds up to the prediction.
        """
        rows = self._rows(points)
        parts = np.zeros((len(rows), len(self.columns) + 1))
        if self._is_fitted:
            parts = self._learner.contributions(rows)
        if self._prior is not None and self._weight:
            parts = parts + self._weight * self._prior.contributions(rows)
        return parts

    def _rows(self, points: Indices) -> Matrix:
        """Return the rows of points; the same ones again where the same points are asked for."""
        points = np.asarray(points, np.int64)
        if self._last is None or not np.array_equal(self._last[0], points):
            self._last = points.copy(), self._features.rows(points)
        return self._last[1]
