"""Protocols of cost models and of the sources of their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]
Vector: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]


class FeatureSource(Protocol):
    """Describes points of a space by numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: absent."""


class CostModel(Protocol):
    """Predicts the speed of points of a space."""

    name: str
    """Its name in the registry of models."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its features."""

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Fit to points and their rates: calls per second [1/s], None for a point that failed."""

    def predict(self, points: Indices) -> Vector:
        """Predict log2 of the calls per second of each point."""

    def spread(self, points: Indices) -> Vector:
        """Return the standard deviation of each prediction among its models [log2]."""

    def importance(self) -> Mapping[str, float]:
        """Return the importance of each feature; they add up to 1."""

    def contributions(self, points: Indices) -> Vector:
        """Return what each feature adds to each prediction [log2].

        Shape ``(len(points), len(columns) + 1)``; the last column is the constant part, and
        each row adds up to the prediction.
        """
