"""Horizontal places of the nodes of ordered layers: near their neighbours, edges straight.

Each sweep places one layer after another. The nodes of a layer want to stand below (or above) their
neighbours; their order and their distances are kept. The places with the least sum of weighted
squares are found by pooling neighbours that would overlap.

**Source:** R. E. Barlow and others, "Statistical Inference under Order Restrictions", 1972: the
pool-adjacent-violators algorithm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)
_SWEEPS = 6
_STRAIGHT = 8.0
"""Weight of a node of a long edge, which would bend, against that of a box; [1]."""


@dataclass(frozen=True, slots=True)
class Segment(Generic[N]):
    """A part of an edge, from a layer to the next one."""

    source: N
    target: N
    leaves: float = 0.0
    """Where it leaves its source, from the middle of it; [px]."""
    arrives: float = 0.0
    """Where it arrives at its target, from the middle of it; [px]."""


def middles(
    layers: Sequence[Sequence[N]], widths: Mapping[N, float], segments: Iterable[Segment[N]],
    *, gap: float, thin: frozenset[N] = frozenset(),
) -> dict[N, float]:  # fmt: skip
    """Return the horizontal middle of each node; the leftmost edge is at 0; [px].

    Parameters
    ----------
    layers : sequence of sequence
        The nodes of each layer, from left to right.
    widths : mapping
        Width of each node; [px].
    segments : iterable of Segment
        Edges between neighbouring layers.
    gap : float
        Least distance of two nodes; [px].
    thin : frozenset
        Nodes that are parts of long edges: these become straight first.
    """
    above: dict[N, list[tuple[N, float]]] = defaultdict(list)
    below: dict[N, list[tuple[N, float]]] = defaultdict(list)
    for segment in segments:
        shift = segment.leaves - segment.arrives
        above[segment.target].append((segment.source, shift))
        below[segment.source].append((segment.target, -shift))
    at = _packed(layers, widths, gap)
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [_wanted(node, near[node], at, thin) for node in layer]
            at.update(zip(layer, _spread(layer, wanted, widths, gap), strict=True))
    left = min((at[node] - widths[node] / 2 for layer in layers for node in layer), default=0.0)
    return {node: x - left for node, x in at.items()}


def _packed(layers: Sequence[Sequence[N]], widths: Mapping[N, float], gap: float) -> dict[N, float]:
    at: dict[N, float] = {}
    for layer in layers:
        x = -(sum(widths[node] for node in layer) + gap * (len(layer) - 1)) / 2
        for node in layer:
            at[node] = x + widths[node] / 2
            x += widths[node] + gap
    return at


def _wanted(
    node: N, near: Sequence[tuple[N, float]], at: Mapping[N, float], thin: frozenset[N]
) -> tuple[float, float]:
    """Return where a node wants to be, and how much."""
    if not near:
        return at[node], 0.1
    found = sorted(at[other] + shift for other, shift in near)
    middle = (found[(len(found) - 1) // 2] + found[len(found) // 2]) / 2
    return middle, _STRAIGHT if node in thin else 1.0


def _spread(
    layer: Sequence[N], wanted: Sequence[tuple[float, float]], widths: Mapping[N, float], gap: float
) -> list[float]:
    """Return places in order that are far enough from each other and near to the wanted ones."""
    shifts, shift = [], 0.0
    for n, node in enumerate(layer):
        if n:
            shift += widths[layer[n - 1]] / 2 + gap + widths[node] / 2
        shifts.append(shift)
    pools: list[tuple[float, float, int]] = []
    """Mean place, weight and number of nodes of those that stand directly beside each other."""
    for (place, weight), offset in zip(wanted, shifts, strict=True):
        mean, total, count = place - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, others, more = pools.pop()
            mean = (mean * total + other * others) / (total + others)
            total, count = total + others, count + more
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, shifts, strict=True)]
