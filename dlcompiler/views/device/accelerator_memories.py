"""Draw which values lie where in the memories of an accelerator: address against time.

Each memory is a band, as high as the elements that are in use. A value is a box: it is written in
its part of full colour, waits in its faint part without an edge, and is in use in the lighter one.
"""

from __future__ import annotations

from dlcompiler.pipeline.memory_maps import MemoryMap
from dlcompiler.views.device.cycle_picture import LEFT, RIGHT, WIDTH, CyclePicture
from dlcompiler.views.device.memory_values import (
    Memories,
    Value,
    Values,
    alive_over_time,
    memories_of,
)
from dlcompiler.views.device.timeline_lanes import color_of_group, provenance_of_runs
from dlcompiler.views.render.colors import lighter
from dlcompiler.views.render.scene import Cell, Role, Scene, Table
from dlcompiler.views.render.text import shortened
from dlcompiler.views.render.units import format_bytes, percent
from dlcompiler.views.tuning.chart import Scale, line, staircase, text

MOST_DRAWN = 150
"""Values up to which each is a box; of more, a curve shows how many elements are alive; [1]."""
_MOST_LISTED = 100
"""Values that the table of a cycle lists; [1]."""
_MOST_STEPS = 400
"""Steps of a curve; [1]."""
_BAND, _TITLE, _GAP = 64.0, 18.0, 12.0
_NARROWEST = 0.3
"""Parts of a box that are narrower are left out; [px]."""
_USED = ("memory", "elements", "values", "most alive at once", "of the memory", "bytes of it",
         "loads that nothing reads")  # fmt: skip
_LISTED = ("memory", "elements", "value of", "state", "written by", "complete at", "last use at")


def memories_scene(map_: MemoryMap) -> Scene:
    """Return the picture of the memories of a program.

    Parameters
    ----------
    map_
        The program, and the cycles that are shown.

    Returns
    -------
    Scene
        The keys of a box are those of the stage that wrote the value.
    """
    return _Picture(memories_of(map_)).scene()


