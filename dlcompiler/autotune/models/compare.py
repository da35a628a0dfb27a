"""Why one point was predicted to be faster than another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.models.base import CostModel


@dataclass(frozen=True, slots=True)
class Difference:
    """What one feature adds to the difference of two predictions."""

    column: str
    """What the feature is."""
    log2: float
    """By how much it speaks for the first point [log2 of the rate]; negative: for the second."""

    @property
    def factor(self) -> float:
        """By which factor it makes the first point faster than the second."""
        return float(2.0**self.log2)


def compare_predictions(model: CostModel, a: int, b: int) -> tuple[Difference, ...]:
    """Return what speaks for one point rather than another, the strongest first.

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
