"""What the variables that all threads of a warp share add to forms, in all their combinations.

A variable that only occurs as a plain term, such as the number of a block, may take millions of
values. Two values are equivalent if they add the same remainder to the address, and if every test
is decided by both, whatever else is added, and on the same side. One value of each class is kept,
with the size of its class.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler.ir import Var
from dlcompiler.simulate.gpu.forms import Form, Integers, Part, Term
from dlcompiler.simulate.gpu.transactions import PERIOD

MOST_VALUES = 1 << 22
"""Most combinations of variables that are tried; [1]."""


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """What a group of variables adds to forms."""

    values: Integers
    """What they add, ``(classes, forms)``."""
    counts: Integers
    """How many combinations add that, ``(classes,)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """What one variable adds to forms in which it is only multiplied by a number."""

    factors: Integers
    """Factor of the variable in each form, ``(forms,)``."""
    extent: int
    """Number of its values."""

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """The least and the most that it adds to each form."""
        last = self.factors * (self.extent - 1)
        return np.minimum(last, 0), np.maximum(last, 0)

    def contribution(self, others: tuple[Integers, Integers], tests: int) -> Contribution | None:
        """Return what it adds to forms; None if that takes too long.

        Parameters
        ----------
        others : tuple of two arrays ``(forms,)``
            The least and the most that each form is without it.
        tests
            Number of forms that are tests; those from this number on are addresses.
        """
        factors, extent = self.factors.tolist(), self.extent
        windows = [
            _undecided(factors[n], extent, int(others[0][n]), int(others[1][n]))
            for n in range(tests)
            if factors[n]
        ]
        steps = [PERIOD // math.gcd(factor, PERIOD) for factor in factors[tests:]]
        chosen = _chosen(extent, windows, math.lcm(1, *steps))
        if chosen is None:
            return None
        places, counts = chosen
        return Contribution(places[:, None] * self.factors, counts)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What variables add to forms, listed for each combination of their values."""

    values: Integers
    """What each combination adds, ``(combinations, forms)``."""

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """The least and the most that they add to each form."""
        return self.values.min(axis=0), self.values.max(axis=0)

    def contribution(self, others: tuple[Integers, Integers], tests: int) -> Contribution:
        """Return what they add to forms."""
        return Contribution(self.values, np.ones(len(self.values), np.int64))


def added_by(
    forms: Sequence[Form], group: set[Var], extents: Mapping[Var, int]
) -> Plain | Listed | None:
    """Return what a group of variables adds to forms; None if that takes too long."""
    if (var := _plain(forms, group)) is not None:
        factors = np.array([form.terms.get(var, 0) for form in forms], np.int64)
        return Plain(factors, extents[var])
    loops = list(group)
    size = math.prod(extents[var] for var in loops)
    if size > MOST_VALUES:
        return None
    values = combinations(loops, extents)
    result = np.empty((size, len(forms)), np.int64)
    for number, form in enumerate(forms):
        result[:, number] = part_of(form, group).at(values)
    return Listed(result)


def _plain(forms: Sequence[Form], group: set[Var]) -> Var | None:
    """Return the variable of a group if it is one that occurs in no part."""
    if len(group) != 1:
        return None
    (var,) = group
    parts = (term for form in forms for term in form.terms if isinstance(term, Part))
    return None if any(var in part.variables for part in parts) else var


def combinations(loops: Sequence[Var], extents: Mapping[Var, int]) -> dict[Var, Integers]:
    """Return the values of variables in all their combinations, flat."""
    shape = tuple(extents[var] for var in loops)
    grid = np.indices(shape).reshape(len(shape), -1) if shape else np.empty((0, 1), np.int64)
    return dict(zip(loops, grid, strict=True))


def part_of(form: Form, group: set[Var]) -> Form:
    """Return the terms of a form that depend on variables of a group."""
    terms = {term: n for term, n in form.terms.items() if not group.isdisjoint(variables_in(term))}
    return Form(0, terms)


def variables_in(term: Term) -> frozenset[Var]:
    """Return the variables that a term depends on."""
    return term.variables if isinstance(term, Part) else frozenset({term})


def _undecided(factor: int, extent: int, low: int, high: int) -> tuple[int, int]:
    """Return the values, from the first to behind the last, at which a test may go either way.

    Its form is ``factor·value`` and something from `low` to `high`. It is decided where the form is
    above 0, or below, in any case.
    """
    first, last = -high, -low  # factor·value is between these, or the test is decided
    if factor < 0:
        factor, first, last = -factor, -last, -first
    start, end = -(-first // factor), last // factor + 1
    return min(max(start, 0), extent), min(max(end, 0), extent)


def _chosen(
    extent: int, windows: Sequence[tuple[int, int]], step: int
) -> tuple[Integers, Integers] | None:
    """Return a value of each class, and how many values it stands for.

    Inside a window each value is a class. Between two ends of windows, values a multiple of `step`
    apart are one class.
    """
    cuts = sorted({0, extent, *(end for window in windows for end in window)})
    places, counts = [], []
    total = 0
    for start, end in itertools.pairwise(cuts):
        is_inside = any(first <= start and end <= last for first, last in windows)
        size = end - start if is_inside else min(step, end - start)
        total += size
        if total > MOST_VALUES:
            return None
        offsets = np.arange(size)
        places.append(start + offsets)
        counts.append(
            np.ones(size, np.int64) if is_inside else -((offsets - (end - start)) // step)
        )
    return np.concatenate(places), np.concatenate(counts)
