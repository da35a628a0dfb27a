"""Draw the buffers that one iteration touches in each memory level, and the traffic between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dlcompiler.views.render.scene import Cell, Mark, Role, Scene
from dlcompiler.views.render.text import shortened
from dlcompiler.views.render.units import format_bytes, percent

if TYPE_CHECKING:
    from dlcompiler.views.memory.scopes import Held, Level, MemoryUse, Scope

_WIDTH, _LEFT, _BAR = 364.0, 4.0, 16.0
_CHAR, _BOLD, _LINE = 6.8, 7.6, 17.0
_LEAST = 4.0
"""Width of the narrowest part of a bar; [px]."""
_MOST_LOOPS = 4
VIRIDIS = (
    "#440154", "#21918C", "#FDE725", "#3B528B", "#5EC962",
    "#472D7B", "#28AE80", "#2C728E", "#ADDC30",
)  # fmt: skip
"""Colours of buffers; the hues of axes are others. **Source:** matplotlib, viridis at eighths."""


def memory_scene(use: MemoryUse) -> Scene:
    """Return the picture of a program's use of memory."""
    colors = _colors(use)
    marks: list[Mark] = []
    y = 2.0
    for level in use.levels:
        y = _draw_level(level, colors, y, marks)
        if level.behind:
            y = _draw_traffic(level, y, marks)
    for scope in use.scopes:
        y = _draw_scope(scope, y, marks)
    return {
        "title": "Memory scopes",
        "summary": _summary(use),
        "how_to_read": "each bar is a level of memory; its length is the capacity. A buffer is "
        "drawn in the nearest level that has room for the part that the iteration touches. Grey: "
        "this level also holds a copy of what nearer levels hold. Each arrow shows the bytes that "
        "the whole program moves between two levels, predicted by a model, and their loops.",
        "width": _WIDTH,
        "height": y + 4,
        "marks": marks,
        "table": {"columns": list(_COLUMNS), "rows": [*_held_rows(use), *_moved_rows(use)]},
    }


class Flow:
    """Draws texts beside each other, and starts a new line at the edge of the picture."""

    def __init__(self, marks: list[Mark], x: float, y: float) -> None:
        self.marks = marks
        self.x = self.left = x
        self.y = y

    def text(self, text: str, role: Role, keys: Sequence[str] = (), title: str = "") -> None:
        """Add a text; one that no line has room for loses its middle."""
        char = _BOLD if role == "name" else _CHAR
        whole, text = text, shortened(text, int((_WIDTH - self.left) / char))
        title = title or (whole if text != whole else "")
        self._room(len(text) * char)
        mark: Mark = {"shape": "text", "role": role, "x": round(self.x, 1), "y": self.y + 13,
                      "text": text}  # fmt: skip
        if keys:
            mark["keys"] = list(keys)
        if title:
            mark["title"] = title
        self.marks.append(mark)
        self.x += len(text) * char + 8

    def swatch(self, color: str, text: str, keys: Sequence[str], title: str) -> None:
        """Add a coloured square, and a text after it."""
        text = shortened(text, int((_WIDTH - self.left - 15) / _CHAR))
        self._room(len(text) * _CHAR + 15)
        self.marks.append({"shape": "rect", "role": "cell", "x": round(self.x, 1), "y": self.y + 3,
                           "w": 11, "h": 11, "fill": color, "keys": list(keys)})  # fmt: skip
        self.x += 15
        self.text(text, "label", keys, title)

    def _room(self, width: float) -> None:
        if self.x > self.left and self.x + width > _WIDTH:
            self.x, self.y = self.left, self.y + _LINE


_COLUMNS = (
    "level", "buffer", "loop", "touched by an iteration [byte]", "elements", "counted",
    "fetched in all, predicted [byte]", "written back in all, predicted [byte]",
)  # fmt: skip


def loop_text(key: str | None) -> str:
    """Return a loop's key in words."""
    if key is None:
        return "the program"
    stage, _, path = key.partition("/")
    return f"{path} of {stage}" if path else stage


def _what(use: MemoryUse) -> str:
    return "The whole program" if use.key is None else f"One iteration of {loop_text(use.key)}"


def _colors(use: MemoryUse) -> dict[str, str]:
    names = sorted({held.footprint.buffer.name for level in use.levels for held in level.held})
    return {name: VIRIDIS[n % len(VIRIDIS)] for n, name in enumerate(names)}


def _draw_scope(scope: Scope, y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, _LEFT, y + 4)
    flow.text(f"scope {scope.name}", "name")
    if scope.capacity_bytes is not None:
        flow.text(f"at most {format_bytes(scope.capacity_bytes)} each:", "soft")
    for name, size in scope.buffers:
        is_over = scope.capacity_bytes is not None and size > scope.capacity_bytes
        flow.text(f"{name} {format_bytes(size)}{', more than that' * is_over}", "label", [name])
    return flow.y + _LINE


