"""The tuner that ranks points by a cost model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dlcompiler.autotune.models.base import CostModel, Indices, Vector
from dlcompiler.autotune.proposal import Origin, Proposal
from dlcompiler.autotune.tuners.annealing import Annealing
from dlcompiler.autotune.tuners.base import BaseTuner
from dlcompiler.autotune.tuners.candidates import Candidates
from dlcompiler.autotune.tuners.planning import diverse, expected_improvement

Acquisition: TypeAlias = Literal["mean", "improvement", "bound"]


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a batch is planned."""

    first: int = 8
    """Points that are spread out over the space before the model is asked; of one that knows
    something beforehand, a quarter of the first batch. 0: none."""
    epsilon: float = 0.05
    """Share of random points in a batch (ε-greedy), rounded; AutoTVM's last 5 % of a plan."""
    acquisition: Acquisition = "bound"
    """The score of a point: its prediction, its expected improvement, or an upper bound."""
    deviations: float = 0.5
    """How many standard deviations the bound is above the prediction."""
    choice: float = 3.0
    """How many times as many of the best as the batch needs are offered to the diversity filter."""
    walks: bool = False
    """Whether walkers also search small spaces, instead of ranking all points."""


class ModelTuner(BaseTuner):
    """Tries the points that a cost model ranks first, and fits the model again after each batch.

    Spaces that can be listed are ranked as a whole; in larger ones, walkers search (simulated
    annealing), and keep their points from batch to batch.

    Parameters
    ----------
    candidates : Candidates
        The points that it may propose.
    seed : int
        Seed of all random numbers.
    model : CostModel
        The model that ranks points.
    strategy : Strategy
        How a batch is planned.
    knows : bool
        Whether the model can rank before anything was measured.
    """

    def __init__(
        self,
        candidates: Candidates,
        seed: int,
        model: CostModel,
        strategy: Strategy | None = None,
        *,
        knows: bool = False,
    ) -> None:
        super().__init__(candidates, seed)
        self._strategy = strategy or Strategy()
        self._model = model
        self._knows = knows
        self._learned = 0
        self._annealing = Annealing(candidates, self._generator)

    @property
    def model(self) -> CostModel:
        """The cost model after its last fit."""
        return self._model

    @property
    def walkers(self) -> tuple[int, ...]:
        """The current points of the walkers; empty if the tuner ranks all points."""
        return tuple(self._annealing.points.tolist())

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        missing = 0 if self._knows else self._strategy.first - len(self._taken)
        if missing > 0:
            return self._spread_out(min(count, missing))
        if not self._rates and self._strategy.first:
            # What a model knows beforehand may mislead: some of what it learns from is spread out.
            chosen = self._chosen(count - count // 4)
            known = self._explained(chosen, "model")
            return (*known, *self._spread_out(count - len(chosen)))
        random = round(self._strategy.epsilon * count + float(self._generator.random()) - 0.5)
        self._learn()
        chosen = self._chosen(count - random)
        return (*self._explained(chosen, "model"), *self._random(count - len(chosen)))

    def _learn(self) -> None:
        if len(self._rates) > self._learned:
            self._model.fit(list(self._rates), list(self._rates.values()))
            self._learned = len(self._rates)

    def _chosen(self, count: int) -> Indices:
        """Return the points of a batch that are chosen by the model."""
        strategy = self._strategy
        offered = max(count, math.ceil(strategy.choice * count))
        if strategy.walks or self.candidates.points is None:
            points, scores = self._annealing.best(self._score, offered, self._taken)
        else:
            points, scores = self._best_of_all(self.candidates.points, offered)
        if strategy.choice <= 1.0:
            return points
        return points[diverse(scores, self.candidates.space.digits(points), count)]

    def _best_of_all(self, points: Indices, count: int) -> tuple[Indices, Vector]:
        """Return the untried points with the best scores, and the scores; ties are random.

        Tried points are scored too: the same list of points makes the model reuse cached features.
        """
        scores = self._score(points)
        tried = np.fromiter(self._taken, np.int64, len(self._taken))
        order = np.lexsort((self._generator.random(len(points)), -scores))
        order = order[~np.isin(points[order], tried)][:count]
        return points[order], scores[order]

    def _score(self, points: Indices) -> Vector:
        predicted = self._model.predict(points)
        match self._strategy.acquisition:
            case "mean":
                return predicted
            case "bound":
                return predicted + self._strategy.deviations * self._model.spread(points)
            case "improvement":
                best = max((math.log2(rate) for rate, _ in self._ranked()[:1]), default=0.0)
                improvement = expected_improvement(predicted, self._model.spread(points), best)
                return improvement + 1e-9 * predicted

    def _spread_out(self, count: int) -> tuple[Proposal, ...]:
        points = self.candidates.spread_out(count, self._generator, self._taken)
        return self._proposed(points.tolist(), "random")

    def _random(self, count: int) -> tuple[Proposal, ...]:
        points = self.candidates.draw(count, self._generator, self._taken)
        return self._explained(points, "random")

    def _explained(self, points: Indices, origin: Origin) -> tuple[Proposal, ...]:
        """Convert points to proposals with the model's predictions."""
        if not len(points):
            return ()
        self._taken.update(points.tolist())
        if not self._learned:
            return tuple(Proposal(int(point), origin) for point in points)
        both = zip(
            points.tolist(), self._model.predict(points), self._model.spread(points), strict=True
        )
        return tuple(
            Proposal(point, origin, float(2.0**-predicted), float(spread))
            for point, predicted, spread in both
        )
