"""Features of a space's configs on a GPU: the counters of their warps, and ratios of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.features.launch_counts import Table
from dlcompiler.autotune.features.space_counters import SpaceCounters
from dlcompiler.autotune.models.base import Indices, Matrix

_SAMPLE = 256
"""Configs from which the names of the features are taken."""
_RATIOS = (
    ("sectors", "requests", "sectors a request"),
    ("wavefronts", "ideal_wavefronts", "conflict degree"),
    ("lanes", "requests", "active lanes"),
)
"""(numerator, denominator, name) of what is computed for each access or kind of instruction."""


class GPUFeatures:
    """Features of the configs of a space on a GPU: a `FeatureSource`.

    Counters are logarithms, ``log2(1 + count)``; ratios are not. A config that is refused has no
    features.

    Parameters
    ----------
    counters
        Counts the configs.
    """

    def __init__(self, counters: SpaceCounters) -> None:
        self._counters = counters

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the features, from a sample of the space."""
        points = np.array(self._counters.space.sample(_SAMPLE, 0), np.int64)
        return tuple(name for name, _ in _columns(self._counters.counts(points).table))

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: absent."""
        known = dict(_columns(self._counters.counts(points).table))
        absent = np.full(len(points), np.nan)
        return np.stack([known.get(name, absent) for name in self.columns], 1).astype(np.float32)


def _columns(table: Table) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield the features, by name."""
    numbers = {name: np.where(v < 0, np.nan, v.astype(np.float64)) for name, v in table.items()}
    for name, values in numbers.items():
        yield name, np.log2(1 + values)
        head, _, field = name.rpartition(".")
        for above, below, ratio in _RATIOS:
            if field == above and f"{head}.{below}" in numbers:
                least = np.maximum(numbers[f"{head}.{below}"], 1)
                yield f"{head}.{ratio}", values / least
