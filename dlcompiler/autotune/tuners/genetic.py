"""A genetic algorithm: children of good points, mutated."""

from __future__ import annotations

import numpy as np

from dlcompiler.autotune.models.base import Vector
from dlcompiler.autotune.proposal import Origin, Proposal
from dlcompiler.autotune.tuners.base import BaseTuner
from dlcompiler.autotune.tuners.candidates import Candidates

POPULATION = 100
ELITE = 3
MUTATION = 0.1
"""Probability of another value, for each knob of a child."""
_TRIES = 20
_CROSSOVER: Origin = "crossover"


class GeneticTuner(BaseTuner):
    """Draws a population, then breeds generations from the fastest.

    Parents are drawn with a probability that grows with their rate, a child takes the first knobs
    of one and the others of the other, and each knob may mutate. The elite, the fastest of all,
    stay among the parents.

    Parameters
    ----------
    candidates : Candidates
        The points that it may propose.
    seed : int
        Of all draws.
    population : int
        Points of a generation.

    Notes
    -----
    A child that was tried, or that the space does not have, is bred anew, and in the end replaced
    by the nearest point that was not tried. **Source:** AutoTVM's ``GATuner``, whose numbers these
    are.
    """

    def __init__(self, candidates: Candidates, seed: int, population: int = POPULATION) -> None:
        super().__init__(candidates, seed)
        self._population = population
        self._generation: list[int] = []
        """Points of the present generation, as far as they were proposed."""
        self._parents: list[int] = []

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        if len(self._generation) >= self._population:
            self._select()
        count = min(count, self._population - len(self._generation))
        if not self._parents:
            found = self._drawn(count)
        else:
            found = tuple(proposal for _ in range(count) for proposal in self._bred())
        self._generation += [proposal.point for proposal in found]
        return found

    def _select(self) -> None:
        """Set the parents of the next generation: this generation and the fastest points so far."""
        elite = [point for _, point in self._ranked()[:ELITE]]
        timed = [point for point in self._generation if self._rates.get(point)]
        self._parents = list(dict.fromkeys((*elite, *timed)))
        self._generation = []

    def _bred(self) -> tuple[Proposal, ...]:
        """Return a child that was not tried; an empty tuple if all points were."""
        rates = np.array([self._rates[point] or 0.0 for point in self._parents])
        child, origin = self._parents[0], _CROSSOVER
        for _ in range(_TRIES):
            child, origin = self._child(rates / rates.sum())
            fits = bool(self.candidates.has(np.array([child]))[0])
            if fits and child not in self._taken:
                return self._proposed([child], origin)
        if self.candidates.points is None:
            return self._drawn(1)
        near = self.candidates.nearest_untried(child, self._taken)
        return () if near is None else self._proposed([near], origin)

    def _child(self, chances: Vector) -> tuple[int, Origin]:
        generator, candidates = self._generator, self.candidates
        first, second = generator.choice(self._parents, 2, p=chances)
        one, other = candidates.space.digits([first, second])
        cut = int(generator.integers(len(one))) if len(one) else 0
        digits = np.concatenate([one[:cut], other[cut:]])
        mutates = generator.random(len(digits)) < MUTATION
        digits = np.where(mutates, generator.integers(0, candidates.sizes), digits)
        (child,) = candidates.space.points_of([digits])
        return int(child), "mutation" if mutates.any() else _CROSSOVER
