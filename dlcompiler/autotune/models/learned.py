"""Cost models that are fitted to measurements: a learner on the features of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix, Vector
from dlcompiler.autotune.models.experience import Prior
from dlcompiler.autotune.models.labels import labels, ordered
from dlcompiler.autotune.models.learners import Learner
from dlcompiler.autotune.models.roofline import RooflineModel

_HELD = 4.0
"""Weight, in points, of the assumption that rates follow the analytic model."""


class LearnedModel:
    """Predicts log2 of the calls per second from features of points.

    Parameters
    ----------
    name : str
        Its name in the registry of models.
    features : FeatureSource
        Describes points.
    learner : Learner
        Fits the rates as a function of the features.
    prior : Prior, optional
        A prediction fitted to other shapes. The learner is then fitted to its residual; its
        weight decreases as more points are known.
    base : RooflineModel, optional
        An analytic model. The learner is then fitted to the rate relative to the model's limit.
    """

    def __init__(
        self,
        name: str,
        features: FeatureSource,
        learner: Learner,
        prior: Prior | None = None,
        base: RooflineModel | None = None,
    ) -> None:
        self.name = name
        """Its name in the registry of models."""
        limits = base.columns if base is not None else ()
        self.columns = (*features.columns, *(f"roofline: {name}" for name in limits))
        """Names of its features, then those of the limits of the analytic model."""
        self._base = base
        self._features = features
        self._learner = learner
        self._prior = prior
        self._weight = 1.0
        self._slope = 1.0
        self._is_fitted = False
        self._last: tuple[Indices, Matrix] | None = None

    @property
    def knows(self) -> bool:
        """Whether the model can rank points before it is fitted."""
        return self._base is not None or self._prior is not None

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Fit to points and their rates: calls per second [1/s], None for a point that failed."""
        chosen, known = ordered(points, rates)
        rows, target = self._features.rows(chosen), labels(known)
        if self._base is not None:
            allowed = self._base.predict(chosen)
            self._slope = _slope(allowed, target)
            target = target - self._slope * allowed
        if self._prior is not None:
            self._weight = self._prior.weight(len(chosen))
            target = target - self._weight * self._prior.predict(rows)
        self._learner.fit(rows, target)
        self._is_fitted = True

    def predict(self, points: Indices) -> Vector:
        """Predict log2 of the calls per second of each point.

        Before it is fitted, the prediction is that of the prior (relative to the best of a shape)
        or the limit of the analytic model; without either, it is 0.
        """
        rows = self._rows(points)
        predicted = self._learner.predict(rows) if self._is_fitted else np.zeros(len(rows))
        if self._base is not None:
            predicted = predicted + self._slope * self._base.predict(points)
        if self._prior is not None and self._weight:
            predicted = predicted + self._weight * self._prior.predict(rows)
        return predicted

    def spread(self, points: Indices) -> Vector:
        """Return the standard deviation of each prediction [log2]."""
        if not self._is_fitted:
            return np.zeros(len(points))
        return self._learner.spread(self._rows(points))

    def importance(self) -> Mapping[str, float]:
        """Return the importance of each feature in the fitted model.

        They add up to 1, or are all 0 if the model predicts the same for all points.
        """
        found = np.zeros(len(self.columns))
        if self._is_fitted:
            own = self._learner.importance()
            found[: len(own)] = own
        total = float(found.sum())
        shares = found / total if total else found
        return dict(zip(self.columns, map(float, shares), strict=True))

    def contributions(self, points: Indices) -> Vector:
        """Return what each feature adds to each prediction [log2].

        Shape ``(len(points), len(columns) + 1)``; the last column is the constant part, and
        each row adds up to the prediction.
        """
        rows = self._rows(points)
        learned = np.zeros((len(rows), len(self._features.columns) + 1))
        if self._is_fitted:
            learned = self._learner.contributions(rows)
        if self._prior is not None and self._weight:
            learned = learned + self._weight * self._prior.contributions(rows)
        if self._base is None:
            return learned
        analytic = self._slope * self._base.contributions(points)
        shared = learned[:, -1:] + analytic[:, -1:]
        return np.concatenate([learned[:, :-1], analytic[:, :-1], shared], axis=1)

    def _rows(self, points: Indices) -> Matrix:
        """Return the rows of points; the rows of the last call are cached."""
        points = np.asarray(points, np.int64)
        if self._last is None or not np.array_equal(self._last[0], points):
            self._last = points.copy(), self._features.rows(points)
        return self._last[1]


def _slope(allowed: Vector, measured: Vector) -> float:
    """Return the slope of the fitted line from predictions to labels, shrunk toward 1.

    A slope below 1 scales down an analytic model that exaggerates differences.
    """
    x, y = allowed - allowed.mean(), measured - measured.mean()
    held = _HELD * float(np.mean(x * x)) + 1e-9
    return float((x @ y + held) / (x @ x + held))
