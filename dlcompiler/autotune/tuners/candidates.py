"""Candidates: the points of a space that a tuner may propose."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.models.base import Indices
from dlcompiler.space import Space

MOST_LISTED = 200_000
"""Points that are held as a list, and ranked all; larger spaces are searched."""
_LARGEST_SCANNED = 1 << 20
_TRIES = 8
"""Of a step before it stays where it was, and of a draw before allowed points are too rare."""

Mask = npt.NDArray[np.bool_]


class Candidates:
    """All points that a space allows, or a given list of them.

    If a list is given, a move that leads to none of its points ends at the nearest of them. Nearest
    means: the fewest different knobs, then the least sum of steps along their values (each knob's
    whole range counts as 1), then the smallest index.

    Parameters
    ----------
    space : Space
        The space, with its filters.
    points : sequence of int, optional
        The only points allowed, such as those of a replay table.
    """

    def __init__(self, space: Space, points: Sequence[int] | None = None) -> None:
        self.space = space
        """The space."""
        self.is_given = points is not None
        """Whether the points are a given list."""
        self._given = None if points is None else np.unique(np.asarray(points, np.int64))
        self.sizes: Indices = np.array([len(knob.values) for knob in space.knobs], np.int64)
        """How many values each knob has."""
        self._nearest: dict[int, int] = {}

    @cached_property
    def points(self) -> Indices | None:
        """All points in ascending order; None: too many to list."""
        return _listed(self.space) if self._given is None else self._given

    def has(self, points: Indices) -> Mask:
        """Tell which of the given points may be proposed, shape ``(n,)``."""
        if self.points is None:
            return self.space.allows(points)
        if not len(self.points):
            return np.zeros(len(points), np.bool_)
        places = np.minimum(np.searchsorted(self.points, points), len(self.points) - 1)
        mask: Mask = self.points[places] == points
        return mask

    def untried(self, tried: Collection[int]) -> Indices:
        """Return the listed points that were not tried, in ascending order."""
        if self.points is None:
            raise ValueError("the points of this space are not listed")
        known = np.fromiter(tried, np.int64, len(tried))
        return np.setdiff1d(self.points, known, assume_unique=False)

    def in_order(self) -> Iterator[int]:
        """Yield all points in ascending order."""
        return self.space.allowed() if self.points is None else iter(self.points.tolist())

    # -- random points -----------------------------------------------------------------------

    def draw(
        self, count: int, generator: np.random.Generator, tried: Collection[int] = ()
    ) -> Indices:
        """Draw different points that were not tried; fewer when there are no more.

        In a space that is too large to list, fewer also come when allowed ones are too rare.
        """
        if self.points is not None:
            left = self.untried(tried)
            chosen: Indices = generator.permutation(left)[:count]
            return chosen
        found: dict[int, None] = {}
        for _ in range(_TRIES * _TRIES):
            drawn = generator.integers(0, self.space.size, max(4 * count, 256))
            for point in drawn[self.space.allows(drawn)].tolist():
                if point not in tried and len(found) < count:
                    found[point] = None
            if len(found) == count:
                break
        return np.fromiter(found, np.int64, len(found))

    def spread_out(
        self, count: int, generator: np.random.Generator, tried: Collection[int] = ()
    ) -> Indices:
        """Draw points that have each value of each knob about equally often.

        Notes
        -----
        A Latin hypercube: each knob's values in random order, as often as needed; each row is then
        replaced by the nearest point that may be tried. **Source:** M. D. McKay, R. J. Beckman,
        W. J. Conover, "A comparison of three methods for selecting values of input variables",
        Technometrics 21, 1979.
        """
        if self.points is None:
            return self.draw(count, generator, tried)
        columns = [
            np.concatenate([generator.permutation(size) for _ in range(-(-count // size))])[:count]
            for size in self.sizes
        ]
        left = self.untried(tried)
        found: list[int] = []
        for row in np.stack(columns, axis=1) if columns else np.empty((count, 0), np.int64):
            if not len(left):
                break
            place = self._place_of_nearest(left, row)
            found.append(int(left[place]))
            left = np.delete(left, place)
        return np.array(found, np.int64)

    # -- moves -------------------------------------------------------------------------------

    def step(self, points: Indices, generator: np.random.Generator) -> Indices:
        """Change one random knob of each point; a point without a legal change stays the same."""
        free = np.flatnonzero(self.sizes > 1)
        moved = points.copy()
        if not len(free):
            return moved
        waiting = np.arange(len(points))
        for _ in range(1 if self.is_given else _TRIES):
            digits = self.space.digits(points[waiting])
            knobs = generator.choice(free, len(waiting))
            rows = np.arange(len(waiting))
            further = generator.integers(1, self.sizes[knobs])
            digits[rows, knobs] = (digits[rows, knobs] + further) % self.sizes[knobs]
            targets = self.space.points_of(digits)
            fits = self.has(targets)
            moved[waiting[fits]] = targets[fits]
            waiting, targets = waiting[~fits], targets[~fits]
            if not len(waiting):
                return moved
        if self.is_given:
            moved[waiting] = [self.nearest(int(target)) for target in targets]
        return moved

    def nearest(self, point: int) -> int:
        """Return the listed point that is nearest to any point of the space."""
        if self.points is None or not len(self.points):
            raise ValueError("there is no list of points")
        if point not in self._nearest:
            (row,) = self.space.digits([point])
            self._nearest[point] = int(self.points[self._place_of_nearest(self.points, row)])
        return self._nearest[point]

    def nearest_untried(self, point: int, tried: Collection[int]) -> int | None:
        """Return the nearest listed point that was not tried, or None if all were."""
        left = self.untried(tried)
        if not len(left):
            return None
        (row,) = self.space.digits([point])
        return int(left[self._place_of_nearest(left, row)])

    def _place_of_nearest(self, points: Indices, row: Indices) -> int:
        apart = np.abs(self.space.digits(points) - row)
        along = (apart / np.maximum(self.sizes - 1, 1)).sum(axis=1)
        # The sum of the steps is at most the number of knobs that differ: it decides between
        # points that differ in as many.
        distances = (apart > 0).sum(axis=1) * (len(self.sizes) + 1) + along
        return int(np.argmin(distances))


def _listed(space: Space) -> Indices | None:
    if space.size > _LARGEST_SCANNED:
        return None
    points = np.fromiter(space.allowed(), np.int64)
    return points if len(points) <= MOST_LISTED else None
