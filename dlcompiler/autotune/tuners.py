"""Tuners: which points of a space are tried next."""

from __future__ import annotations

import difflib
import importlib
import random
from collections.abc import Sequence

import numpy as np

from dlcompiler.autotune import models
from dlcompiler.autotune.cost_model import CostModel, XGBoostModel
from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.errors import TuningError
from dlcompiler.space import Space

__all__ = ["REGISTRY", "ModelTuner", "RandomTuner", "Tuner", "tuner", "xgb_tuner"]

#: Name of a tuner -> what makes it from a space and a seed.
REGISTRY: dict[str, str] = {
    "random": "dlcompiler.autotune.tuners:RandomTuner",
    "xgb": "dlcompiler.autotune.tuners:xgb_tuner",
}

_LARGEST_LIST = 1 << 16
_SAMPLE = 1 << 13


class RandomTuner:
    """Draws points at random, none twice.

    Parameters
    ----------
    space : Space
        Where to draw.
    seed : int
        Equal seeds give equal draws.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.note = ""
        self._space = space
        self._random = random.Random(seed)
        self._seen: set[int] = set()

    @property
    def model(self) -> models.CostModel | None:
        """There is none."""
        return None

    @property
    def walkers(self) -> tuple[int, ...]:
        """There are none."""
        return ()

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed."""
        points = self._space.sample(count, self._random, self._seen)
        return tuple(Proposal(point, "random") for point in points)

    def observe(self, point: int, rate: float | None) -> None:
        """Remember that the point was tried."""
        self._seen.add(point)


class ModelTuner:
    """Tries the points that a cost model ranks first, mixed with random ones (ε-greedy).

    Parameters
    ----------
    space : Space
        Where to search.
    seed : int
        Of the random points.
    model : CostModel
        What ranks.
    epsilon : float
        Share of random points in a batch; there is at least one.
    first : int
        Points that are random before the model is asked.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        model: CostModel,
        *,
        epsilon: float = 0.1,
        first: int = 16,
    ) -> None:
        self.note = ""
        self._space = space
        self._random = random.Random(seed)
        self._model = model
        self._epsilon = epsilon
        self._first = first
        self._rates: dict[int, float | None] = {}
        self._allowed = list(space.allowed()) if space.size <= _LARGEST_LIST else None

    @property
    def model(self) -> models.CostModel | None:
        """None: this one only ranks."""
        return None

    @property
    def walkers(self) -> tuple[int, ...]:
        """There are none: it ranks a list."""
        return ()

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed: the best-ranked, then random ones."""
        if len(self._rates) < self._first:
            return self._draw(min(count, self._first - len(self._rates)), ())
        random_count = max(1, round(self._epsilon * count)) if count > 1 else 0
        ranked = self._ranked(count - random_count)
        chosen = tuple(Proposal(point, "model") for point in ranked)
        return (*chosen, *self._draw(count - len(ranked), ranked))

    def observe(self, point: int, rate: float | None) -> None:
        """Add what came of a point to what the model learns from."""
        self._rates[point] = rate

    def _ranked(self, count: int) -> tuple[int, ...]:
        candidates = np.array(self._candidates(), np.int64)
        if not len(candidates):
            return ()
        self._model.fit(list(self._rates), list(self._rates.values()))
        scores = self._model.predict(candidates)
        order = np.argsort(-scores, kind="stable")[:count]
        return tuple(int(point) for point in candidates[order])

    def _candidates(self) -> Sequence[int]:
        """Return the points that could be next, all of a small space and a sample of a large one.

        Their order is random, so that it decides between equal scores.
        """
        if self._allowed is None:
            return self._space.sample(_SAMPLE, self._random, self._rates)
        points = [point for point in self._allowed if point not in self._rates]
        self._random.shuffle(points)
        return points

    def _draw(self, count: int, besides: Sequence[int]) -> tuple[Proposal, ...]:
        points = self._space.sample(count, self._random, {*self._rates, *besides})
        return tuple(Proposal(point, "random") for point in points)


def xgb_tuner(space: Space, seed: int) -> Tuner:
    """Return a tuner that ranks by gradient-boosted trees, or at random when xgboost is missing."""
    try:
        return ModelTuner(space, seed, XGBoostModel(space, seed))
    except TuningError as error:
        fallback = RandomTuner(space, seed)
        fallback.note = f"points are drawn at random: {error.problem} ({error.got})"
        return fallback


def tuner(name: str, space: Space, seed: int) -> Tuner:
    """Make a tuner by its name.

    Raises
    ------
    TuningError
        If there is none of this name.
    """
    if name not in REGISTRY:
        close = difflib.get_close_matches(str(name), REGISTRY, n=1)
        raise TuningError(
            "tune", "no tuner has this name", got=repr(name),
            expected=", ".join(map(repr, REGISTRY)),
            hint=f"did you mean {close[0]!r}?" if close else None,
        )  # fmt: skip
    module, _, attribute = REGISTRY[name].partition(":")
    made: Tuner = getattr(importlib.import_module(module), attribute)(space, seed)
    return made
