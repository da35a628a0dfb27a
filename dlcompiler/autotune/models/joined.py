"""Several sources of features as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlcompiler.autotune.models.base import FeatureSource, Indices, Matrix


class JoinedFeatures:
    """The columns of several sources side by side; of equal names the first source counts.

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
        self._parts: list[tuple[FeatureSource, list[int]]] = []
        names: dict[str, None] = {}
        for source in sources:
            new = [n for n, name in enumerate(source.columns) if name not in names]
            self._parts.append((source, new))
            names.update(dict.fromkeys(source.columns))
        self.columns: tuple[str, ...] = tuple(names)
        """What each number is."""

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``."""
        parts = [source.rows(points)[:, chosen] for source, chosen in self._parts]
        return np.concatenate([np.empty((len(points), 0), np.float32), *parts], axis=1)
