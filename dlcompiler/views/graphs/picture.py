"""The picture of units: boxes in layers, and arrows that lead around the boxes between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from dlcompiler.views.graphs.units import Unit
from dlcompiler.views.render.boxes import box, box_size, extent_of
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.layered import Place, layered
from dlcompiler.views.render.scene import Mark

_BEND_PX = 4.0


@dataclass(frozen=True, slots=True)
class _Bend:
    """A place in a layer that an arrow passes: the boxes of the layer leave it free."""

    source: Unit
    target: Unit
    level: int


_Node: TypeAlias = Unit | _Bend


def picture(
    units: Sequence[Unit], texts: Mapping[Unit, Sequence[str]]
) -> tuple[float, float, list[Mark]]:
    """Return the width, the height and the marks of the picture of units.

    Parameters
    ----------
    units : sequence of Unit
        Each behind those that it reads.
    texts : mapping
        The lines of each box.
    """
    level = _levels(units)
    ways: list[tuple[_Node, ...]] = [
        (source, *_bends(source, unit, level), unit) for unit in units for source in unit.reads
    ]
    tallest: dict[int, float] = {}
    sizes: dict[_Node, tuple[float, float]] = {unit: box_size(texts[unit]) for unit in units}
    for unit in units:
        tallest[level[unit]] = max(tallest.get(level[unit], 0.0), sizes[unit][1])
    levels: dict[_Node, int] = {unit: level[unit] for unit in units}
    for way in ways:
        for bend in way[1:-1]:
            assert isinstance(bend, _Bend)
            levels[bend] = bend.level
            sizes[bend] = (_BEND_PX, tallest.get(bend.level, 0.0))
    edges: list[tuple[_Node, _Node]] = [pair for way in ways for pair in pairwise(way)]
    places = layered(sizes, edges, levels=levels) if units else {}
    spans = _spans(places, levels)
    marks = [_arrow([(places[node], spans[levels[node]]) for node in way]) for way in ways]
    for unit in units:
        fill = HUES[0] if len(unit.parts) > 1 and not unit.is_fold else "none"
        is_dashed = unit.is_input or unit.is_fold
        marks += box(places[unit], texts[unit], [], fill=fill, is_dashed=is_dashed)
    return *extent_of(places), marks


def _levels(units: Sequence[Unit]) -> dict[Unit, int]:
    """Return the layer of each unit: behind all that it reads; an input just before its reader."""
    level: dict[Unit, int] = {}
    for unit in units:
        level[unit] = 1 + max((level[each] for each in unit.reads), default=-1)
    first: dict[Unit, int] = {}
    for unit in units:
        for source in unit.reads:
            first[source] = min(first.get(source, level[unit]), level[unit])
    for unit in units:
        if not unit.reads and unit in first:
            level[unit] = first[unit] - 1
    return level


def _bends(source: Unit, target: Unit, level: Mapping[Unit, int]) -> list[_Bend]:
    between = range(level[source] + 1, level[target])
    return [_Bend(source, target, number) for number in between]


def _spans(
    places: Mapping[_Node, Place[_Node]], levels: Mapping[_Node, int]
) -> dict[int, tuple[float, float]]:
    """Return the upper and the lower edge of each layer; [px]."""
    found: dict[int, tuple[float, float]] = {}
    for node, place in places.items():
        top, bottom = found.get(levels[node], (place.y, place.y))
        found[levels[node]] = min(top, place.y), max(bottom, place.y + place.h)
    return found


def _arrow(way: Sequence[tuple[Place[_Node], tuple[float, float]]]) -> Mark:
    """Return the arrow through places, each with the span of its layer.

    It runs straight inside a layer, where boxes may be beside it, and curves between layers.
    """
    (first, (_, bottom)), *others = way
    x, y = first.below
    steps = [f"M{x:.1f} {y:.1f}"]
    for place, (top, next_bottom) in others:
        to_x, to_y = place.above
        middle = (bottom + top) / 2
        steps += [
            f"L{x:.1f} {bottom:.1f}" if bottom > y else "",
            f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {top:.1f}",
            f"L{to_x:.1f} {to_y:.1f}" if to_y > top else "",
        ]
        x, y, bottom = to_x, to_y, next_bottom
    return {"shape": "path", "role": "edge", "d": f"{''.join(steps)}m-4 -7l4 7l4 -7"}
