"""Draw when the engines of an accelerator ran their instructions, and what they waited for.

Each engine is a lane, each instruction a bar in the colour of its stage. Small instructions are
merged into blocks (`timeline_lanes`), so that the size of a picture is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.ir import Stmt
from dlcompiler.pipeline.timelines import Timeline
from dlcompiler.simulate.accelerators.listing import instruction_text, origin_text
from dlcompiler.simulate.accelerators.timing.waits import Token
from dlcompiler.views.device.cycle_picture import CHAR, LEFT, RIGHT, WIDTH, CyclePicture
from dlcompiler.views.device.timeline_lanes import (
    Bars,
    Lane,
    Model,
    Row,
    bars_of,
    color_of_group,
    model_of,
    table_of,
)
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.render.colors import ink_on
from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler.views.render.text import shortened
from dlcompiler.views.render.units import percent
from dlcompiler.views.tuning.chart import line, text

MOST_TOKENS = 120
"""Tokens that are drawn as arrows; more are left out; [1]."""
_MOST_BARS = 300
"""Bars of all lanes, at most: a picture in a notebook has at most 60 kB; [1]."""
_MOST_NAMED = 150
"""Bars up to which each wait is a line with its reason; [1]."""
_LANE, _GAP, _TITLE = 34.0, 14.0, 20.0
_NARROWEST = 2.0
"""Narrowest bar; [px]."""


def timeline_scene(timeline: Timeline) -> Scene:
    """Return the picture of a timeline.

    Parameters
    ----------
    timeline
        The programs, and the cycles that are shown.

    Returns
    -------
    Scene
        The keys of a bar are those of its stage and loops.
    """
    return _Picture(model_of(timeline)).scene()


@dataclass
class _Place:
    """A lane in the picture."""

    row: Row
    lane: Lane
    top: float


class _Picture(CyclePicture):
    def __init__(self, model: Model) -> None:
        super().__init__(model.first, model.last, model.groups, model.stages)
        self.model = model
        self.places: list[_Place] = []
        self.is_named = model.count <= _MOST_NAMED
        self.bars = self._merged()

    def _merged(self) -> dict[tuple[int, int], Bars]:
        """Return the bars by row and lane; columns become wider until there are few enough."""
        column = _NARROWEST * (self.x.high - self.x.low) / (self.x.end - self.x.start)
        groups = len(self.model.groups)
        while True:
            bars = {
                (r, n): bars_of(lane, column, groups)
                for r, row in enumerate(self.model.rows)
                for n, lane in enumerate(row.lanes)
            }
            # Columns that are wider than the picture merge everything: this ends.
            count, most = sum(len(each.first) for each in bars.values()), 2 * len(bars)
            most = max(most, _MOST_BARS)
            if count <= most:
                return bars
            column *= max(0.8 * count / most, 1.3)

    def scene(self) -> Scene:
        y = 4.0
        for n, row in enumerate(self.model.rows):
            y = self._row(n, row, y)
        self._tokens()
        y = self.axis(y, self.model.provenance)
        y = self.legend(y, range(len(self.groups)))
        return {
            "title": "Timeline",
            "summary": _summary(self.model),
            "how_to_read": self._how_to_read(),
            "width": WIDTH,
            "height": y + 4,
            "marks": self.marks,
            "table": table_of(self.model),
        }

    # -- lanes ---------------------------------------------------------------------------------

    def _row(self, number: int, row: Row, y: float) -> float:
        if len(self.model.rows) > 1:
            name = shortened(row.name, 60)
            self.marks.append(text(4, y + 13, f"{name}: {row.cycles:,} cycles", "start", "name"))
            y += _TITLE
        for n, lane in enumerate(row.lanes):
            engine = shortened(lane.engine, (LEFT - 8) / CHAR)
            self.marks.append(text(4, y + _LANE / 2 + 4, engine, "start", "label"))
            self.marks.append(line(LEFT, y + _LANE, WIDTH - RIGHT, y + _LANE, "grid"))
            self.places.append(_Place(row, lane, y))
            self._bars(row, lane, self.bars[number, n], y)
            y += _LANE + _GAP
        if len(self.model.rows) > 1 and self.model.first < row.cycles < self.model.last:
            end, top = self.x.at(row.cycles), y - (_LANE + _GAP) * len(row.lanes)
            mark = line(end, top, end, y - _GAP, "capacity")
            self.marks.append({**mark, "title": f"{row.name} ends at cycle {row.cycles:,}"})
        return y

    def _bars(self, row: Row, lane: Lane, bars: Bars, top: float) -> None:
        for n in range(len(bars.first)):
            first = int(bars.first[n])
            if self.is_named:
                self._wait(row, lane, first, top)
            if not self.model.first - bars.end[n] < 0 < self.model.last - bars.start[n]:
                continue  # it only waits in the cycles that are shown
            if int(bars.count[n]) == 1:
                self._bar(row, lane, first, top)
            else:
                self._block(bars, n, top)

    def _bar(self, row: Row, lane: Lane, n: int, top: float) -> None:
        start, end = self.x.at(int(lane.start[n])), self.x.at(int(lane.end[n]))
        step = row.step(int(lane.part[n]), int(lane.step[n]))
        group = int(lane.group[n])
        width = max(end - start, 0.5)
        self.marks.append({
            "shape": "rect", "role": "bar", "x": start, "y": top + 6, "w": round(width, 1),
            "h": _LANE - 6, "fill": color_of_group(group),
            "keys": keys_of(step.origin) if isinstance(step.origin, Stmt) else [],
            "title": _words(row, lane, n),
            "instruction": (int(lane.part[n]), int(lane.step[n])),
        })  # fmt: skip
        name = step.instruction.name
        if width >= len(name) * CHAR + 6:
            self.marks.append({**text(start + 4, top + _LANE / 2 + 7, name, "start", "label"),
                               "fill": ink_on(color_of_group(group))})  # fmt: skip

    def _wait(self, row: Row, lane: Lane, n: int, top: float) -> None:
        """Draw a wait as a line that leads to its instruction, with the reason if it has room."""
        left = self.x.at(int(lane.idle_since[n]))
        right = self.x.at(int(lane.start[n]))
        if right - left < 3:
            return
        run = row.parts[int(lane.part[n])]
        wait = run.wait(int(lane.step[n]))
        y = top + _LANE - 5
        mark = line(left, y, right, y, "capacity")
        self.marks.append({**mark, "title": f"{lane.engine} {wait}"})
        reason = _reason_words(wait.reason)
        if right - left >= len(reason) * CHAR + 6:
            self.marks.append(text(left + 3, y - 5, reason, "start", "soft"))

    def _block(self, bars: Bars, n: int, top: float) -> None:
        """Draw a block of several instructions; its height is the share of busy cycles."""
        start, end = int(bars.start[n]), int(bars.end[n])
        busy = min(int(bars.busy[n]) / max(end - start, 1), 1.0)
        left, right = self.x.at(start), self.x.at(end)
        height = max((_LANE - 6) * busy, 1.0)
        group = int(bars.group[n])
        name = shortened(self.model.groups[group], 40)
        self.marks.append({
            "shape": "rect", "role": "cell", "x": left, "y": round(top + _LANE - height, 1),
            "w": max(round(right - left, 1), 0.5), "h": round(height, 1),
            "fill": color_of_group(group), "keys": self.keys_of_group(group),
            "title": f"{int(bars.count[n]):,} instructions, mostly {name}: cycles "
            f"{start:,} to {end:,}, busy {percent(busy)}",
        })  # fmt: skip

    # -- tokens --------------------------------------------------------------------------------

    def _tokens(self) -> None:
        shown = list(self._arrows())
        if len(shown) <= MOST_TOKENS:
            self.marks += shown

    def _arrows(self) -> Iterator[Mark]:
        if not self.is_named:
            return
        for row in self.model.rows:
            for part, token in row.tokens():
                mark = self._arrow(row, part, token)
                if mark is not None:
                    yield mark

    def _arrow(self, row: Row, part: int, token: Token) -> Mark | None:
        run, begin = row.parts[part], row.begins[part]
        left = int(run.end[token.pushed_by]) + begin
        right = int(run.start[token.popped_by]) + begin
        if left < self.model.first or right > self.model.last:
            return None
        source, _, sink = token.queue.partition("->")
        tops = {place.lane.engine: place.top for place in self.places if place.row is row}
        is_down = tops[source] < tops[sink]
        y1, y2 = tops[source] + (_LANE if is_down else 6), tops[sink] + (6 if is_down else _LANE)
        is_awaited = int(run.reason_step[token.popped_by]) == token.pushed_by
        x1, x2, head = self.x.at(left), self.x.at(right), -4 if is_down else 4
        note = "; the instruction waited for it" if is_awaited else ""
        return {
            "shape": "path", "role": "edge" if is_awaited else "axis",
            "d": f"M{x1:g} {y1:g}L{x2:g} {y2:g}l-2.5 {head}m2.5 {-head}l2.5 {head}",
            "dash": "" if is_awaited else "2 2",
            "title": f"token {token.queue}: instruction {token.pushed_by} to {token.popped_by}"
            f"{note}",
        }  # fmt: skip

    # -- around --------------------------------------------------------------------------------

    def _how_to_read(self) -> str:
        parts = [
            "each lane is an engine, each bar an instruction; its colour is the stage that it "
            "comes from, or else what it does"
        ]
        if any(mark["role"] == "cell" and "title" in mark for mark in self.marks):
            parts.append(
                "a block without words stands for several instructions, and is as high as the "
                "share of its cycles in which the engine is busy"
            )
        if self.is_named:
            parts.append("a dashed line is a wait")
        if any(mark["shape"] == "path" for mark in self.marks):
            parts.append("an arrow is a token; it is solid if the instruction waited for it")
        else:
            parts.append("tokens are drawn if few instructions are shown: .between(first, last)")
        return "; ".join(parts) + "."


def _words(row: Row, lane: Lane, n: int) -> str:
    """Return what an instruction is, when it ran, what it waited for, and where it comes from."""
    part, number = int(lane.part[n]), int(lane.step[n])
    run = row.parts[part]
    step = run.program.steps[number]
    start, end = int(lane.start[n]), int(lane.end[n])
    parts = [
        f"{number}: {instruction_text(run.program.accelerator, step)}",
        f"cycles {start:,} to {end:,} ({end - start:,})",
        str(run.wait(number)),
    ]
    if origin := origin_text(step.origin):
        parts.append(shortened(origin, 72))
    return "\n".join(parts)


def _reason_words(reason: str) -> str:
    """Return what a wait was for, in a few words."""
    return {"": "", "fetch": "fetch"}.get(reason, f"for {reason.partition('->')[0]}")


def _summary(model: Model) -> str:
    texts = []
    for row in model.rows:
        count = sum(len(run.program.steps) for run in row.parts)
        texts.append(f"{row.name}: {row.cycles:,} cycles, {count:,} instructions")
    window = ""
    if model.first or model.last < max((row.cycles for row in model.rows), default=0):
        window = f" Shown: cycles {model.first:,} to {model.last:,}."
    return f"{'; '.join(texts)} ({model.provenance}).{window}"
