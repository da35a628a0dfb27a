"""Draw programs of an accelerator below its roof: the peak, and what it moves to and from DRAM.

**Source:** S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009. Figure 10 of
T. Chen et al., "TVM", OSDI 2018, shows the layers of a network on VDLA in this form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler.pipeline.rooflines import AcceleratorRoofline, RooflinePoint
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Cell, Glyph, Mark, Scene
from dlcompiler.views.render.text import shortened
from dlcompiler.views.render.units import percent
from dlcompiler.views.tuning.chart import (
    BOTTOM,
    LEFT,
    TOP,
    axes,
    legend,
    line,
    log_scale,
    number,
    text,
)

_WIDTH, _HEIGHT, _MARGIN = 560.0, 260.0, 30.0
_GLYPHS: tuple[Glyph, ...] = ("disc", "diamond", "cross", "ring", "tick")
_COLUMNS = ("program", "series", "operations", "bytes moved", "operations a byte",
            "cycles (simulated)", "operations a cycle", "bound", "limited by", "of the bound",
            "of the peak")  # fmt: skip
_LABEL_PX = 13.0
_MOST_LABELS = 40
"""Points up to which each has its name; [1]."""


def roofline_scene(roofline: AcceleratorRoofline) -> Scene:
    """Return the picture of a roofline."""
    return _Picture(roofline).scene()


@dataclass
class _Picture:
    roofline: AcceleratorRoofline

    def __post_init__(self) -> None:
        self.peak, self.bandwidth = self.roofline.peak, self.roofline.bandwidth
        self.points = [p for p in self.roofline.points if p.rate > 0]
        ridge = self.peak / self.bandwidth
        places = [point.demand.intensity for point in self.points if point.demand.bytes]
        self.x = log_scale([*places, ridge / 4, ridge * 4], LEFT, LEFT + _WIDTH)
        rates = [point.rate for point in self.points]
        low = min([*rates, self.peak / 10])
        self.y = log_scale([low, 1.3 * self.peak], TOP + _HEIGHT, TOP)
        series = dict.fromkeys(point.series for point in self.points)
        self.looks = {
            name: (HUES[(n + 2) % len(HUES)], _GLYPHS[n % len(_GLYPHS)])
            for n, name in enumerate(series)
        }

    def scene(self) -> Scene:
        labels = ("operations / byte to and from DRAM", "operations / cycle, simulated")
        marks = [*axes(self.x, self.y, labels), *self._roof(), *self._joins(), *self._dots()]
        height = TOP + _HEIGHT + BOTTOM
        names = [name for name in self.looks if name]
        if names:
            samples: list[tuple[str, Mark]] = [
                (shortened(name, 40), self._dot(name, 0, 0)) for name in names
            ]
            marks += legend(samples, LEFT, height + 12, _WIDTH)
            height = max(mark["y"] for mark in marks if mark["shape"] == "text") + 8
        return {
            "title": "Roofline of an accelerator",
            "summary": self._summary(),
            "how_to_read": "both scales are logarithmic. No program can be above the line: at the "
            "left the bandwidth limits it, at the right the unit that runs tensor instructions. "
            "Further right is fewer bytes for each operation, higher is faster. Points of one "
            "name are joined. All bytes that are moved count, also micro-ops and "
            "instructions that are fetched.",
            "width": LEFT + _WIDTH + _MARGIN,
            "height": height,
            "marks": marks,
            "table": {"columns": list(_COLUMNS), "rows": [self._cells(p) for p in
                                                          self.roofline.points]},
        }  # fmt: skip

    def _roof(self) -> list[Mark]:
        ridge, low = self.peak / self.bandwidth, max(self.x.low, self.y.low / self.bandwidth)
        flat = line(self.x.at(ridge), self.y.at(self.peak), self.x.end, self.y.at(self.peak),
                    "curve")  # fmt: skip
        slope = line(self.x.at(low), self.y.at(low * self.bandwidth), self.x.at(ridge),
                     self.y.at(self.peak), "curve")  # fmt: skip
        peak = f"peak: {number(self.peak)} operations a cycle"
        memory = f"DRAM: {number(self.bandwidth)} bytes a cycle"
        return [
            {**flat, "stroke": HUES[1], "title": peak},
            {**slope, "stroke": HUES[0], "dash": "7 3", "title": memory},
            text(self.x.end, self.y.at(self.peak) - 5, peak, "end", "label"),
            text(self.x.at(ridge) - 8, self.y.at(self.peak) - 5, memory, "end", "label"),
        ]

    def _joins(self) -> list[Mark]:
        """Return a line between the points of one name."""
        marks: list[Mark] = []
        last: dict[str, RooflinePoint] = {}
        for point in self.points:
            before = last.get(point.name)
            if before is not None and before.series != point.series:
                marks.append(line(*self._at(before), *self._at(point), "axis"))
            last[point.name] = point
        return marks

    def _at(self, point: RooflinePoint) -> tuple[float, float]:
        return self.x.at(min(point.demand.intensity, self.x.high)), self.y.at(point.rate)

    def _dots(self) -> list[Mark]:
        marks: list[Mark] = []
        taken: list[tuple[float, float]] = []
        named: set[str] = set()
        for point in sorted(self.points, key=lambda p: -p.rate):
            x, y = self._at(point)
            marks.append({**self._dot(point.series, x, y), "title": self._words(point)})
            if point.name in named or len(self.points) > _MOST_LABELS:
                continue
            named.add(point.name)
            label = shortened(point.name, 18)
            place = y + 4
            while any(abs(place - b) < _LABEL_PX and abs(x - a) < 90 for a, b in taken):
                place += _LABEL_PX
            is_left = x + 9 + len(label) * 7 > self.x.end + _MARGIN
            taken.append((x, place))
            marks.append(text(x - 9 if is_left else x + 9, place, label,
                              "end" if is_left else "start", "label"))  # fmt: skip
        return marks

    def _dot(self, series: str, x: float, y: float) -> Mark:
        color, glyph = self.looks[series]
        fill = "none" if glyph == "ring" else color
        return {"shape": "dots", "role": "dots", "glyph": glyph, "r": 4.5, "xy": [x, y],
                "keys": [""], "stroke": color, "fill": fill}  # fmt: skip

    # -- words ---------------------------------------------------------------------------------

    def _limit(self, point: RooflinePoint) -> str:
        return "bandwidth" if self.bandwidth * point.demand.intensity < self.peak else "peak"

    def _words(self, point: RooflinePoint) -> str:
        bound = self.roofline.bound(point)
        series = f", {point.series}" if point.series else ""
        return (
            f"{point.name}{series}: {number(point.rate)} operations a cycle, "
            f"{percent(point.rate / bound)} of what the {self._limit(point)} allows; "
            f"{number(point.demand.intensity)} operations a byte; simulated"
        )

    def _summary(self) -> str:
        name = self.roofline.accelerator.name
        if not self.points:
            return f"On {name}, no program executes a tensor instruction."
        parts = []
        for series in self.looks:
            own = [p for p in self.points if p.series == series]
            shares = [point.rate / self.roofline.bound(point) for point in own]
            mean = math.exp(sum(map(math.log, shares)) / len(shares))
            what = f"{series}: " if series else ""
            most = percent(max(point.rate / self.peak for point in own))
            parts.append(
                f"{what}{percent(mean)} of the roof in geometric mean, at most {most} of the peak"
            )
        count = len(dict.fromkeys(point.name for point in self.points))
        return f"{count} program{'s' * (count != 1)} on {name}, simulated: {'; '.join(parts)}."

    def _cells(self, point: RooflinePoint) -> list[Cell]:
        bound, demand = self.roofline.bound(point), point.demand
        return [
            point.name, point.series, demand.operations, demand.bytes, number(demand.intensity),
            point.cycles, number(point.rate), number(bound), self._limit(point),
            percent(point.rate / bound) if bound else "", percent(point.rate / self.peak),
        ]  # fmt: skip
