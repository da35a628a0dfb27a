"""Learn from measurements of other shapes of an operator (transfer learning)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Matrix, Vector
from dlcompiler.autotune.models.labels import labels, ordered
from dlcompiler.autotune.models.learners import Learner
from dlcompiler.autotune.models.roofline import roofline_of

HALF_LIFE = 64
"""The weight of experience halves with each so many points of the new shape, as in AutoTVM."""
LEAST_WEIGHT = 0.05
"""Weight below which experience is ignored, as in AutoTVM."""


@dataclass(frozen=True, slots=True)
class Experience:
    """Measured points of other shapes, with the same feature columns as the new shape."""

    columns: tuple[str, ...]
    """Names of the features."""
    rows: Matrix
    """A row for each point, shape ``(n, len(columns))``; NaN: its shape has no such feature."""
    labels: Vector
    """log2 of each rate, relative to the roofline of its shape or, without a roofline, to the best
    rate of its shape. Relative rates of large and small shapes can be compared."""

    def __len__(self) -> int:
        return len(self.rows)


def experience_of(
    columns: tuple[str, ...],
    shapes: Sequence[tuple[FeatureSource, Sequence[int], Sequence[float | None]]],
) -> Experience:
    """Combine measured points of several shapes.

    Parameters
    ----------
    columns : tuple of str
        Names of the features of the shape that is tuned now. Other features are dropped.
    shapes : sequence
        For each shape: the source of its features, its points, and their rates [1/s].

    Examples
    --------
    >>> from dlcompiler.autotune.models.knobs import KnobFeatures
    >>> from dlcompiler.space import Knob, Space, Workload
    >>> small = KnobFeatures(Space(Workload.of("x", n=4), [Knob("tile", (1, 3))]))
    >>> found = experience_of(("tile", "pack"), [(small, [0, 1], [2.0, 8.0])])
    >>> found.rows.tolist(), found.labels.tolist()
    ([[1.0, nan], [2.0, nan]], [-2.0, 0.0])
    """
    parts, values = [np.empty((0, len(columns)), np.float32)], [np.empty(0)]
    for features, points, rates in shapes:
        if all(rate is None for rate in rates):
            continue
        chosen, known = ordered(points, rates)
        rows = np.full((len(chosen), len(columns)), np.nan, np.float32)
        place = {name: n for n, name in enumerate(features.columns)}
        own = features.rows(chosen)
        for n, name in enumerate(columns):
            if name in place:
                rows[:, n] = own[:, place[name]]
        found = labels(known)
        roofline = roofline_of(features)
        parts.append(rows)
        values.append(found - (found.max() if roofline is None else roofline.predict(chosen)))
    return Experience(columns, np.concatenate(parts), np.concatenate(values))


class Prior:
    """A prediction for points of a new shape, learned from other shapes.

    Parameters
    ----------
    experience : Experience
        The points of other shapes.
    make_learner : callable
        Makes the learner.

    Notes
    -----
    **Source:** AutoTVM's ``load_history``: a model of earlier records gives the first plan and, as
    a base margin discounted by 1/2^(n/64), the start of later ones.
    """

    def __init__(self, experience: Experience, make_learner: Callable[[], Learner]) -> None:
        self.experience = experience
        """The points that it was fitted to."""
        self._learner = make_learner()
        self._learner.fit(experience.rows, experience.labels)

    def weight(self, count: int) -> float:
        """Return the weight of the prior if `count` points of the new shape are measured."""
        weight = 0.5 ** (count / HALF_LIFE)
        return weight if weight >= LEAST_WEIGHT else 0.0

    def predict(self, rows: Matrix) -> Vector:
        """Return log2 of the expected rate over the roofline, or over the best of the shape."""
        return self._learner.predict(rows)

    def contributions(self, rows: Matrix) -> Vector:
        """Return what each column adds to each prediction; the last column is the constant part."""
        return self._learner.contributions(rows)