class _Picture(CyclePicture):
    def __init__(self, model: Memories) -> None:
        super().__init__(model.first, model.last, model.groups, model.stages)
        self.model = model
        self.is_drawn = len(model.found) <= MOST_DRAWN
        self.used = [name for name in model.depths if len(model.found.of(name))]

    def scene(self) -> Scene:
        y = 2.0
        for name in self.used:
            y = self._memory(name, y)
        y = self.axis(y - _GAP / 2, provenance_of_runs(self.model.map.runs))
        cycle = self.model.map.cycle
        if cycle is not None and self.model.first <= cycle <= self.model.last:
            at = self.x.at(cycle)
            mark = line(at, 2, at, y - 44, "warn")
            self.marks.append({**mark, "title": f"cycle {cycle:,}"})
        shown = dict.fromkeys(self.model.found.group.tolist()) if self.is_drawn else ()
        y = self.legend(y, tuple(shown))
        return {
            "title": "Memories of the accelerator",
            "summary": self._summary(),
            "how_to_read": self._how_to_read(),
            "width": WIDTH,
            "height": y + 4,
            "marks": self.marks,
            "table": self._used_table() if cycle is None else self._listed_table(cycle),
        }

    # -- memories ------------------------------------------------------------------------------

    def _memory(self, name: str, y: float) -> float:
        values, depth = self.model.found.of(name), self.model.depths[name]
        high = int(values.high.max())
        head = f"elements 0 to {high - 1:,} of {depth:,}"
        self.marks.append(text(4, y + 13, shortened(name, 9), "start", "name"))
        self.marks.append(text(LEFT, y + 13, head))
        top = y + _TITLE
        self.marks.append({"shape": "rect", "role": "axis", "x": LEFT, "y": top,
                           "w": WIDTH - LEFT - RIGHT, "h": _BAND})  # fmt: skip
        if self.is_drawn:
            scale = Scale(0, high, top, top + _BAND)
            for value in values.rows():
                self._value(value, scale)
        else:
            self._curve(values, Scale(0, high, top + _BAND, top))
        return top + _BAND + _GAP

    def _value(self, value: Value, y: Scale) -> None:
        """Draw the lifetime of a value as three boxes: it is written, it waits, it is used."""
        words, color = self._words(value), color_of_group(value.group)
        parts: tuple[tuple[int, int, Role, str], ...] = (
            (value.start, value.written, "bar", color),
            (value.written, value.first_use, "band", color),
            (value.first_use, value.last_use, "cell", lighter(color)),
        )
        for start, end, role, fill in parts:
            left, right = self.x.at(start), self.x.at(end)
            if right <= self.x.start or left >= self.x.end or right - left < _NARROWEST:
                continue
            self.marks.append({
                "shape": "rect", "role": role, "x": left, "y": y.at(value.low),
                "w": max(round(right - left, 1), 0.5),
                "h": max(round(y.at(value.high) - y.at(value.low), 1), 0.5),
                "fill": fill, "keys": self.keys_of_group(value.group), "title": words,
                "instruction": (value.part, value.step),
            })  # fmt: skip

    def _curve(self, values: Values, y: Scale) -> None:
        cycles, alive = alive_over_time(values.start, values.last_use, values.count)
        # The most of each part of the curve is kept: peaks do not vanish.
        size = -(-len(cycles) // _MOST_STEPS)
        points = [
            (self.x.at(int(cycles[n])), y.at(int(alive[n : n + size].max())))
            for n in range(0, len(cycles), size)
        ]
        self.marks.append({
            "shape": "path", "role": "curve", "d": staircase(points, self.x.end),
            "stroke": color_of_group(0), "title": f"elements alive: at most {int(alive.max()):,}",
        })  # fmt: skip

    def _words(self, value: Value) -> str:
        name = shortened(self.model.groups[value.group], 40)
        return (
            f"{value.low:,} to {value.high - 1:,}: {name}, written by instruction "
            f"{value.step} in cycles {value.start:,} to {value.written:,}, "
            f"used {value.uses:,} times in {value.first_use:,} to {value.last_use:,}"
        )

    # -- around --------------------------------------------------------------------------------

    def _summary(self) -> str:
        model = self.model
        parts = []
        for name in self.used:
            alive = self._most_alive(name)
            parts.append(f"{name} {percent(alive / model.depths[name])}")
        window = ""
        if model.first or model.last < model.map.cycles:
            window = f" Shown: cycles {model.first:,} to {model.last:,}."
        uses = f"at most {', '.join(parts)} of the memories at once" if parts else "none is in use"
        unused = "".join(
            f" Nothing reads {count:,} load{'s' * (count != 1)} of {name}."
            for name, count in model.unused.items()
        )
        return (
            f"{model.map.name}: {len(model.found):,} values; {uses} "
            f"({provenance_of_runs(model.map.runs)}).{unused}{window}"
        )

    def _how_to_read(self) -> str:
        if not self.is_drawn:
            return (
                "each band is a memory; the curve is how many of its elements hold a value that is "
                "still read. .between(first, last) of fewer cycles shows where the values lie."
            )
        return (
            "each band is a memory with its first element at the top; each box is a value in the "
            "colour of the stage that wrote it. Its full part is the time in which it is written, "
            "its faint part without an edge that in which it waits, its lighter part that in which "
            "it is used. "
            "Two places that are written in turn, each while the other is used, are a double "
            "buffer."
        )

    def _most_alive(self, name: str) -> int:
        """Return the elements of a memory that are alive at once, at most; [1]."""
        values = self.model.found.of(name)
        _, alive = alive_over_time(values.start, values.last_use, values.count)
        return min(int(alive.max()), self.model.depths[name]) if len(alive) else 0

    def _used_table(self) -> Table:
        rows: list[list[Cell]] = []
        for name, depth in self.model.depths.items():
            memory = self.model.map.runs[0].program.accelerator.memory(name)
            alive = self._most_alive(name)
            rows.append([
                name, depth, len(self.model.found.of(name)), alive, percent(alive / depth),
                format_bytes(alive * memory.element_bytes), self.model.unused.get(name, 0),
            ])  # fmt: skip
        return {"columns": list(_USED), "rows": rows}

    def _listed_table(self, cycle: int) -> Table:
        alive = list(self.model.found.where(self.model.found.is_alive(cycle)).rows())
        rows: list[list[Cell]] = [
            [
                value.memory, f"{value.low:,} to {value.high - 1:,}",
                self.model.groups[value.group], _state(value, cycle), value.step, value.written,
                value.last_use,
            ]
            for value in sorted(alive, key=lambda v: (v.memory, v.low))[:_MOST_LISTED]
        ]  # fmt: skip
        if len(alive) > _MOST_LISTED:
            rows.append([f"and {len(alive) - _MOST_LISTED:,} more", *[""] * (len(_LISTED) - 1)])
        return {"columns": list(_LISTED), "rows": rows}


def _state(value: Value, cycle: int) -> str:
    if cycle < value.written:
        return "being written"
    return "waits for its first use" if cycle < value.first_use else "in use"
