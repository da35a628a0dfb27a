"""The base of all tuners: it stores proposals and their results."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from dlcompiler.autotune.models.base import CostModel
from dlcompiler.autotune.proposal import Origin, Proposal
from dlcompiler.autotune.tuners.candidates import Candidates


class BaseTuner:
    """Stores the points that were proposed and observed; a subclass proposes points.

    Parameters
    ----------
    candidates : Candidates
        The points that it may propose.
    seed : int
        Equal seeds and equal observations give equal proposals.
    """

    def __init__(self, candidates: Candidates, seed: int) -> None:
        self.note = ""
        """A note for the user about how it works at present; may be empty."""
        self.candidates = candidates
        """The points that it may propose."""
        self._generator = np.random.default_rng(seed)
        self._rates: dict[int, float | None] = {}
        """Rates of the points that were observed [1/s]; None: the point failed."""
        self._taken: set[int] = set()
        """Points that were observed or proposed."""

    @property
    def model(self) -> CostModel | None:
        """The cost model after its last fit; None: this tuner has none."""
        return None

    @property
    def walkers(self) -> tuple[int, ...]:
        """The current points of the walkers; empty for a tuner without walkers."""
        return ()

    def observe(self, point: int, rate: float | None) -> None:
        """Record the result of a point: calls per second, None if it failed."""
        self._rates[point] = rate
        self._taken.add(point)

    def _proposed(self, points: Iterable[int], origin: Origin) -> tuple[Proposal, ...]:
        """Convert points to proposals, and mark them as proposed."""
        proposals = tuple(Proposal(int(point), origin) for point in points)
        self._taken.update(proposal.point for proposal in proposals)
        return proposals

    def _drawn(self, count: int) -> tuple[Proposal, ...]:
        drawn = self.candidates.draw(count, self._generator, self._taken)
        return self._proposed(drawn.tolist(), "random")

    def _ranked(self) -> list[tuple[float, int]]:
        """Return (rate, point) of all observed points that did not fail, the fastest first."""
        timed = [(rate, point) for point, rate in self._rates.items() if rate is not None]
        return sorted(timed, key=lambda item: (-item[0], item[1]))


class RandomTuner(BaseTuner):
    """Draws points at random, without repetition."""

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        return self._drawn(count)


class GridTuner(BaseTuner):
    """Goes through all points in ascending order."""

    def __init__(self, candidates: Candidates, seed: int) -> None:
        super().__init__(candidates, seed)
        self._rest = candidates.in_order()

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        untried = (point for point in self._rest if point not in self._taken)
        return self._proposed(list(islice(untried, count)), "grid")
