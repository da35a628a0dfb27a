"""Spaces laid flat: the two directions in which points of a space differ most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dlcompiler.space import Space


class Projection:
    """Places of points in the plane of the first two principal components.

    A knob counts by the position of its value among its values, from 0 to 1, so that each weighs
    the same however its values are written.

    Parameters
    ----------
    space : Space
        What is laid flat.
    points : sequence of int
        Points that say in which directions the space is wide.

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
        # A direction has two signs: the one whose largest entry is positive is taken.
        largest = np.abs(axes).argmax(axis=0) if axes.size else np.zeros(0, np.int64)
        axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
        self._axes: npt.NDArray[np.float64] = axes
        total = float(values.sum()) or 1.0
        self.shares: tuple[float, ...] = tuple(float(max(values[n], 0) / total) for n in order)
        """What part of the differences each direction shows."""
        self.knobs: tuple[str, ...] = tuple(
            space.knobs[int(np.abs(axes[:, n]).argmax())].name for n in range(axes.shape[1])
        )
        """The knob that weighs most in each direction."""

    def _rows(self, points: Sequence[int]) -> npt.NDArray[np.float64]:
        rows: npt.NDArray[np.float64] = self._space.digits(list(points)) / self._last
        return rows

    def places(self, points: Sequence[int]) -> list[tuple[float, float]]:
        """Return where points are in the plane."""
        flat = (self._rows(points) - self._mean) @ self._axes
        padded = np.pad(flat, ((0, 0), (0, max(2 - flat.shape[1], 0))))
        return [(float(x), float(y)) for x, y in padded]