def _draw_level(level: Level, colors: dict[str, str], y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, _LEFT, y)
    flow.text(level.name, "name")
    used = level.nearer_bytes + sum(held.bytes for held in level.held)
    if level.capacity_bytes:
        size = format_bytes(level.capacity_bytes)
        share = f", one share of {level.sharers}" if level.sharers > 1 else ""
        flow.text(f"{size}{share}, {percent(used / level.capacity_bytes)} in use", "soft")
    _draw_bar(level, colors, flow.y + 18, marks)
    flow = Flow(marks, _LEFT, flow.y + 18 + _BAR + 1)
    if not level.held:
        flow.text("no other buffer" if level.nearer_bytes else "no buffer", "soft")
    for held in level.held:
        name = held.footprint.buffer.name
        size = f"{'' if held.footprint.is_exact else '≤ '}{format_bytes(held.bytes)}"
        flow.swatch(colors[name], f"{name} {size}", held.keys, _words(held))
    return flow.y + _LINE + 2


def _draw_bar(level: Level, colors: dict[str, str], y: float, marks: list[Mark]) -> None:
    whole = _WIDTH - 2 * _LEFT
    own = sum(held.bytes for held in level.held)
    capacity = level.capacity_bytes or max(level.nearer_bytes + own, 1)
    size = format_bytes(capacity) if level.capacity_bytes else "no limit"
    marks.append({"shape": "rect", "role": "capacity", "x": _LEFT, "y": y, "w": whole, "h": _BAR,
                  "title": f"{level.name}: {size}"})  # fmt: skip
    x = _LEFT
    if level.nearer_bytes:
        width = max(whole * level.nearer_bytes / capacity, _LEAST)
        title = f"{format_bytes(level.nearer_bytes)}: also held by nearer levels"
        marks.append({"shape": "rect", "role": "box", "x": x, "y": y, "w": round(width, 1),
                      "h": _BAR, "fill": "#888888", "title": title})  # fmt: skip
        x += width
    for held in level.held:
        width = max(whole * held.bytes / capacity, _LEAST)
        width = max(min(width, _LEFT + whole - x), _LEAST)
        marks.append({"shape": "rect", "role": "bar", "x": round(x, 1), "y": y,
                      "w": round(width, 1), "h": _BAR, "fill": colors[held.footprint.buffer.name],
                      "keys": list(held.keys), "title": _words(held)})  # fmt: skip
        x += width


def _draw_traffic(level: Level, y: float, marks: list[Mark]) -> float:
    marks.append({"shape": "path", "role": "edge",
                  "d": f"M10 {y + 1}v15m-4 -5l4 5l4 -5m-4 -10m-4 5l4 -5l4 5",
                  "title": f"between {level.name} and {level.behind}"})  # fmt: skip
    flow = Flow(marks, 22, y)
    flow.text(f"{format_bytes(level.moved_bytes)} predicted", "label")
    for n, loop in enumerate(level.loops):
        if n == _MOST_LOOPS - 1 and len(level.loops) > _MOST_LOOPS:
            rest = format_bytes(sum(each.moved_bytes for each in level.loops[n:]))
            flow.text(f"{len(level.loops) - n} other loops {rest}", "soft")
            break
        text = f"{loop_text(loop.key)} {format_bytes(loop.moved_bytes)}"
        keys = [] if loop.key is None else [loop.key]
        flow.text(text, "soft", keys, _moved_words(level, n))
    return flow.y + _LINE + 6


def _moved_words(level: Level, n: int) -> str:
    parts = ", ".join(
        f"{fill.buffer.name} {format_bytes(fill.moved_bytes)}"
        for fill in level.loops[n].fills if fill.moved_bytes
    )  # fmt: skip
    return f"between {level.name} and {level.behind}: {parts or 'nothing'}"


def _words(held: Held) -> str:
    item = held.footprint
    count = f"{item.elements:,}" if item.is_exact else f"at most {item.elements:,}"
    text = f"{item.buffer.name}: {count} elements, {format_bytes(held.bytes)} in whole lines"
    if held.keys:
        text += f"; filled by {', '.join(map(loop_text, held.keys))}"
    return text


def _summary(use: MemoryUse) -> str:
    places = [
        f"{_list([held.footprint.buffer.name for held in level.held])} in {level.name}"
        for level in use.levels if level.held
    ]  # fmt: skip
    cache = use.levels[-2] if len(use.levels) > 1 else None
    moved = "" if cache is None else (
        f" In all, {format_bytes(cache.moved_bytes)} are moved to and from memory (predicted; no "
        f"schedule moves less than {format_bytes(use.compulsory_bytes)})."
    )  # fmt: skip
    return (
        f"{_what(use)} touches {format_bytes(use.touched_bytes)}: {_list(places) or 'nothing'}."
        f"{moved}"
    )


def _held_rows(use: MemoryUse) -> list[list[Cell]]:
    return [
        [level.name, held.footprint.buffer.name, loop_text(use.key), held.bytes,
         held.footprint.elements, "exact" if held.footprint.is_exact else "at most", None, None]
        for level in use.levels for held in level.held
    ]  # fmt: skip


def _moved_rows(use: MemoryUse) -> list[list[Cell]]:
    return [
        [level.name, fill.buffer.name, loop_text(loop.key), None, None, None,
         fill.fetched_bytes, fill.written_bytes]
        for level in use.levels for loop in level.loops for fill in loop.fills
    ]  # fmt: skip


def _list(items: Sequence[str]) -> str:
    return (
        items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
    )
