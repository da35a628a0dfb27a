"""Gradient-boosted trees by XGBoost."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Literal, TypeAlias

import numpy as np

from dlcompiler.autotune.models.base import Matrix, Vector
from dlcompiler.autotune.models.learners import telling_columns
from dlcompiler.errors import TuningError

Objective: TypeAlias = Literal["regression", "rank"]

MEMBERS = 4
"""Number of models of the ensemble, which are fitted to different rows and columns."""
ROUNDS, FEW_ROUNDS = 40, 24
"""Most and fewest trees of a model; fewer for large training sets, to limit fit time."""
MUCH = 200_000
"""Size of a training set from which there are fewer trees: rows times columns."""
SETTINGS = {
    "max_depth": 5,
    "eta": 0.2,
    "lambda": 1.0,
    "min_child_weight": 1,
    "subsample": 0.8,
    "tree_method": "hist",
    "max_bin": 32,
    "nthread": 1,
    "verbosity": 0,
}
COLUMNS = 24
"""Approximate number of columns that each node of a tree considers."""
_OBJECTIVES: dict[Objective, dict[str, Any]] = {
    "regression": {"objective": "reg:squarederror"},
    "rank": {
        "objective": "rank:pairwise",
        "lambdarank_pair_method": "mean",
        "lambdarank_num_pair_per_sample": 8,
    },
}


class TreeLearner:
    """An ensemble of boosted trees.

    Parameters
    ----------
    seed : int
        Selects the rows and columns that each tree is fitted to.
    objective : {"regression", "rank"}
        Squared errors of the labels, or the order of pairs; the scores of the latter are brought to
        the unit of the labels by the line that fits them best.

    Raises
    ------
    TuningError
        If xgboost is not installed. The first fit imports it, since that takes half a second.

    Notes
    -----
    Regression is the default because it finds more of the fastest points. Models were fitted to 64
    and to 256 points of two preliminary tables: GEMM 512³ and convolution C9, each with 700 random
    points and the neighbours of the best, measured on a busy machine. The share of the 50 fastest
    other points among the 50 predicted to be fastest, mean of 8 draws, for 64 and 256 points:

    =========== ============= =============
    Model       GEMM 512³     C9
    =========== ============= =============
    regression  0.22 and 0.32 0.28 and 0.37
    rank        0.19 and 0.27 0.26 and 0.36
    ridge       0.26 and 0.28 0.12 and 0.22
    =========== ============= =============

    Fitting runs on one thread, so that equal data give equal trees, and the other cores stay free
    for measurements. Of columns that are equal in all training rows only the first is used.

    **Source:** T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018: boosted trees
    with regression and rank objectives. Ensembles for uncertainty: section 4 of the same, and
    B. Lakshminarayanan et al., NeurIPS 2017.
    """

    def __init__(self, seed: int, *, objective: Objective = "regression") -> None:
        if importlib.util.find_spec("xgboost") is None:
            raise TuningError(
                "make a cost model", "xgboost is not installed",
                hint="install xgboost-cpu (or xgboost), or use tuner='ridge'",
            )  # fmt: skip
        self._seed = seed
        self._objective = objective
        self._boosters: list[Any] = []
        self._lines: list[tuple[float, float]] = []
        self._chosen = np.empty(0, np.int64)
        self._count = 0
        self._constant = 0.0
        self._last: tuple[Matrix, Vector] | None = None

    def fit(self, rows: Matrix, labels: Vector) -> None:
        """Fit to rows, shape ``(n, columns)``, with labels, shape ``(n,)``."""
        self._boosters, self._lines, self._last = [], [], None
        self._count = rows.shape[1]
        self._chosen = telling_columns(rows)
        self._constant = float(labels.mean()) if len(labels) else 0.0
        if not len(self._chosen) or np.ptp(labels) == 0.0:
            return
        seen = np.ascontiguousarray(rows[:, self._chosen])
        groups = {"qid": np.zeros(len(seen), np.int32)} if self._objective == "rank" else {}
        xgboost: Any = importlib.import_module("xgboost")
        data = xgboost.QuantileDMatrix(
            seen, label=labels - self._constant, max_bin=SETTINGS["max_bin"], nthread=1, **groups
        )
        rounds = ROUNDS if seen.size < MUCH else FEW_ROUNDS
        for member in range(MEMBERS):
            settings = {
                **SETTINGS,
                **_OBJECTIVES[self._objective],
                "seed": self._seed * MEMBERS + member,
                "base_score": 0.0,
                "colsample_bynode": min(max(COLUMNS / len(self._chosen), 0.05), 0.8),
            }
            booster = xgboost.train(settings, data, num_boost_round=rounds)
            self._boosters.append(booster)
            scores = np.asarray(booster.inplace_predict(seen), np.float64)
            is_rank = self._objective == "rank"
            self._lines.append(_line(scores, labels) if is_rank else (self._constant, 1.0))

    def predict(self, rows: Matrix) -> Vector:
        """Predict the label of each row."""
        mean: Vector = self._all(rows).mean(axis=0)
        return mean

    def spread(self, rows: Matrix) -> Vector:
        """Return the standard deviation of the members' predictions."""
        deviation: Vector = self._all(rows).std(axis=0)
        return deviation

    def _all(self, rows: Matrix) -> Vector:
        """Return the predictions of each member, shape ``(members, n)``.

        The result of the last call is cached, since mean and spread use the same one.
        """
        if not self._boosters:
            return np.full((1, len(rows)), self._constant)
        if self._last is None or self._last[0] is not rows:
            seen = np.ascontiguousarray(rows[:, self._chosen])
            found = [
                start + slope * np.asarray(booster.inplace_predict(seen), np.float64)
                for booster, (start, slope) in zip(self._boosters, self._lines, strict=True)
            ]
            self._last = rows, np.array(found)
        return self._last[1]

    def importance(self) -> Vector:
        """Return the total gain of the splits by each column, over all trees."""
        gains = np.zeros(self._count)
        for booster in self._boosters:
            for name, gain in booster.get_score(importance_type="total_gain").items():
                gains[self._chosen[int(name.removeprefix("f"))]] += float(gain)
        return gains

    def contributions(self, rows: Matrix) -> Vector:
        """Return what each column adds to each prediction; the last column is the constant part.

        Notes
        -----
        **Source:** S. Lundberg, S. Lee, "Consistent individualized feature attribution for tree
        ensembles", 2018: exact Shapley values of trees, as XGBoost computes them.
        """
        total = np.zeros((len(rows), self._count + 1))
        if not self._boosters:
            total[:, -1] = self._constant
            return total
        xgboost: Any = importlib.import_module("xgboost")
        data = xgboost.DMatrix(np.ascontiguousarray(rows[:, self._chosen]), nthread=1)
        places = np.append(self._chosen, self._count)
        for booster, (start, slope) in zip(self._boosters, self._lines, strict=True):
            parts = np.asarray(booster.predict(data, pred_contribs=True), np.float64)
            total[:, places] += slope * parts
            total[:, -1] += start
        return total / len(self._boosters)


def preload() -> None:
    """Import xgboost, if it is installed, so that the first fit is not delayed."""
    if importlib.util.find_spec("xgboost") is not None:
        importlib.import_module("xgboost")


def _line(scores: Vector, labels: Vector) -> tuple[float, float]:
    """Return intercept and slope of the fitted line from scores to labels; the slope is ≥ 0."""
    variance = float(scores.var())
    if variance == 0.0:
        return float(labels.mean()), 0.0
    covariance = float(((scores - scores.mean()) * (labels - labels.mean())).mean())
    slope = max(covariance / variance, 0.0)
    return float(labels.mean() - slope * scores.mean()), slope
