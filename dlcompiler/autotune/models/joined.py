"""Join several sources of features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix


class JoinedFeatures:
    """Concatenates the columns of several sources; a name that occurs twice is used once.

    Parameters
    ----------
    sources : sequence of FeatureSource
        Each describes the same points.

    Examples
    --------
    >>> from dlcompiler.autotune.models.knobs import KnobFeatures
    >>> from dlcompiler.space import Knob, Space, Workload
    >>> knobs = KnobFeatures(Space(Workload.of("x"), [Knob("tile", (1, 3))]))
    >>> JoinedFeatures([knobs, knobs]).rows(np.array([1])).tolist()
    [[2.0]]
    """

    def __init__(self, sources: Sequence[FeatureSource]) -> None:
        self._sources = tuple(sources)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(dict.fromkeys(name for source in self._sources for name in source.columns))

    @cached_property
    def _chosen(self) -> list[list[int]]:
        """For each source, the positions of its columns whose names no earlier source has."""
        names: set[str] = set()
        chosen = []
        for source in self._sources:
            chosen.append([n for n, name in enumerate(source.columns) if name not in names])
            names.update(source.columns)
        return chosen

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``."""
        both = zip(self._sources, self._chosen, strict=True)
        parts = [source.rows(points)[:, chosen] for source, chosen in both]
        return np.concatenate([np.empty((len(points), 0), np.float32), *parts], axis=1)
