"""Roofline: the measured rate of each state below what the machine can do at most.

The horizontal axis is the arithmetic intensity: operations for each byte that is moved between the
last cache and memory, predicted for each state (`dlcompiler.analysis.traffic`). The vertical axis
is the measured rate. The state that is shown has a sign for each nearer level of memory, too, at
the intensity of that level.

**Source:** S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009; a ceiling and an
intensity for each level: A. Ilic, F. Pratas, L. Sousa, "Cache-aware Roofline Model", IEEE CAL
13(1), 2014, and C. Yang et al., "Hierarchical Roofline Analysis", CCPE 32, 2020.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dlcompiler.measurement.ceilings import MEMORY, Ceilings
from dlcompiler.runtime.timing import format_ratio
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Cell, Glyph, Mark, Role, Scene, beside
from dlcompiler.views.render.units import percent
from dlcompiler.views.tuning.chart import (
    BOTTOM,
    DASHES,
    LEFT,
    TOP,
    Scale,
    axes,
    line,
    log_scale,
    number,
    text,
)

PEAK = "FMA peak"
_WIDTH, _HEIGHT, _LEGEND, _MARGIN = 420.0, 250.0, 240.0, 22.0
"""Size of the plot, width of the list of ceilings, and room right of the plot [px]."""
_ENTRY = 18.0
"""Height of an entry of the list [px]."""
_LABEL_PX = 14.0
"""Least distance of two labels [px]."""
_GLYPHS: tuple[Glyph, ...] = ("diamond", "cross", "tick", "ring")


@dataclass(frozen=True, slots=True)
class Point:
    """A measured state."""

    id: str
    title: str
    gflops: float
    """Measured rate [GFLOP/s]."""
    flops: float
    """Operations of a call."""
    moved_bytes: Mapping[str, int] = field(default_factory=dict)
    """Predicted traffic of each cache by its name, nearest first [byte]; empty if unknown."""
    compulsory_bytes: int = 0
    """Size of all inputs and outputs [byte]."""
    resident: str = ""
    """The nearest cache that holds all arrays from call to call; '' if none does."""
    threads: int = 1
    is_here: bool = False

    @property
    def intensity(self) -> float:
        """Operations for each byte from and to memory [FLOP/byte]."""
        moved = list(self.moved_bytes.values())
        return self.flops / (moved[-1] if moved else self.compulsory_bytes)

    @property
    def is_predicted(self) -> bool:
        """Whether the traffic is predicted; otherwise it is the size of inputs and outputs."""
        return bool(self.moved_bytes)

    def intensities(self) -> dict[str, float]:
        """Return the operations for each byte that is read from a level, by the level's name.

        What a cache is filled with comes from the level behind it: the traffic of ``L1d`` is read
        from ``L2``, that of the last cache from memory.
        """
        names = [*list(self.moved_bytes)[1:], MEMORY]
        return {
            name: self.flops / moved
            for name, moved in zip(names, self.moved_bytes.values(), strict=False)
            if moved
        } or {MEMORY: self.intensity}

    def nearest(self, ceilings: Ceilings) -> tuple[str, float]:
        """Return the lowest ceiling over the point, and the share of it that is reached."""
        known = dict(ceilings.reads)
        bounds = {
            f"reads from {level}": value * known[level]
            for level, value in self.intensities().items()
            if level in known and level not in self.unread(ceilings)
        }
        bounds[PEAK] = ceilings.peak_gflops
        name = min(bounds, key=bounds.__getitem__)
        return name, self.gflops / bounds[name]

    def unread(self, ceilings: Ceilings) -> list[str]:
        """Return the levels behind the cache that holds all arrays.

        A call that is repeated reads nothing from them: the arrays are in this cache already.
        """
        names = [name for name, _ in ceilings.reads]
        return names[names.index(self.resident) + 1 :] if self.resident in names else []


def roofline_scene(points: Sequence[Point], ceilings: Ceilings) -> Scene:
    """Return the roofline of the measured states.

    Parameters
    ----------
    points
        The states in the order of the branch; may be empty.
    ceilings
        Of the machine that they were measured on.

    Returns
    -------
    Scene
        The keys of a point are the id of its state.
    """
    x, y = _scales(points, ceilings)
    labels = ("FLOP / byte from and to memory", "GFLOP/s, measured")
    marks = axes(x, y, labels)
    marks += _roofs(ceilings, x, y)
    marks += _levels_of_current(points, ceilings, x, y)
    marks += _points(points, ceilings, x, y)
    names = _names(ceilings)
    rows = len(ceilings.reads) + 2
    return {
        "title": "Roofline",
        "summary": _summary(points, ceilings),
        "how_to_read": _how_to_read(points, ceilings),
        **beside(
            (LEFT + _WIDTH + _MARGIN, TOP + _HEIGHT + BOTTOM, marks),
            (_LEGEND, TOP + rows * _ENTRY, names),
        ),
        "table": {"columns": _COLUMNS, "rows": _rows(points, ceilings)},
    }


def _scales(points: Sequence[Point], ceilings: Ceilings) -> tuple[Scale, Scale]:
    slowest, fastest = (f(rate for _, rate in ceilings.reads) for f in (min, max))
    here = [value for p in points if p.is_here for value in p.intensities().values()]
    inside = [p.intensity for p in points] + here
    ridges = [ceilings.peak_gflops / fastest / 3, ceilings.peak_gflops / slowest]
    x = log_scale([*inside, *ridges, 2 * max([*inside, *ridges])], LEFT, LEFT + _WIDTH)
    lowest = min([x.low * slowest, *(p.gflops for p in points)])
    # A point far below the roofs must not make these a thin band: three decades are shown at most
    # unless a state was that slow.
    low = min([max(lowest, ceilings.peak_gflops / 1e3), *(p.gflops / 1.5 for p in points)])
    top = max([ceilings.peak_gflops, *(p.gflops for p in points)])
    return x, log_scale([low, 1.2 * top], TOP + _HEIGHT, TOP)


def _roofs(ceilings: Ceilings, x: Scale, y: Scale) -> list[Mark]:
    """Return the ceilings as lines."""
    peak = ceilings.peak_gflops
    left = max(x.low, peak / max(rate for _, rate in ceilings.reads))
    flat = line(x.at(left), y.at(peak), x.end, y.at(peak), "curve")
    marks: list[Mark] = [{**flat, "stroke": HUES[1], "title": _named("FMA peak", ceilings)}]
    for name, rate, color, dash in _ranked(ceilings):
        low = max(x.low, y.low / rate)
        ridge = min(peak / rate, x.high)
        if low < ridge:
            slope = line(x.at(low), y.at(low * rate), x.at(ridge), y.at(ridge * rate), "curve")
            marks.append({**slope, "stroke": color, "dash": dash,
                          "title": _named(f"reads from {name}", ceilings)})  # fmt: skip
    return marks


def _ranked(ceilings: Ceilings) -> list[tuple[str, float, str, str]]:
    """Return the levels, fastest first: name, rate [GB/s], colour and dashes of each."""
    ranked = sorted(ceilings.reads, key=lambda item: -item[1])
    hues = (0, 2, 3, 4, 5)
    return [
        (name, rate, HUES[hues[place % 5]], DASHES[1 + place % 5])
        for place, (name, rate) in enumerate(ranked)
    ]


def _names(ceilings: Ceilings) -> list[Mark]:
    """Return the list that names the ceilings, highest first."""
    peak = number(ceilings.peak_gflops)
    entries = [(f"FMA peak, {ceilings.dtype}: {peak} GFLOP/s", HUES[1], "")]
    entries += [(f"{name}: {number(rate)} GB/s", color, dash)
                for name, rate, color, dash in _ranked(ceilings)]  # fmt: skip
    marks: list[Mark] = []
    for place, (words, color, dash) in enumerate(entries):
        row = TOP + 10 + _ENTRY * place
        sample = line(4, row - 4, 24, row - 4, "curve")
        marks.append({**sample, "stroke": color, **({"dash": dash} if dash else {})})
        marks.append(text(30, row, words, "start", "label"))
    threads = "1 thread" if ceilings.threads == 1 else f"{ceilings.threads} threads"
    after = TOP + 10 + _ENTRY * len(entries)
    marks.append(text(4, after, f"{ceilings.provenance.kind}, {threads}"))
    return marks


def _named(name: str, ceilings: Ceilings) -> str:
    return f"{name}, {ceilings.provenance}, with as many threads: {ceilings.threads}"


def _points(points: Sequence[Point], ceilings: Ceilings, x: Scale, y: Scale) -> list[Mark]:
    """Return a sign with a number for each state; numbers are moved apart."""
    marks: list[Mark] = []
    taken: list[tuple[float, float]] = []
    for place, point in enumerate(points, 1):
        at = x.at(point.intensity), y.at(point.gflops)
        is_same = point.threads == ceilings.threads
        glyph: Glyph = "disc" if is_same else "ring"
        dot: Mark = {
            "shape": "dots", "role": "dots", "glyph": glyph, "r": 6.0 if point.is_here else 4.5,
            "xy": [*at], "keys": [point.id], "stroke": HUES[0], "title": _title(place, point),
            "fill": HUES[0] if is_same else "none",
        }  # fmt: skip
        label = _free(at, taken)
        taken.append(label)
        role: Role = "name" if point.is_here else "label"
        marks += [dot, text(*label, str(place), "start", role)]
    return marks


def _free(point: tuple[float, float], taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the nearest place beside a point at which a number overlaps none of `taken`."""
    for step in range(len(taken) + 1):
        for sign, side in itertools.product((1, -1), (9.0, -25.0)):
            x, y = point[0] + side, point[1] + 4 + sign * step * _LABEL_PX
            is_inside = TOP <= y <= TOP + _HEIGHT
            if is_inside and all(abs(x - a) > 16 or abs(y - b) >= _LABEL_PX for a, b in taken):
                return x, y
    return point[0] + 9, point[1] + 4


