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
    low: Integers
    """The least that they add to each form, ``(forms,)``."""
    high: Integers
    """The most that they add to each form, ``(forms,)``."""


def range_of(
    forms: Sequence[Form], group: set[Var], extents: Mapping[Var, int]
) -> tuple[Integers, Integers] | None:
    """Return the least and the most that a group adds to each form; None if that takes too long."""
    var = plain(forms, group)
    if var is not None:
        ends = _factors(forms, var) * (extents[var] - 1)
        return np.minimum(ends, 0), np.maximum(ends, 0)
    if math.prod(extents[each] for each in group) > MOST_VALUES:
        return None
    values = enumerated(forms, group, extents)
    return values.min(axis=0), values.max(axis=0)


def contribution(
    forms: Sequence[Form],
    group: set[Var],
    extents: Mapping[Var, int],
    ends: tuple[Integers, Integers],
    others: tuple[Integers, Integers],
    tests: int,
) -> Contribution | None:
    """Return what a group of variables adds to forms; None if that takes too long.

    Parameters
    ----------
    forms
        Tests, and from number `tests` on addresses.
    group
        The variables.
    extents
        Their extents.
    ends
        What `range_of` returns for them.
    others : tuple of two arrays ``(forms,)``
        The least and the most that each form is without the group.
    tests
        Number of tests.
    """
    var = plain(forms, group)
    if var is None:
        values = enumerated(forms, group, extents)
        return Contribution(values, np.ones(len(values), np.int64), *ends)
    factors, extent = _factors(forms, var), extents[var]
    windows = [
        _undecided(int(factors[n]), extent, int(others[0][n]), int(others[1][n]))
        for n in range(tests)
        if factors[n]
    ]
    steps = [PERIOD // math.gcd(int(factor), PERIOD) for factor in factors[tests:]]
    chosen = _chosen(extent, windows, math.lcm(1, *steps))
    if chosen is None:
        return None
    places, counts = chosen
    return Contribution(places[:, None] * factors, counts, *ends)


def plain(forms: Sequence[Form], group: set[Var]) -> Var | None:
    """Return the variable of a group if it is one that occurs in no part."""
    if len(group) != 1:
        return None
    (var,) = group
    parts = (term for form in forms for term in form.terms if isinstance(term, Part))
    return None if any(var in part.variables for part in parts) else var


def enumerated(forms: Sequence[Form], group: set[Var], extents: Mapping[Var, int]) -> Integers:
    """Return what each combination of a group's variables adds, ``(combinations, forms)``."""
    loops = list(group)
    values = combinations(loops, extents)
    result = np.empty((math.prod(extents[var] for var in loops), len(forms)), np.int64)
    for number, form in enumerate(forms):
        result[:, number] = part_of(form, group).at(values)
    return result


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


def _factors(forms: Sequence[Form], var: Var) -> Integers:
    return np.array([form.terms.get(var, 0) for form in forms], np.int64)


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
