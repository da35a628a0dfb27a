"""Order the layers of a graph so that few edges cross.

**Source:** K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical
System Structures", IEEE SMC-11(2), 1981: the order in a layer is that of the mean places of the
neighbours. W. Barth, M. Jünger, P. Mutzel, "Simple and Efficient Bilayer Cross Counting", 2002: the
crossings between two layers are the inversions of the ends of the sorted edges.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
_SWEEPS = 12
_PATIENCE = 4
"""Sweeps without fewer crossings after which the search ends; [1]."""


def ordered(layers: Sequence[Sequence[N]], edges: Iterable[tuple[N, N]]) -> list[list[N]]:
    """Return the layers in an order with few crossings.

    Parameters
    ----------
    layers : sequence of sequence
        The nodes of each layer; their order breaks ties.
    edges : iterable of pair
        Each from a layer to the next one.

    Examples
    --------
    >>> ordered([["a", "b"], ["x", "y"]], [("a", "y"), ("b", "x")])
    [['a', 'b'], ['y', 'x']]
    """
    above: dict[N, list[N]] = defaultdict(list)
    below: dict[N, list[N]] = defaultdict(list)
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    current = [list(layer) for layer in layers]
    best, fewest, stale = current, crossings(current, below), 0
    for sweep in range(_SWEEPS):
        if not fewest or stale == _PATIENCE:
            break
        current = _swept(current, above if sweep % 2 == 0 else below, is_down=sweep % 2 == 0)
        found = crossings(current, below)
        stale += 1
        if found < fewest:
            best, fewest, stale = current, found, 0
    return best


def _swept(
    layers: Sequence[Sequence[N]], near: Mapping[N, Sequence[N]], *, is_down: bool
) -> list[list[N]]:
    """Return layers of which each is sorted by the layer before it, from one end to the other."""
    done: list[list[N]] = []
    place: dict[N, float] = {}
    for layer in layers if is_down else reversed(layers):
        own = {node: n / max(len(layer) - 1, 1) for n, node in enumerate(layer)}

        def mean(node: N, own: Mapping[N, float] = own) -> float:
            beside = near.get(node, ())
            return sum(place[each] for each in beside) / len(beside) if beside else own[node]

        result = sorted(layer, key=mean)
        place.update((node, n / max(len(result) - 1, 1)) for n, node in enumerate(result))
        done.append(result)
    return done if is_down else done[::-1]


def crossings(layers: Sequence[Sequence[N]], below: Mapping[N, Sequence[N]]) -> int:
    """Return how many pairs of edges cross; [1].

    Examples
    --------
    >>> crossings([["a", "b"], ["x", "y"]], {"a": ["y"], "b": ["x"]})
    1
    """
    total = 0
    for upper, lower in pairwise(layers):
        place = {node: n for n, node in enumerate(lower)}
        passed: list[int] = []
        for node in upper:
            ends = sorted(place[each] for each in below.get(node, ()))
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total