def _levels_of_current(
    points: Sequence[Point], ceilings: Ceilings, x: Scale, y: Scale
) -> list[Mark]:
    """Return a sign for each memory level, at the intensity of the current state there."""
    here = next((point for point in points if point.is_here and point.is_predicted), None)
    if here is None:
        return []
    known, at = here.intensities(), y.at(here.gflops)
    places = [x.at(value) for value in known.values()]
    marks = [line(min(places), at, max(places), at, "axis")]
    ranked = sorted(ceilings.reads, key=lambda item: -item[1])
    for place, (name, _) in enumerate(ranked):
        if name in known and name != MEMORY:
            color = HUES[(0, 2, 3, 4, 5)[place % 5]]
            marks.append({
                "shape": "dots", "role": "dots", "glyph": "diamond", "r": 4.5, "stroke": color,
                "fill": color, "xy": [x.at(known[name]), at], "keys": [here.id],
                "title": f"{number(known[name])} FLOP for each byte from {name}, predicted",
            })  # fmt: skip
    return marks


def _title(place: int, point: Point) -> str:
    origin = "predicted traffic" if point.is_predicted else "the size of inputs and outputs"
    return (
        f"{place}: {point.title}: {number(point.gflops)} GFLOP/s measured, "
        f"{point.threads} thread{'' if point.threads == 1 else 's'}; "
        f"{number(point.intensity)} FLOP/byte by {origin}"
    )


