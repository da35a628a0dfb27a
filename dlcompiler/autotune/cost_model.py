"""Cost models: predict how fast a config is, from those that were measured."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import TuningError
from dlcompiler.space import Space, Value

Matrix = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


class CostModel(Protocol):
    """Scores points of a space; higher is faster."""

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Learn from measured points: operations per second, None for one that failed."""

    def predict(self, points: Indices) -> npt.NDArray[np.float32]:
        """Return a score for each point."""


class Encoding:
    """Knob values as numbers: for each knob, a table of its values' columns.

    A whole number stands as ``log2(1 + value)``, since what knobs scale is mostly multiplied; a
    bool as 0 or 1; other values have a column each (one-hot); of tuples, so each item.

    Parameters
    ----------
    space : Space
        Whose points are encoded.

    Examples
    --------
    >>> from dlcompiler.space import Knob, Workload
    >>> knobs = [Knob("tile", (1, 3)), Knob("order", ("ij", "ji"))]
    >>> encoding = Encoding(Space(Workload.of("x"), knobs))
    >>> encoding.columns, encoding.encode(np.array([1, 2])).tolist()
    (('tile', 'order=ij', 'order=ji'), [[2.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    """

    def __init__(self, space: Space) -> None:
        tables = [_table(knob.name, knob.values) for knob in space.knobs]
        self._tables = [table for _, table in tables]
        self.columns: tuple[str, ...] = tuple(name for names, _ in tables for name in names)
        """What each column of `encode` is."""

    def encode(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``."""
        rest = np.asarray(points, np.int64)
        parts = []
        for table in self._tables:
            rest, digits = np.divmod(rest, len(table))
            parts.append(table[digits])
        return np.concatenate(parts, axis=1) if parts else np.empty((len(rest), 0), np.float32)


def _table(name: str, values: Sequence[Value]) -> tuple[list[str], Matrix]:
    """Return the columns of a knob: their names, and a row for each value."""
    if all(isinstance(value, int) for value in values):
        rows = [
            [float(v) if isinstance(v, bool) else _log(v)] for v in values if isinstance(v, int)
        ]
        return [name], np.array(rows, np.float32)
    tuples = [value for value in values if isinstance(value, tuple)]
    lengths = {len(value) for value in tuples}
    if len(tuples) == len(values) and len(lengths) == 1 and lengths != {0}:
        items = [_table(f"{name}[{n}]", items) for n, items in enumerate(zip(*tuples, strict=True))]
        return [item for names, _ in items for item in names], np.hstack([t for _, t in items])
    distinct = list(dict.fromkeys(values))
    table = np.eye(len(distinct), dtype=np.float32)[[distinct.index(value) for value in values]]
    return [name] if len(distinct) == 1 else [f"{name}={value}" for value in distinct], table


def _log(value: int) -> float:
    return math.copysign(math.log2(1 + abs(value)), value)


class XGBoostModel:
    """Gradient-boosted trees on knob values: regression on the logarithm of the throughput.

    Failed points count as half as fast as the slowest measured one. Equal data give equal
    predictions: it runs on one thread, from a fixed seed.

    Parameters
    ----------
    space : Space
        Whose points are scored.
    seed : int
        Seed of the trees.

    Raises
    ------
    TuningError
        If xgboost cannot be imported.

    Notes
    -----
    **Source:** T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018: the learner
    and its settings (depth 3, learning rate 0.3); ranking losses come later.
    """

    rounds = 100

    def __init__(self, space: Space, seed: int) -> None:
        try:
            self._xgboost: Any = importlib.import_module("xgboost")
        except ImportError as error:
            raise TuningError(
                "make a cost model", "xgboost cannot be imported", got=str(error),
                hint="install xgboost-cpu (or xgboost), or use tuner='random'",
            ) from error  # fmt: skip
        self.encoding = Encoding(space)
        self._settings = {
            "objective": "reg:squarederror",
            "max_depth": 4,
            "eta": 0.3,
            "gamma": 1e-4,
            "lambda": 1.0,
            "min_child_weight": 1,
            "tree_method": "exact",
            "nthread": 1,
            "seed": seed,
            "verbosity": 0,
        }
        self._booster: Any = None

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Learn from measured points: operations per second, None for one that failed."""
        rows = self.encoding.encode(np.asarray(points, np.int64))
        data = self._xgboost.DMatrix(rows, label=labels(rates))
        self._booster = self._xgboost.train(self._settings, data, num_boost_round=self.rounds)

    def predict(self, points: Indices) -> npt.NDArray[np.float32]:
        """Return the predicted logarithm of the throughput for each point."""
        if self._booster is None:
            return np.zeros(len(points), np.float32)
        rows = self._xgboost.DMatrix(self.encoding.encode(points))
        scores: npt.NDArray[np.float32] = self._booster.predict(rows)
        return scores


def labels(rates: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """Return what a model learns: log2 of each rate over the best; a failure is worst of all.

    Examples
    --------
    >>> labels([4.0, None, 16.0]).tolist()
    [-2.0, -3.0, 0.0]
    """
    measured = [rate for rate in rates if rate is not None]
    best, slowest = (max(measured), min(measured)) if measured else (1.0, 1.0)
    return np.array([math.log2((slowest / 2 if r is None else r) / best) for r in rates])
