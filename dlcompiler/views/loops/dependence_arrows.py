"""The arrows of dependences between the iterations of one or two loops, found by enumeration.

All loops but the two that are drawn keep one value. Each access is evaluated in each drawn
iteration, so that an arrow stands only where two accesses touch one element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.values import DataDependent, evaluate
from dlcompiler.ir import Var
from dlcompiler.views.loops.dependence_list import Entry

Iteration: TypeAlias = tuple[int, ...]
Arrow: TypeAlias = tuple[Iteration, Iteration]

MOST_ROWS, MOST_COLUMNS = 6, 10
"""Iterations of the two loops that are drawn, at most."""
_MOST_EVALUATED = 20_000


@dataclass(frozen=True)
class Window:
    """The drawn iterations of one or two loops; all other loops keep a fixed value."""

    loops: tuple[Loop, ...]
    """Outermost first."""
    counts: Iteration
    """How many iterations of each are drawn, from 0."""
    fixed: Mapping[Loop, int]
    """The values of other loops; 0 for those that are not here."""

    @property
    def iterations(self) -> list[Iteration]:
        """The drawn iterations, in the order in which they run."""
        return list(itertools.product(*map(range, self.counts)))


def window_of(loops: Sequence[Loop], fixed: Mapping[Loop, int] | None = None) -> Window:
    """Return the window of the first iterations of one or two loops."""
    most = (MOST_ROWS, MOST_COLUMNS)[-len(loops) :]
    sizes = (loop.size if loop.size is not None else n for loop, n in zip(loops, most, strict=True))
    counts = tuple(min(size, n) for size, n in zip(sizes, most, strict=True))
    return Window(tuple(loops), counts, fixed or {})


def arrows_of(entry: Entry, window: Window) -> list[Arrow] | None:
    """Return the arrows of an entry: from each iteration to the next that touches the same element.

    Returns
    -------
    list of Arrow or None
        None if the elements depend on data, or there are too many to enumerate.
    """
    found: dict[Arrow, None] = {}
    if entry.loop not in window.loops or not set(window.loops) <= set(entry.loops):
        return []
    for each in entry.members:
        try:
            pairs = _nearest(each.source, each.sink, entry.loops, window)
        except (DataDependent, _TooManyError):
            return None
        for arrow in pairs:
            if _carrier(arrow, window) is entry.loop:
                found[arrow] = None
    return list(found)


class _TooManyError(Exception):
    """There are too many points to enumerate."""


def _nearest(source: Access, sink: Access, common: Sequence[Loop], window: Window) -> list[Arrow]:
    iterations = window.iterations
    later: dict[tuple[int, ...], list[Iteration]] = {}
    for at in iterations:
        for element in _elements(sink, common, window, at):
            later.setdefault(element, []).append(at)
    arrows = []
    for at in iterations:
        next_ = [
            other
            for element in _elements(source, common, window, at)
            for other in later.get(element, ())
            if other > at
        ]
        if next_:
            arrows.append((at, min(next_)))
    return arrows


def _elements(
    access: Access, common: Sequence[Loop], window: Window, at: Iteration
) -> set[tuple[int, ...]]:
    """Return the elements that an access touches in one iteration of the common loops."""
    values: dict[Var, int] = {loop.var: window.fixed.get(loop, 0) for loop in common}
    values |= {loop.var: n for loop, n in zip(window.loops, at, strict=True)}
    inner = access.loops[len(common) :]
    extents = [evaluate(loop.extent, values) for loop in inner]
    if math.prod(extents) * math.prod(window.counts) > _MOST_EVALUATED:
        raise _TooManyError
    found = set()
    for point in itertools.product(*map(range, extents)):
        here = {**values, **{loop.var: n for loop, n in zip(inner, point, strict=True)}}
        if all(evaluate(condition, here) for condition in access.conditions):
            found.add(tuple(evaluate(index, here) for index in access.indices))
    return found


def _carrier(arrow: Arrow, window: Window) -> Loop | None:
    """Return the outermost loop in which the ends of an arrow differ."""
    pairs = zip(window.loops, *arrow, strict=True)
    return next((loop for loop, first, second in pairs if first != second), None)