def _summary(points: Sequence[Point], ceilings: Ceilings) -> str:
    here = next((point for point in points if point.is_here), points[-1] if points else None)
    if here is None:
        return "No state is measured yet: Run places the current state below these ceilings."
    name, share = here.nearest(ceilings)
    where = "The current state" if here.is_here else f"The last state, {here.title},"
    if here.threads != ceilings.threads:
        return f"{where} ran with another number of threads than these ceilings."
    if share > 1.02:
        busy = "the machine was busy when its ceilings were measured: measure it again"
        why = busy if name == PEAK else f"it moves less than predicted, or {busy}"
        return f"{where} reaches {format_ratio(share)} its lowest ceiling, {name}: {why}."
    return f"{where} reaches {percent(share)} of its lowest ceiling, {name}."


def _how_to_read(points: Sequence[Point], ceilings: Ceilings) -> str:
    parts = [
        "both scales are logarithmic. No program can be above the solid line, nor above the "
        "slanted line of a level that it reads from. A number is a measured state, in the order "
        "of the table; further right is less traffic for each operation. Rates are measured; the "
        "traffic, and so the place to the right, is predicted."
    ]
    if any(point.is_here and point.is_predicted for point in points):
        parts.append(
            "Diamonds are the current state by what it reads from the caches: compare each with "
            "the line of its colour."
        )
    resident = sorted({point.resident for point in points if point.resident})
    if resident:
        parts.append(
            f"All arrays fit in {' or '.join(resident)} and stay there from call to call: such a "
            "state may be above the lines of the levels behind."
        )
    if any(point.threads != ceilings.threads for point in points):
        parts.append("Rings ran with another number of threads than the ceilings.")
    return " ".join(parts)


_COLUMNS = ["no.", "state", "GFLOP/s", "threads", "level", "FLOP/byte", "origin", "ceiling",
            "reached"]  # fmt: skip


def _rows(points: Sequence[Point], ceilings: Ceilings) -> list[list[Cell]]:
    """Return the ceilings, and each state at each level of memory."""
    rows: list[list[Cell]] = [
        [
            None,
            "FMA peak",
            number(ceilings.peak_gflops),
            ceilings.threads,
            "",
            "",
            "measured",
            "",
            "",
        ]
    ]
    rows += [
        [None, f"reads from {name}", "", ceilings.threads, name, "", "measured",
         f"{number(rate)} GB/s", ""]
        for name, rate in ceilings.reads
    ]  # fmt: skip
    known = dict(ceilings.reads)
    for place, point in enumerate(points, 1):
        origin = "predicted" if point.is_predicted else "inputs and outputs"
        for level, intensity in point.intensities().items():
            bound = min(ceilings.peak_gflops, intensity * known[level]) if level in known else None
            is_read = level not in point.unread(ceilings)
            is_fair = bound is not None and is_read and point.threads == ceilings.threads
            rows.append(
                [place, point.title, number(point.gflops), point.threads, level,
                 number(intensity), origin, f"{number(bound)} GFLOP/s" if bound else "",
                 percent(point.gflops / bound) if is_fair and bound else ""]
            )  # fmt: skip
    return rows
