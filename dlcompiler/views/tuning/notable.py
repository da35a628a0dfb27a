"""Marks of special points on a map: the best and chosen trial, the user's config, the walkers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeAlias

from dlcompiler.views.render.scene import Mark
from dlcompiler.views.tuning.chart import LEFT, ORANGE, PINK, legend, line
from dlcompiler.views.tuning.series import glyph_mark, key_of
from dlcompiler.views.tuning.space_points import Ground, scale_of_rates
from dlcompiler.views.tuning.watched import Watched

Place: TypeAlias = Callable[[int], tuple[float, float]]
"""Maps a point of the space to its position in the picture [px]."""
_BEST = glyph_mark("ring", "currentColor", 8.0)
_OWN = glyph_mark("diamond", PINK, 7.0)
MOST_WALKERS = 12
"""Largest number of walkers drawn; more paths cannot be distinguished."""
_WALKER = glyph_mark("cross", ORANGE, 4.0)


def notable(seen: Watched, ground: Ground, place: Place, chosen: int | None) -> list[Mark]:
    """Return marks of the walkers' moves, the best and chosen trial, and the user's config."""
    marks: list[Mark] = []
    standing = [each for each in seen.rounds if each.walkers][-2:]
    if len(standing) == 2:
        ways = zip(standing[0].walkers, standing[1].walkers, strict=False)
        for old, new in islice(ways, MOST_WALKERS):
            if old != new:
                (x, y), (x2, y2) = place(old), place(new)
                marks.append(line(x, y, x2, y2, "edge"))
    if standing:
        xy = [value for point in standing[-1].walkers[:MOST_WALKERS] for value in place(point)]
        marks.append(_WALKER | {"xy": xy, "keys": []})
    best, picked = seen.best, None if chosen is None else seen.row(chosen)
    for row, look in ((best, _BEST), (picked, glyph_mark("ring", "currentColor", 5.0))):
        if row is not None:
            xy = list(place(row.point))
            marks.append(look | {"xy": xy, "keys": [key_of(row.index)]})
    if ground.own is not None:
        marks.append(_OWN | {"xy": list(place(ground.own)), "keys": []})
    return marks


def map_legend(seen: Watched, ground: Ground, below: float, top: float, width: float) -> list[Mark]:
    """Return the legend of a map: its colours and signs."""
    items = [("the best", _BEST)]
    if ground.own is not None:
        items.append(("your own", _OWN))
    count = max((len(each.walkers) for each in seen.rounds), default=0)
    if count:
        few = f"{MOST_WALKERS} of {count} walkers" if count > MOST_WALKERS else "walkers"
        items.append((f"{few} and their last moves", _WALKER))
    rates = scale_of_rates(top, LEFT, below + 12, seen.provenance.kind)
    return [*rates, *legend(items, LEFT, below + 44, width - LEFT)]
