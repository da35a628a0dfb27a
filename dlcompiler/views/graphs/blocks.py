"""Blocks of a graph: kernels that stand together, so that a large graph can be read at first look.

A block is an interval of the kernels in the order in which they run. So no path leaves a block and
comes back, and the graph of the blocks has no cycle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dlcompiler.graph.operators import REGISTRY
from dlcompiler.views.graphs.fused_graph import FusedGraph

MOST_BOXES = 40
"""Most boxes that are drawn at first; [1]."""
FEW_BOXES = 24
"""Most boxes of a graph whose blocks are closed; [1]."""
_PARTS = re.compile(r"[_./:]+")


@dataclass(frozen=True, slots=True)
class Block:
    """Kernels that stand together."""

    name: str
    kernels: tuple[int, ...]
    """Their numbers; [1]."""
    like: str = ""
    """Name of an earlier block with the same calls; "" if there is none."""


def blocks_of(graph: FusedGraph) -> tuple[Block, ...]:
    """Return the blocks of a graph: each has several kernels, and a kernel is in at most one.

    Parameters
    ----------
    graph : FusedGraph
        The graph.

    Notes
    -----
    Kernels with a common name are a block: ``stage1_unit1`` of ``stage1_unit1_conv`` and
    ``stage1_unit1_relu``. A kernel without such a name belongs to the block that stands before and
    after it. The longest names are taken with which at most `FEW_BOXES` boxes remain. If no names
    do that, the kernels are cut into equal parts.
    """
    names = [_stem(graph, kernel.nodes) for kernel in graph.kernels]
    deepest = max(map(len, names), default=0)
    for depth in range(deepest, 0, -1):
        found = _runs(_filled([name[:depth] for name in names]))
        if len(found) <= FEW_BOXES:
            return _named(graph, found)
    return _named(graph, _parts(len(graph.kernels)))


def _stem(graph: FusedGraph, nodes: Sequence[int]) -> tuple[str, ...]:
    """Return the beginning that the names of all calls of a kernel share, without their ends."""
    calls = [graph.nodes[n] for n in nodes]
    words = [tuple(_PARTS.split(call.name))[:-1] for call in calls]
    shared: list[str] = []
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return () if _is_automatic(shared) else tuple(shared)


def _is_automatic(words: Sequence[str]) -> bool:
    """Tell whether a name begins with that of a call without its own: conv2d_3, add_2.scale.

    >>> _is_automatic(["add", "2"]), _is_automatic(["stage1"])
    (True, False)
    """
    text = "_".join(word for word in words if not word.isdigit())
    return text in {name.rpartition(".")[2] for name in REGISTRY}


def _filled(names: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Give kernels without a name the name that stands before and after them.

    >>> _filled([("a",), (), ("a",), (), ("b",)])
    [('a',), ('a',), ('a',), (), ('b',)]
    """
    found = list(names)
    last: int | None = None
    for n, name in enumerate(names):
        if not name:
            continue
        if last is not None and names[last] == name:
            found[last:n] = [name] * (n - last)
        last = n
    return found


def _runs(names: Sequence[tuple[str, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    """Return intervals of kernels with one name; a kernel without a name is by itself."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for name, members in groupby(range(len(names)), key=names.__getitem__):
        numbers = tuple(members)
        if name and len(numbers) > 1:
            found.append(("_".join(name), numbers))
        else:
            found += [("", (n,)) for n in numbers]
    return found


def _parts(count: int) -> list[tuple[str, tuple[int, ...]]]:
    """Cut kernels into equal parts."""
    size = max(1, -(-count // FEW_BOXES))
    return [("", tuple(range(at, min(at + size, count)))) for at in range(0, count, size)]


def _named(graph: FusedGraph, found: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    first: dict[object, str] = {}
    taken: dict[str, int] = {}
    for given, kernels in found:
        if len(kernels) < 2:
            continue
        ends = [graph.nodes[graph.kernels[k].nodes[0]].name for k in (kernels[0], kernels[-1])]
        name = given or f"{ends[0]} … {ends[1]}"
        taken[name] = taken.get(name, 0) + 1
        name = name if taken[name] == 1 else f"{name} ({taken[name]})"
        shape = _shape(graph, kernels)
        blocks.append(Block(name, kernels, first.get(shape, "")))
        first.setdefault(shape, name)
    return tuple(blocks)


def _shape(graph: FusedGraph, kernels: Sequence[int]) -> object:
    """Return a value that is equal for blocks with the same operators and types."""
    return tuple(
        tuple((graph.nodes[n].operator, graph.nodes[n].result) for n in graph.kernels[k].nodes)
        for k in kernels
    )
