"""Features of many points, kept."""

from __future__ import annotations

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix

MOST_BYTES = 256 << 20
"""Of the rows that are kept [byte]."""


class CachedFeatures:
    """Keeps the rows of a list of points: they are computed once, at their first use.

    Parameters
    ----------
    source : FeatureSource
        What computes rows.
    points : array of int, shape (n,)
        Whose rows are kept, in ascending order. If they would take more than `MOST_BYTES`, none
        are.
    """

    def __init__(self, source: FeatureSource, points: Indices) -> None:
        self.source = source
        """What computes rows."""
        self.columns = source.columns
        """What each number is."""
        self._points = points
        self._kept: Matrix | None = None
        self.is_kept = 4 * len(points) * max(len(self.columns), 1) <= MOST_BYTES
        """Whether rows are kept; else each is computed whenever it is asked for."""

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point; those that are not kept are computed."""
        points = np.asarray(points, np.int64)
        if not self.is_kept or not len(self._points):
            return self.source.rows(points)
        if self._kept is None:
            self._kept = np.ascontiguousarray(self.source.rows(self._points), np.float32)
        if points is self._points:
            return self._kept
        places = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        found = self._kept[places]
        strange = self._points[places] != points
        if strange.any():
            found[strange] = self.source.rows(points[strange])
        return found
