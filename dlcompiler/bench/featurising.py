"""Measure how fast features and predictions of batches of configs are computed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.features import SpaceFeatures
from dlcompiler.autotune.models import make_model
from dlcompiler.ops import operator
from dlcompiler.target import resolve

BATCH = 10_000
ROUNDS = 9
KNOWN = 256
"""Number of measured points that the model is fitted to."""

SUBJECTS: Mapping[str, tuple[str, dict[str, int]]] = {
    "gemm 512³": ("matmul", {"m": 512, "n": 512, "k": 512}),
    "gemm 1024×32×1024": ("matmul", {"m": 1024, "n": 32, "k": 1024}),
    "conv2d C6": (
        "conv2d_direct",
        {"c": 128, "h": 28, "w": 28, "o": 128, "kernel": 3, "padding": 1},
    ),
}
"""Spaces with more points than a batch."""


@dataclass(frozen=True)
class Featurised:
    """Medians of featurising and predicting batches."""

    features_per_s: float
    """Candidates whose features are computed in a second [1/s]."""
    predictions_per_s: float
    """Candidates whose features are computed and scored by the model in a second [1/s]."""
    first_s: float
    """Finding the skeletons of the space, once [s]."""
    columns: int
    """Features of a candidate."""


def time_featurising(name: str, rounds: int = ROUNDS) -> Featurised:
    """Featurise and rank random batches of a space, each a different one.

    Parameters
    ----------
    name : str
        A key of `SUBJECTS`.
    rounds : int
        Number of batches.
    """
    of, params = SUBJECTS[name]
    item, target = operator(of), resolve("cpu")
    workload = item.workload(**params)
    space = item.space(workload, target)
    start = time.perf_counter()
    features = SpaceFeatures(item, workload, target, space)
    columns = len(features.columns)
    first = time.perf_counter() - start
    known = space.sample(KNOWN, 0)
    model = make_model("xgb", features, 0)
    generator = np.random.default_rng(0)
    rates: list[float | None] = [*generator.uniform(1.0, 2.0, len(known))]
    model.fit(known, rates)
    alone, both = [], []
    for number in range(rounds + 1):
        points = np.array(space.sample(BATCH, number), np.int64)
        start = time.perf_counter()
        features.rows(points)
        middle = time.perf_counter()
        model.predict(points)
        end = time.perf_counter()
        if number:  # the first batch fills the tables that later ones use
            alone.append(len(points) / (middle - start))
            both.append(len(points) / (end - middle))
    return Featurised(statistics.median(alone), statistics.median(both), first, columns)
