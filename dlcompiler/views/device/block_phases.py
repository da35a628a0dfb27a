"""The phases of a block of threads: what each reads and writes, and the barriers between them.

Phases that a loop repeats are one group with a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.simulate.recording import BlockRecording, Phase, Touch
from dlcompiler.views.render.scene import Mark

_LINE, _INDENT = 16.0, 14.0
_LETTER_PX = 6.4
"""Mean width of a letter [px]."""
_LONGEST_ROUND = 12
"""Phases, or rounds of some, that are looked for as one round of a loop."""

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A sequence of phases that a loop repeats `count` times."""

    parts: tuple[Part, ...]
    """The phases of the first repetition."""
    count: int


Part: TypeAlias = "int | Round"
"""The number of a phase, from 0, or phases that are repeated."""


def rounds(phases: Sequence[Phase]) -> list[Part]:
    """Return the phases in order; phases that a loop repeats are merged into one `Round`.

    Two phases are the same if they begin at the same barrier and reach the same buffers.
    """

    def key(part: Part) -> Key:
        if isinstance(part, Round):
            return part.count, *map(key, part.parts)
        phase = phases[part]
        touched = sorted({(touch.buffer.name, touch.is_write) for touch in phase.touches})
        return phase.start, tuple(touched)

    parts: list[Part] = list(range(len(phases)))
    length = 1
    while length <= _LONGEST_ROUND:  # inner loops before those around them
        folded = _folded(parts, length, key)
        length = 1 if len(folded) < len(parts) else length + 1
        parts = folded
    return parts


def _folded(parts: list[Part], length: int, key: Callable[[Part], Key]) -> list[Part]:
    """Merge each sequence of `length` parts that is repeated into one `Round`."""
    keys = [key(part) for part in parts]
    found: list[Part] = []
    at = 0
    while at < len(parts):
        count = 1
        while keys[at : at + length] == keys[at + count * length : at + (count + 1) * length]:
            count += 1
        if count > 1:
            found.append(Round(tuple(parts[at : at + length]), count))
        else:
            found.append(parts[at])
        at += count * length if count > 1 else 1
    return found


def shown_phases(parts: Iterable[Part]) -> list[int]:
    """Return the numbers of the phases to show; of repeated phases, only the first repetition."""
    return [
        number
        for part in parts
        for number in (shown_phases(part.parts) if isinstance(part, Round) else [part])
    ]


def shown_for(parts: Iterable[Part]) -> list[int]:
    """Return, for each phase, the number of the phase that represents it in the picture."""
    return [
        number
        for part in parts
        for number in (shown_for(part.parts) * part.count if isinstance(part, Round) else [part])
    ]


def times(parts: Iterable[Part], number: int) -> int:
    """Return how many phases the shown phase `number` represents."""
    return shown_for(parts).count(number)


def phase_text(recording: BlockRecording, number: int) -> str:
    """Return a phase's number and the values of its loops: ``phase 3 of 9, k.outer = 1``."""
    loops = ", ".join(f"{name} = {at}" for name, at in recording.phases[number].loops)
    return f"phase {number + 1} of {len(recording.phases)}" + (f", {loops}" if loops else "")


def buffers_of(touches: Sequence[Touch], *, is_write: bool) -> str:
    """Return the names of the buffers that are written (`is_write`) or read in a phase."""
    names = [touch.buffer.name for touch in touches if touch.is_write == is_write]
    return ", ".join(dict.fromkeys(names)) or "nothing"


def draw_timeline(recording: BlockRecording, chosen: int) -> tuple[float, float, list[Mark]]:
    """Return the width and the height of the list of phases [px], and its marks.

    A phase has the key ``phase 3``, counted from 0.
    """
    parts = rounds(recording.phases)
    drawing = _Timeline(recording, shown_for(parts)[chosen], [])
    bottom = drawing.draw(parts, 0.0, 0.0)
    ends = [mark["x"] + _LETTER_PX * len(mark["text"]) for mark in drawing.marks
            if mark["shape"] == "text"]  # fmt: skip
    return max(ends, default=0.0) + 4, bottom + 4, drawing.marks


@dataclass(frozen=True, slots=True)
class _Timeline:
    """A drawing in progress: the recording, the chosen phase, and the marks so far."""

    recording: BlockRecording
    chosen: int
    marks: list[Mark]

    def draw(self, parts: Sequence[Part], x: float, y: float) -> float:
        """Draw parts from (x, y) down, and return their lower edge [px]."""
        for part in parts:
            y = self._round(part, x, y) if isinstance(part, Round) else self._phase(part, x, y)
        return y

    def _round(self, part: Round, x: float, top: float) -> float:
        y = self.draw(part.parts, x + _INDENT, top)
        edge = f"M{x + 6:g} {top + 3:g}h-6v{y - top - 5:g}h6"
        self.marks.append({"shape": "path", "role": "edge", "d": edge})
        text = f"{part.count} times{self._span(part)}"
        self.marks.append({"shape": "text", "role": "soft", "x": x, "y": y + 11, "text": text})
        return y + _LINE + 2

    def _phase(self, number: int, x: float, y: float) -> float:
        phase, marks = self.recording.phases[number], self.marks
        if phase.start is not None:
            marks.append({"shape": "path", "role": "warn", "title": "a barrier",
                          "d": f"M{x:g} {y + 4:g}h90m-90 3h90"})  # fmt: skip
            marks.append({"shape": "text", "role": "soft", "x": x + 98, "y": y + 10,
                          "text": "barrier"})  # fmt: skip
            y += _LINE
        elif number:
            marks.append({"shape": "text", "role": "soft", "x": x, "y": y + 10,
                          "text": "all threads have ended, and begin again"})  # fmt: skip
            y += _LINE
        key = f"phase {number}"
        writes, reads = (buffers_of(phase.touches, is_write=w) for w in (True, False))
        title = f"{phase_text(self.recording, number)}: reads {reads}; writes {writes}"
        sign = "▶ " if number == self.chosen else ""
        marks.append({"shape": "text", "role": "name", "x": x, "y": y + 12, "keys": [key],
                      "text": f"{sign}phase {number + 1}", "title": title})  # fmt: skip
        text = f"reads {reads}; writes {writes}"
        marks.append({"shape": "text", "role": "label", "x": x + 84, "y": y + 12, "text": text,
                      "keys": [key], "title": title})  # fmt: skip
        return y + _LINE + 2

    def _span(self, part: Round) -> str:
        """Return the range of each loop that changes between repetitions: ``, k.outer = 0 … 3``."""
        start, length = shown_phases(part.parts)[0], len(shown_for(part.parts))
        first = dict(self.recording.phases[start].loops)
        last = dict(self.recording.phases[start + length * (part.count - 1)].loops)
        moved = [f"{name} = {at} … {last[name]}" for name, at in first.items()
                 if last.get(name, at) != at]  # fmt: skip
        return f", {', '.join(moved)}" if moved else ""
