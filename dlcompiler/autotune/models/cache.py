"""Cache the features of many points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix

MOST_BYTES = 256 << 20
"""Largest size of the cached rows [byte]."""


class CachedFeatures:
    """Caches the rows of a list of points: they are computed once, at their first use.

    Parameters
    ----------
    source : FeatureSource
        The source that computes rows.
    listed : callable
        Returns the points whose rows are kept, in ascending order; None: there is no list. If the
        rows would take more than `MOST_BYTES`, none are kept.
    """

    def __init__(self, source: FeatureSource, listed: Callable[[], Indices | None]) -> None:
        self.source = source
        """The source that computes rows."""
        self._listed = listed
        self._points: Indices | None = None
        self._kept: Matrix | None = None
        self._is_asked = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.source.columns

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point; rows that are not cached are computed."""
        points = np.asarray(points, np.int64)
        self._keep()
        if self._points is None or self._kept is None:
            return self.source.rows(points)
        if points is self._points:
            return self._kept
        places = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        found = self._kept[places]
        strange = self._points[places] != points
        if strange.any():
            found[strange] = self.source.rows(points[strange])
        return found

    def _keep(self) -> None:
        if self._is_asked:
            return
        self._is_asked = True
        points = self._listed()
        width = 4 * max(len(self.columns), 1)
        if points is not None and 0 < width * len(points) <= MOST_BYTES:
            self._points = points
            self._kept = np.ascontiguousarray(self.source.rows(points), np.float32)
