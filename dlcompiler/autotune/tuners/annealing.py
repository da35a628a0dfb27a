"""Simulated annealing over a model's scores: walkers that all step at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from dlcompiler.autotune.models.base import Indices, Vector
from dlcompiler.autotune.tuners.candidates import Candidates

Score = Callable[[Indices], Vector]
"""Returns a number for each point, larger for what is better [log2]."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """The temperature of an annealing search, and when it ends.

    Notes
    -----
    **Source:** AutoTVM's ``SimulatedAnnealingOptimizer``: 128 walkers, and a temperature that falls
    from 1 to 0. There they walk at most 500 steps, and end after 50 without a new point among the
    best; here batches are a quarter as large, and each search goes on where the last one ended.
    """

    walkers: int = 128
    steps: int = 150
    early_stop: int = 25
    """Ends after so many steps in which no better point was found."""
    start: float = 1.0
    """Temperature of the first step [log2]: a loss of this size is accepted once in e times."""


class Annealing:
    """Walkers that search for high scores; they keep their points between searches.

    Parameters
    ----------
    candidates : Candidates
        The points that they may visit.
    generator : Generator
        Source of random numbers.
    cooling : Cooling
        The temperatures, and the end of a search.
    """

    def __init__(
        self,
        candidates: Candidates,
        generator: np.random.Generator,
        cooling: Cooling | None = None,
    ) -> None:
        self._candidates = candidates
        self._generator = generator
        self._cooling = cooling or Cooling()
        self.points: Indices = np.empty(0, np.int64)
        """The points at which the walkers are; the next search begins there."""

    def best(self, score: Score, count: int, tried: Collection[int]) -> tuple[Indices, Vector]:
        """Run the walkers, and return the visited points with the highest scores, best first.

        Parameters
        ----------
        score : callable
            What to climb.
        count : int
            How many points.
        tried : collection of int
            Points that may be passed, and are not returned.

        Returns
        -------
        points : array of int64, shape (at most count,)
        scores : array of float64
        """
        cooling, generator = self._cooling, self._generator
        missing = cooling.walkers - len(self.points)
        if missing > 0:
            self.points = np.concatenate([self.points, self._candidates.draw(missing, generator)])
        points = self.points
        if not len(points):
            return points, np.empty(0)
        scores = score(points)
        found = _Best(count, tried)
        found.add(points, scores)
        silent = 0
        for step in range(cooling.steps):
            moved = self._candidates.step(points, generator)
            there = score(moved)
            temperature = cooling.start * (1 - step / cooling.steps)
            chances = np.exp(np.minimum(there - scores, 0.0) / (temperature + 1e-5))
            accepts = generator.random(len(points)) < chances
            points = np.where(accepts, moved, points)
            scores = np.where(accepts, there, scores)
            silent = 0 if found.add(moved, there) else silent + 1
            if silent >= cooling.early_stop:
                break
        self.points = points
        return found.points, found.scores


class _Best:
    """The points with the highest scores so far that were not tried."""

    def __init__(self, count: int, tried: Collection[int]) -> None:
        self._count = count
        self._tried = np.fromiter(tried, np.int64, len(tried))
        self.points: Indices = np.empty(0, np.int64)
        self.scores: Vector = np.empty(0)

    def add(self, points: Indices, scores: Vector) -> bool:
        """Add points; tell whether the list of the best points has changed."""
        if len(self.points) == self._count and self._count:
            above = scores > self.scores[-1]
            points, scores = points[above], scores[above]
        new = ~np.isin(points, self._tried) & ~np.isin(points, self.points)
        points, places = np.unique(points[new], return_index=True)
        if not len(points):
            return False
        together = np.concatenate([self.points, points])
        values = np.concatenate([self.scores, scores[new][places]])
        order = np.lexsort((together, -values))[: self._count]
        before = self.points
        self.points, self.scores = together[order], values[order]
        return not np.array_equal(before, self.points)
