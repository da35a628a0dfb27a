"""Layered layout of an acyclic graph: sources on top, arrows downward.

**Source:** K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical
System Structures", IEEE SMC-11(2), 1981: layers by the longest path, order in a layer by the mean
place of its neighbours. A node without incoming edges is placed just above its first successor.
Edges that skip a layer are curves; no space is reserved for them in that layer, unless the caller
adds nodes for them and gives the layers (`dlcompiler.views.graphs.picture`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)
_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Place(Generic[N]):
    """Position of a node: top left corner and size [px]."""

    node: N
    x: float
    y: float
    w: float
    h: float

    @property
    def above(self) -> tuple[float, float]:
        """Middle of the upper side."""
        return self.x + self.w / 2, self.y

    @property
    def below(self) -> tuple[float, float]:
        """Middle of the lower side."""
        return self.x + self.w / 2, self.y + self.h


def layered(
    sizes: Mapping[N, tuple[float, float]],
    edges: Sequence[tuple[N, N]],
    *,
    gap: tuple[float, float] = (18.0, 34.0),
    margin: float = 6.0,
    levels: Mapping[N, int] | None = None,
) -> dict[N, Place[N]]:
    """Place the nodes of a graph.

    Parameters
    ----------
    sizes
        Width and height of each node [px]. Their order breaks ties.
    edges
        Pairs (from, to); the graph must be acyclic.
    gap
        Least distance across and down; [px].
    margin
        Distance of the graph from the left and the upper edge [px].
    levels
        Layer of each node, from 0; an edge leads to a later one. By default as in the source.

    Returns
    -------
    dict
        The place of each node; none overlap.
    """
    if levels is None:
        found = _layers(list(sizes), edges)
    else:
        found = [[n for n in sizes if levels[n] == at] for at in range(max(levels.values()) + 1)]
    layers = _ordered(found, edges)
    widths = [sum(sizes[n][0] for n in layer) + gap[0] * (len(layer) - 1) for layer in layers]
    places: dict[N, Place[N]] = {}
    y = margin
    for layer, width in zip(layers, widths, strict=True):
        x = margin + (max(widths) - width) / 2
        tallest = max(sizes[node][1] for node in layer)
        for node in layer:
            w, h = sizes[node]
            places[node] = Place(node, x, y + (tallest - h) / 2, w, h)
            x += w + gap[0]
        y += tallest + gap[1]
    return places


def _layers(nodes: Sequence[N], edges: Sequence[tuple[N, N]]) -> list[list[N]]:
    before: dict[N, list[N]] = {node: [] for node in nodes}
    behind: dict[N, list[N]] = {node: [] for node in nodes}
    for source, target in edges:
        before[target].append(source)
        behind[source].append(target)
    level: dict[N, int] = {}
    waiting = list(nodes)
    while waiting:
        ready = [node for node in waiting if all(each in level for each in before[node])]
        if not ready:
            raise ValueError("the graph has a cycle")
        for node in ready:
            level[node] = 1 + max((level[each] for each in before[node]), default=-1)
        waiting = [node for node in waiting if node not in level]
    for node in nodes:
        targets = [level[target] for target in behind[node]]
        if not before[node] and targets:
            level[node] = min(targets) - 1
    deepest = max(level.values(), default=-1)
    return [[node for node in nodes if level[node] == n] for n in range(deepest + 1)]


def _ordered(layers: list[list[N]], edges: Sequence[tuple[N, N]]) -> list[list[N]]:
    """Order each layer by the mean place of its neighbours above, then below, in turn."""
    above: dict[N, list[N]] = {}
    below: dict[N, list[N]] = {}
    for source, target in edges:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        place = {
            node: n / max(len(layer) - 1, 1) for layer in layers for n, node in enumerate(layer)
        }

        def mean(node: N, near: dict[N, list[N]] = neighbours, at: dict[N, float] = place) -> float:
            beside = near.get(node)
            return sum(at[each] for each in beside) / len(beside) if beside else at[node]

        layers = [sorted(layer, key=mean) for layer in layers]
    return layers
