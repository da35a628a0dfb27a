"""Project points of a space onto their first two principal components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dlcompiler.space import Space


class Projection:
    """The plane of the first two principal components of points.

    The coordinate of a knob is the position of its value among its values, from 0 to 1, so that all
    knobs have the same weight.

    Parameters
    ----------
    space : Space
        The space of the points.
    points : sequence of int
        The points whose principal components are computed.

    Notes
    -----
    **Source:** K. Pearson, "On Lines and Planes of Closest Fit to Systems of Points in Space",
    1901.
    """

    def __init__(self, space: Space, points: Sequence[int]) -> None:
        self._space = space
        self._last = np.array([max(len(knob.values) - 1, 1) for knob in space.knobs])
        rows = self._rows(points)
        self._mean = rows.mean(axis=0) if len(rows) else np.zeros(len(self._last))
        centred = rows - self._mean
        values, vectors = np.linalg.eigh(centred.T @ centred)
        order = np.argsort(-values, kind="stable")[:2]
        axes = vectors[:, order]
        # An eigenvector has either sign: choose the one that makes its largest entry positive.
        largest = np.abs(axes).argmax(axis=0) if axes.size else np.zeros(0, np.int64)
        axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
        self._axes: npt.NDArray[np.float64] = axes
        total = float(values.sum()) or 1.0
        self.shares: tuple[float, ...] = tuple(float(max(values[n], 0) / total) for n in order)
        """The share of the variance in each direction."""
        self.knobs: tuple[str, ...] = tuple(
            space.knobs[int(np.abs(axes[:, n]).argmax())].name for n in range(axes.shape[1])
        )
        """The knob with the largest weight in each direction."""

    def _rows(self, points: Sequence[int]) -> npt.NDArray[np.float64]:
        rows: npt.NDArray[np.float64] = self._space.digits(list(points)) / self._last
        return rows

    def places(self, points: Sequence[int]) -> list[tuple[float, float]]:
        """Return the coordinates of points in the plane."""
        flat = (self._rows(points) - self._mean) @ self._axes
        padded = np.pad(flat, ((0, 0), (0, max(2 - flat.shape[1], 0))))
        return [(float(x), float(y)) for x, y in padded]
