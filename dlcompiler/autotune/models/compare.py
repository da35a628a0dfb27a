"""Explain why one point is predicted to be faster than another, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.models.base import CostModel


@dataclass(frozen=True, slots=True)
class Difference:
    """What one feature adds to the difference of two predictions."""

    column: str
    """Name of the feature."""
    log2: float
    """What it adds to the rate of the first point over the second [log2]; may be negative."""

    @property
    def factor(self) -> float:
        """Factor by which the feature makes the first point faster than the second."""
        return float(2.0**self.log2)


def compare_predictions(model: CostModel, a: int, b: int) -> tuple[Difference, ...]:
    """Return the part of each feature in the difference of two predictions, the largest first.

    The parts add up to the difference of the predictions, and their factors multiply to the
    predicted ratio of the rates. Features that make no difference are left out.

    Parameters
    ----------
    model : CostModel
        Fitted.
    a, b : int
        Points.
    """
    first, second = model.contributions(np.array([a, b], np.int64))
    parts = (first - second)[:-1]
    found = [
        Difference(column, float(part))
        for column, part in zip(model.columns, parts, strict=True)
        if part != 0.0
    ]
    return tuple(sorted(found, key=lambda item: (-abs(item.log2), item.column)))
