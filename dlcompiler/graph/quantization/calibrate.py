"""Find the range of each value from data: min-max, percentile, or Kullback-Leibler divergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.operators.base import Array

Method: TypeAlias = Literal["min-max", "percentile", "kl"]
METHODS: tuple[Method, ...] = ("min-max", "percentile", "kl")
BINS = 2048
"""Bins of a histogram, as in the source of `kl_range`; [1]."""


@dataclass(frozen=True)
class Range:
    """The numbers that integers stand for; others are saturated."""

    low: float
    high: float

    def scale_and_zero(self, *, symmetric: bool) -> tuple[Array, Array]:
        """Return the scale in float32, and the zero point.

        Parameters
        ----------
        symmetric : bool
            Use int8 with the zero point 0; otherwise uint8 with a zero point that stands for 0
            exactly, so that padding is exact.
        """
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        steps = max(-low, high) / 127 if symmetric else (high - low) / 255
        scale = np.float32(max(steps, SMALLEST_SCALE) if high > low else 1.0)
        if symmetric:
            return np.asarray(scale), np.asarray(0, np.int8)
        return np.asarray(scale), np.asarray(np.clip(np.rint(-low / scale), 0, 255), np.uint8)


SMALLEST_COUNT = 1e-4
"""What an empty bin counts as where another histogram has values; [1]."""
SMALLEST_SCALE = 1e-12
"""Smaller numbers are taken for 0; [1]."""


class Observer:
    """What is known about a value: its limits, then a histogram between them."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf
        self.counts = np.zeros(BINS, np.int64)

    def limit(self, values: Array, name: str) -> None:
        """Widen the limits so that they hold an array."""
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        if not np.isfinite([low, high]).all():
            raise GraphError(
                "quantize a model", f"value {name} has infinities or NaN", got=f"{low} to {high}",
                hint="look at the calibration data, or name the call in skip",
            )  # fmt: skip
        self.low, self.high = min(self.low, low), max(self.high, high)

    def count(self, values: Array) -> None:
        """Add an array to the histogram of the whole range."""
        if self.high > self.low:
            wide = values.astype(np.float64)  # float32 has too few numbers in a narrow range
            self.counts += np.histogram(wide, BINS, (self.low, self.high))[0]

    def range(self, method: Method, percentile: float) -> Range:
        """Return the range by a method."""
        if not self.low <= self.high:
            return Range(0.0, 0.0)
        if method == "min-max" or not self.counts.any():
            return Range(self.low, self.high)
        if method == "percentile":
            return self._percentile_range(percentile)
        return self._kl_range()

    def _edges(self) -> Array:
        return np.linspace(self.low, self.high, BINS + 1)

    def _percentile_range(self, percentile: float) -> Range:
        """Return the range that leaves out equal shares of the smallest and largest values."""
        below, edges = np.cumsum(self.counts) / self.counts.sum(), self._edges()
        share = (1 - percentile / 100) / (2 if self.low < 0 < self.high else 1)
        first = int(np.searchsorted(below, share, side="right")) if self.low < 0 else 0
        last = int(np.searchsorted(below, 1 - share)) if self.high > 0 else BINS - 1
        return Range(float(edges[first]), float(edges[min(last, BINS - 1) + 1]))

    def _kl_range(self) -> Range:
        """Return the range whose integers lose the least information about magnitudes."""
        edges = self._edges()
        middle = np.abs((edges[:-1] + edges[1:]) / 2)
        most = max(-self.low, self.high)
        places = np.minimum((middle / most * BINS).astype(int), BINS - 1)
        magnitudes = np.bincount(places, weights=self.counts, minlength=BINS)
        levels = 128 if self.low < 0 else 256
        limit = most * kl_bins(magnitudes, levels) / BINS
        return Range(max(self.low, -limit), min(self.high, limit))


def kl_bins(counts: Array, levels: int) -> int:
    """Return how many bins of a histogram of magnitudes to keep; larger ones are saturated.

    Parameters
    ----------
    counts : array
        Values in each bin, from 0 on; shape ``(bins,)``.
    levels : int
        Integers that the bins are quantized to; [1].

    Notes
    -----
    For each number of bins, the distribution P has the saturated values in its last bin. Q is what
    remains of the kept bins if each level has the mean of its bins that are not empty. The number
    with the least divergence Σ P log(P / Q) is chosen. The first bin counts as many as the second:
    the zeros behind a ReLU are exact with any scale, and would outweigh all other values.

    **Source:** S. Migacz, "8-bit inference with TensorRT", GPU Technology Conference 2017; for the
    first bin, ``HistogramCalibrator`` of NVIDIA's pytorch-quantization.
    """
    counts = np.concatenate([counts[1:2], counts[1:]])
    best, least = len(counts), np.inf
    for kept in range(levels, len(counts) + 1, max(levels // 16, 1)):
        reference = counts[:kept].astype(np.float64)
        inside = reference.copy()
        reference[-1] += counts[kept:].sum()
        level = np.arange(kept) * levels // kept
        is_used = inside > 0
        sums = np.bincount(level, weights=inside, minlength=levels)
        used = np.bincount(level, weights=is_used, minlength=levels)
        quantized = np.where(is_used, sums[level] / np.maximum(used[level], 1), 0)
        divergence = _divergence(reference, quantized)
        if divergence < least:
            best, least = kept, divergence
    return best


def _divergence(p: Array, q: Array) -> float:
    """Return the divergence of two histograms.

    Notes
    -----
    **Source:** for bins that are empty in q only, ``_smooth_distribution`` of MXNet.
    """
    if not p.sum() or not q.sum():
        return float(np.inf)
    is_used = p > 0
    q = np.where(is_used & (q == 0), SMALLEST_COUNT, q)
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum(p[is_used] * np.log(p[is_used] / q[is_used])))


def ranges_of(
    batches: Sequence[Sequence[Array]], names: Sequence[str], method: Method, percentile: float
) -> list[Range]:
    """Return the range of each value.

    Parameters
    ----------
    batches : sequence
        For each input of the calibration, the values.
    names : sequence of str
        Of the values, for errors.
    method : {"min-max", "percentile", "kl"}
        How ranges follow from the values.
    percentile : float
        Share of the values inside the range; [%].
    """
    observers = [Observer() for _ in names]
    for values in batches:
        for observer, value, name in zip(observers, values, names, strict=True):
            observer.limit(value, name)
    if method != "min-max":
        for values in batches:
            for observer, value in zip(observers, values, strict=True):
                observer.count(value)
    return [observer.range(method, percentile) for observer in observers]
