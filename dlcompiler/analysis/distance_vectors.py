"""Compute the distance vector of a dependence: how many iterations of each loop lie between.

The source of a dependence is the access that comes first. Its *distance vector* has one component
for each loop around both accesses: the iterations of the loop from the source to the sink. Where
that number varies, the component is a *direction*: ``<`` for positive distances (the source is in
an earlier iteration), ``>`` for negative ones, ``<=``, ``>=`` and ``!=`` accordingly, ``*`` for
all. ``=`` is the distance 0. For example::

    for i in range(1, 8):                      flow A: A[i, j] written, A[i - 1, j + 2] read later
        for j in range(6):                     distance vector (1, -2)
            A[i, j] = A[i - 1, j + 2]

    for k in range(8):                         flow C: written at k, read at all later k
        C[0] += A[k]                           distance vector (<), nearest (1)

**Source:** R. Allen and K. Kennedy, *Optimizing Compilers for Modern Architectures*, 2001, sections
2.2.1 and 2.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.dependence_systems import (
    CUT_OFF,
    ONE,
    DependenceSystem,
    Doubt,
    Witness,
    comparison,
)
from dlcompiler.analysis.integers import HUGE, AtLeast, Formula, Linear, Zero
from dlcompiler.arith import Analyzer

Direction: TypeAlias = Literal["<", "<=", ">", ">=", "!=", "*"]
Distance: TypeAlias = "int | Direction"

_DIRECTIONS: dict[frozenset[int], Direction] = {
    frozenset({1}): "<",
    frozenset({0, 1}): "<=",
    frozenset({-1}): ">",
    frozenset({-1, 0}): ">=",
    frozenset({-1, 1}): "!=",
    frozenset({-1, 0, 1}): "*",
}
"""By the signs of the distances that occur; only 0 is the distance 0."""


@dataclass(frozen=True, slots=True)
class DistanceVector:
    """The distances of a dependence, over the loops around both of its accesses."""

    loops: tuple[Loop, ...]
    """The loops around both accesses, outermost first, without the lanes of vector statements."""
    distances: tuple[Distance, ...]
    """For each loop the distance, where it is the same for all pairs of points; else a direction
    that includes all of them; [1]."""
    example: Witness | None
    """Two points with the lexicographically least distances: a source and its first sink. None
    where they are not known, or depend on a symbol."""

    @property
    def nearest(self) -> tuple[int, ...] | None:
        """The lexicographically least distances; [1]. None where `example` is None."""
        if self.example is None:
            return None
        return tuple(_distance(self.example, loop) for loop in self.loops)

    @property
    def is_constant(self) -> bool:
        """Tell whether all pairs of points have the same distances."""
        return all(isinstance(distance, int) for distance in self.distances)

    def of(self, loop: Loop) -> Distance:
        """Return the component for a loop."""
        return self.distances[self.loops.index(loop)]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.distances))})"


def common_loops(first: Access, second: Access) -> tuple[Loop, ...]:
    """Return the loops around both accesses, without the lanes of vector statements."""
    common: list[Loop] = []
    for loop, other in zip(first.loops, second.loops, strict=False):
        if loop is not other or loop.kind == "lanes":
            break
        common.append(loop)
    return tuple(common)


def distance_vector(
    loop: Loop | None, source: Access, sink: Access, analyzer: Analyzer
) -> DistanceVector | None:
    """Return the distance vector of a dependence between two accesses.

    Parameters
    ----------
    loop
        The loop that carries it: the outermost in which the distance is not 0. None for a
        dependence inside one iteration of all loops around both accesses.
    source, sink
        The accesses; the source comes first.
    analyzer
        Knows the range of each variable.

    Returns
    -------
    DistanceVector or None
        None if there is provably no such dependence.
    """
    loops = common_loops(source, sink)
    depth = len(loops) if loop is None else loops.index(loop)
    return _Vector(loops, depth, source, sink, analyzer).read()


class _Vector:
    """The computation of one distance vector: each question is a system with one more formula."""

    def __init__(
        self, loops: tuple[Loop, ...], depth: int, source: Access, sink: Access, analyzer: Analyzer
    ) -> None:
        self.loops, self.depth = loops, depth
        is_carried = depth < len(loops)
        self.system = DependenceSystem(source, sink, depth, analyzer, is_carried=is_carried)

    def read(self) -> DistanceVector | None:
        self.system.build()
        inner = self.loops[self.depth :]
        differences = [self.system.difference(loop) for loop in inner]
        found = self.system.solve()
        zeros = (0,) * self.depth
        if found is None:
            return None
        if found is CUT_OFF:  # further questions would be cut off, too
            unknown: list[Distance] = ["*" for _ in inner]
            unknown[:1] = ["<" for _ in inner[:1]]
            return DistanceVector(self.loops, (*zeros, *unknown), None)
        sure = found if isinstance(found, Witness) else None
        if self.depth == len(self.loops):
            return DistanceVector(self.loops, zeros, sure)
        distances = [
            self.component(difference, _distance(sure, loop) if sure else None)
            for difference, loop in zip(differences, inner, strict=True)
        ]
        example = self.nearest(sure, differences) if sure else None
        return DistanceVector(self.loops, (*zeros, *distances), example)

    def component(self, difference: Linear, known: int | None) -> Distance:
        """Return the distance if it is always the same, else its direction.

        Parameters
        ----------
        known
            A distance that occurs; None if it is not known whether any does.
        """
        if known is not None:
            is_other = comparison("ne", difference.plus(ONE, -known))
            if self.system.solve(is_other) is None:
                return known
        tests: dict[int, Formula] = {
            1: AtLeast(difference.plus(ONE, -1)),
            0: Zero(difference),
            -1: AtLeast(Linear({}, -1).plus(difference, -1)),
        }
        signs = frozenset(n for n, test in tests.items() if self.system.solve(test) is not None)
        return 0 if signs == {0} else _DIRECTIONS.get(signs, "*")

    def nearest(self, found: Witness, differences: list[Linear]) -> Witness | None:
        """Return two points with the lexicographically least distances.

        None where a solution can neither be confirmed nor excluded, or the distance depends on a
        symbol, such as that from the last iteration of an inner loop to the first.
        """
        fixed: list[Formula] = []
        for loop, difference in zip(self.loops[self.depth :], differences, strict=True):
            if loop.size is None and not self.is_bounded(difference, fixed):
                return None
            best: Witness | None = found
            step = 1
            while best is not None:
                found = best
                known = _distance(found, loop)
                # Try ever greater steps down: most distances are small, but extents may be huge.
                below = Linear({}, known - step).plus(difference, -1)
                answer = self.system.solve(*fixed, AtLeast(below))
                if isinstance(answer, Doubt):
                    return None
                if answer is None and step > 1:
                    step = 1
                    continue
                best, step = answer, step * 2
            fixed.append(Zero(difference.plus(ONE, -_distance(found, loop))))
        return found

    def is_bounded(self, difference: Linear, fixed: Sequence[Formula]) -> bool:
        """Tell whether a distance has a lower bound whatever the symbols are."""
        far_back = AtLeast(Linear({}, -HUGE).plus(difference, -1))
        return self.system.solve(*fixed, far_back) is None


def _distance(witness: Witness, loop: Loop) -> int:
    return witness.second[loop] - witness.first[loop]
