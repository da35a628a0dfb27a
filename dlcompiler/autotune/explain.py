"""Explain a cost model: the importance of its features, and what each adds to a prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.models.base import CostModel
from dlcompiler.runtime.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Explanation:
    """What each feature adds to the prediction for one point."""

    point: int
    """Index in the space."""
    columns: tuple[str, ...]
    """Names of the features."""
    parts: tuple[float, ...]
    """What each feature adds to the prediction [log2 of calls per second]; 1 doubles the speed."""
    shared: float
    """The constant part [log2 of calls per second]; with a reference, its mean prediction."""

    @property
    def predicted_s(self) -> float:
        """Predicted seconds of a call: the sum of all parts, converted from log2 [s]."""
        return math.exp2(-(self.shared + math.fsum(self.parts)))

    @property
    def provenance(self) -> Provenance:
        """Where `predicted_s` comes from."""
        return Provenance("predicted", "the cost model")

    def against(self, other: Explanation) -> tuple[float, ...]:
        """Return how much faster each feature makes this point than another [log2]."""
        return tuple(a - b for a, b in zip(self.parts, other.parts, strict=True))


def explain(
    model: CostModel, points: Sequence[int], reference: Sequence[int] = ()
) -> tuple[Explanation, ...]:
    """Return what each feature adds to the prediction, for each point.

    Parameters
    ----------
    model
        The model.
    points
        The points to explain.
    reference
        Points to compare with: a part is then what a feature adds beyond its mean over these. A
        feature that adds the same to all of them explains nothing, however much that is.
    """
    asked = np.asarray([*points, *reference], np.int64)
    found = np.asarray(model.contributions(asked), np.float64)
    if len(reference):
        mean = found[len(points) :].mean(axis=0)
        found = found[: len(points)]
        found[:, :-1] -= mean[:-1]
        found[:, -1] += mean[:-1].sum()
    columns = tuple(model.columns)
    return tuple(
        Explanation(point, columns, tuple(map(float, row[:-1])), float(row[-1]))
        for point, row in zip(points, found, strict=True)
    )


def importances(model: CostModel) -> tuple[tuple[str, float], ...]:
    """Return (feature, importance) pairs, the most important feature first."""
    found = model.importance()
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))
