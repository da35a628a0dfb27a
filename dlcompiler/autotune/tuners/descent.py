"""Coordinate descent: steps along one knob at a time from the best point."""

from __future__ import annotations

import numpy as np

from dlcompiler.autotune.proposal import Proposal
from dlcompiler.autotune.tuners.base import BaseTuner
from dlcompiler.autotune.tuners.candidates import Candidates


class DescentTuner(BaseTuner):
    """Measures the neighbours of the best point along each knob, and moves to the fastest.

    If no neighbour is faster, the steps grow, because the best point may lie on a plateau. When a
    step is longer than every knob, the descent starts again at a random point.

    Parameters
    ----------
    candidates : Candidates
        The points that it may propose.
    seed : int
        Of where it starts.

    Notes
    -----
    Of a given list of points, a neighbour that is not in it stands for the nearest one that is.
    **Source:** M. Canesche et al., "The Droplet Search Algorithm for Kernel Scheduling", ACM TACO
    21, 2024: coordinate descent whose step sizes grow; AutoTVM's ``DropletTuner``.
    """

    def __init__(self, candidates: Candidates, seed: int) -> None:
        super().__init__(candidates, seed)
        self._centre: int | None = None
        self._step = 1
        self._around: list[int] = []
        """Neighbours of the centre that were not proposed yet."""
        self._seen: list[int] | None = None
        """Points that may be the next centre; None: any that was observed."""

    @property
    def walkers(self) -> tuple[int, ...]:
        """The point whose neighbours are tried."""
        return () if self._centre is None else (self._centre,)

    def propose(self, count: int) -> tuple[Proposal, ...]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        left = [point for point in self._around if point not in self._taken]
        while not left:
            if not self._move():
                drawn = self._drawn(count)
                self._seen = [proposal.point for proposal in drawn]
                return drawn
            left = [point for point in self._neighbours() if point not in self._taken]
        now, self._around = left[:count], left[count:]
        self._seen = [*(self._seen or ()), *now]
        return self._proposed(now, "neighbour")

    def _move(self) -> bool:
        """Move to the best neighbour, or make the steps longer; False: a new start is needed."""
        best = self._best_seen()
        if best is not None and self._rate(best) > self._rate(self._centre):
            self._centre, self._step, self._seen = best, 1, []
            return True
        self._step *= 2
        if self._centre is None or self._step >= max(self.candidates.sizes, default=1):
            self._centre, self._step = None, 1
            return False
        return True

    def _best_seen(self) -> int | None:
        seen = self._rates if self._seen is None else self._seen
        timed = [point for point in seen if self._rate(point) > 0.0]
        return max(timed, key=lambda point: (self._rate(point), -point), default=None)

    def _rate(self, point: int | None) -> float:
        return 0.0 if point is None else self._rates.get(point) or 0.0

    def _neighbours(self) -> list[int]:
        """Return the points at the current step length from the centre along each knob."""
        if self._centre is None:
            return []
        candidates = self.candidates
        (row,) = candidates.space.digits([self._centre])
        steps = self._step * np.eye(len(row), dtype=np.int64)
        moved = np.stack([row - steps, row + steps], axis=1).reshape(-1, len(row))
        inside = ((moved >= 0) & (moved < candidates.sizes)).all(axis=1)
        points = candidates.space.points_of(moved[inside])
        if candidates.is_given:
            found = [candidates.nearest(int(point)) for point in points]
        else:
            found = points[candidates.has(points)].tolist()
        return list(dict.fromkeys(found))
