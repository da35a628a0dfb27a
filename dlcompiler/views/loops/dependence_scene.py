"""Draw the dependences of a stage: arrows between the iterations of two loops, and all vectors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlcompiler.analysis.accesses import Loop
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.views.loops.dependence_arrows import (
    Arrow,
    Iteration,
    Window,
    arrows_of,
    window_of,
)
from dlcompiler.views.loops.dependence_list import Entry, dependence_list, key_of
from dlcompiler.views.loops.iteration_space import nest_of
from dlcompiler.views.loops.loop_tree import LoopTree
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Anchor, Cell, Mark, Role, Scene, beside

HOW_TO_READ = (
    "each dot is one iteration of the two loops; all other loops stand at 0. An arrow leads to the "
    "next iteration that touches the same element, where at least one of the two writes. The ends "
    "of an arrow must keep their order; only updates of a reduction, such as a sum, may change "
    "places. A distance vector counts the iterations of each loop between the two: < is a positive "
    "distance that varies, * any distance."
)
COLUMNS = ["", "kind", "buffer", "carried by", "distance vector", "nearest", "in words"]
_STEP, _LEFT, _TOP, _DOT, _LETTER = 36.0, 46.0, 40.0, 3.0, 7.2
_LINE, _CHARACTERS = 16.0, 66
_MOST_LISTED = 8
_OPERATION = "draw the dependences"
_CARRIED = (
    "carried by {}: the iterations must keep their order",
    "perhaps carried by {}",
    "carried by {}, of a reduction: whether the order matters depends on its reducer",
    "carried by {}, of a reduction: any order, but not at the same time",
    "none carried by {}",
)
"""What a summary says of loops."""
_DASHES = {"flow": "", "anti": "6 3", "output": "2 3"}


@dataclass(frozen=True)
class _Drawn:
    """An entry with its number, its colour and its arrows."""

    number: int
    entry: Entry
    arrows: list[Arrow] | None

    @property
    def color(self) -> str:
        return HUES[(self.number - 1) % len(HUES)]

    @property
    def dash(self) -> str:
        return _DASHES[self.entry.kinds[0]]

    @property
    def keys(self) -> list[str]:
        return [self.entry.key] if self.entry.key else []


def dependence_scene(func: PrimFunc, tree: LoopTree, key: str | None) -> Scene:
    """Return the picture of the dependences of a stage.

    Parameters
    ----------
    func
        The program as scheduled: ``lower(s, args, simple_mode=True)``.
    tree
        The loop nest of the same state.
    key
        A key of the tree: the loop to draw, beside the one around it (or the one inside it, if
        it is the outermost). One of a stage means its innermost loop; None the last stage.

    Returns
    -------
    Scene

    Raises
    ------
    ScheduleError
        For a stage without loops.
    """
    stage, nest = nest_of(func, tree, key, _OPERATION)
    if not nest:
        raise ScheduleError(_OPERATION, "the stage has no loops", got=stage)
    entries = dependence_list(func, tree, stage)
    known = {loop.statement: loop for entry in entries for loop in entry.loops}
    nest = tuple(known.get(loop.statement, loop) for loop in nest)
    carrying = (entry.loop for entry in entries if entry.loop)
    window = window_of(_pair(nest, key, entries))
    drawn = [_Drawn(n, e, arrows_of(e, window)) for n, e in enumerate(entries, 1)]
    grid: list[Mark] = []
    vectors: list[Mark] = []
    width, bottom = _draw_grid(window, drawn, grid)
    wide, low = _draw_list(drawn, window, 14.0, vectors)
    parts = [(width, bottom + 6, grid), *([(wide, low + 6, vectors)] if vectors else [])]
    return {
        "title": "Dependences",
        "summary": _summary(stage, tuple(dict.fromkeys((*nest, *carrying))), entries),
        "how_to_read": HOW_TO_READ,
        **beside(*parts),
        "table": {"columns": COLUMNS, "rows": [_row(each) for each in drawn]},
    }


def entry_scene(entry: Entry, loops: Sequence[Loop]) -> Scene:
    """Return a small picture of one dependence between the iterations of one or two loops.

    The other loops stand where they are in the example of the dependence.
    """
    example = entry.vector.example if entry.vector else None
    window = window_of(loops, example.first if example else None)
    drawn = [_Drawn(1, entry, arrows_of(entry, window))]
    marks: list[Mark] = []
    width, bottom = _draw_grid(window, drawn, marks)
    return {
        "title": "The dependence in the way",
        "summary": f"{entry.words}.",
        "how_to_read": HOW_TO_READ,
        "width": width,
        "height": bottom + 6,
        "marks": marks,
        "table": {"columns": COLUMNS, "rows": [_row(each) for each in drawn]},
    }


def _pair(nest: Sequence[Loop], key: str | None, entries: Iterable[Entry]) -> list[Loop]:
    """Return the two loops to draw: the chosen one, and one that a dependence crosses with it.

    If there is no such dependence, the second loop is a neighbour.
    """
    keys = [key_of(loop) for loop in nest]
    at = keys.index(key) if key in keys else len(keys) - 1
    for entry in entries:
        if len(entry.moving) == 2 and nest[at] in entry.moving:
            return list(entry.moving)
    return list(nest[max(at - 1, 0) : max(at - 1, 0) + 2])


# -- the grid -------------------------------------------------------------------------------------


def _draw_grid(window: Window, drawn: Iterable[_Drawn], marks: list[Mark]) -> tuple[float, float]:
    """Draw the iterations and the arrows; return the width and the lower edge [px]."""
    counts = (1, *window.counts)[-2:]
    right, bottom = _LEFT + (counts[1] - 0.5) * _STEP, _TOP + (counts[0] - 0.5) * _STEP
    bottom += _draw_axes(window, right, bottom, marks)
    places = [n for at in window.iterations for n in _place(at)]
    marks.append(
        {"shape": "dots", "role": "dots", "glyph": "disc", "r": _DOT, "xy": places,
         "fill": "currentColor", "title": "iterations"}
    )  # fmt: skip
    for each in drawn:
        if each.arrows:
            path = "".join(map(_arrow, each.arrows))
            mark: Mark = {
                "shape": "path", "role": "curve", "d": path, "stroke": each.color,
                "keys": each.keys, "title": f"{each.number}: {each.entry.words}",
            }  # fmt: skip
            if each.dash:
                mark["dash"] = each.dash
            marks.append(mark)
    texts = [mark for mark in marks if mark["shape"] == "text"]
    return max(right + 46, 160.0, *map(_right_of, texts)), bottom


def _draw_axes(window: Window, right: float, bottom: float, marks: list[Mark]) -> float:
    """Write the names and the values of the loops; return how far they go below the grid [px]."""
    *outer, inner = window.loops
    names = [
        f"{loop.var.name} {sign}" for loop, sign in zip(window.loops[::-1], "→↓", strict=False)
    ]
    end = max(right, sum(len(name) * _LETTER for name in names) + 24)
    marks.append(_text("name", (end, 14), names[0], "end", inner))
    for n in range(window.counts[-1]):
        marks.append(_text("soft", (_place((n,))[0], 30), str(n), "middle"))
    if _has_more(inner, window.counts[-1]):
        marks.append(_text("soft", (right + 10, 30), _more(inner), "start"))
    if outer:
        marks.append(_text("name", (4, 14), names[1], "start", outer[0]))
        for n in range(window.counts[0]):
            marks.append(_text("soft", (_LEFT - 22, _place((n, 0))[1] + 4), str(n), "end"))
        if _has_more(outer[0], window.counts[0]):
            marks.append(_text("soft", (4, bottom + 18), _more(outer[0]), "start"))
            return 18.0
    return 0.0


def _has_more(loop: Loop, count: int) -> bool:
    return loop.size is None or loop.size > count


def _more(loop: Loop) -> str:
    return "…" if loop.size is None else f"… {loop.size - 1:,}"


def _text(
    role: Role, at: tuple[float, float], text: str, anchor: Anchor, loop: Loop | None = None
) -> Mark:
    mark: Mark = {
        "shape": "text", "role": role, "x": at[0], "y": at[1], "text": text, "anchor": anchor,
    }  # fmt: skip
    if loop:
        mark["keys"] = [key_of(loop)]
    return mark


def _right_of(mark: Mark) -> float:
    """Return about where a text ends [px]."""
    parts = {"start": 1.0, "middle": 0.5, "end": 0.0}
    return mark["x"] + parts[mark["anchor"]] * len(mark["text"]) * _LETTER + 4


def _place(at: Iteration) -> tuple[float, float]:
    row, column = (0, *at)[-2:]
    return _LEFT + column * _STEP, _TOP + 14 + row * _STEP


def _arrow(arrow: Arrow) -> str:
    """Return the path of an arrow: a curve beside the dots between its ends."""
    (x1, y1), (x2, y2) = map(_place, arrow)
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bulge = 0.0 if length <= 1.5 * _STEP else min(10.0 + 0.05 * length, 18.0)
    cx, cy = (x1 + x2) / 2 - uy * bulge, (y1 + y2) / 2 + ux * bulge
    # The curve ends in the direction from its control point.
    tx, ty = x2 - cx, y2 - cy
    size = (tx**2 + ty**2) ** 0.5
    tx, ty = tx / size, ty / size
    ex, ey = x2 - tx * (_DOT + 1.5), y2 - ty * (_DOT + 1.5)
    sx, sy = x1 + ux * (_DOT + 1.5), y1 + uy * (_DOT + 1.5)
    head = [(ex - tx * 7 - ty * side * 3.5, ey - ty * 7 + tx * side * 3.5) for side in (1, -1)]
    (ax, ay), (bx, by) = head
    return (
        f"M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {ex:.1f} {ey:.1f}"
        f"M{ax:.1f} {ay:.1f}L{ex:.1f} {ey:.1f}L{bx:.1f} {by:.1f}"
    )


# -- the list -------------------------------------------------------------------------------------


def _draw_list(
    drawn: Sequence[_Drawn], window: Window, y: float, marks: list[Mark]
) -> tuple[float, float]:
    """Write the vectors in words; return the width and the lower edge [px]."""
    if not drawn:
        return 0.0, y
    names = ", ".join(loop.var.name for loop in max((e.entry.loops for e in drawn), key=len))
    for line in textwrap.wrap(f"Distances of ({names}):", _CHARACTERS):
        marks.append(_text("soft", (4, y), line, "start"))
        y += _LINE
    y += 4
    # What the window shows comes first.
    shown = sorted(drawn, key=lambda each: each.entry.loop not in window.loops)[:_MOST_LISTED]
    wide = 0.0
    for each in shown:
        entry = each.entry
        if each.arrows:
            mark: Mark = {"shape": "line", "role": "curve", "x": 4, "y": y - 4, "x2": 24,
                          "y2": y - 4, "stroke": each.color, "keys": each.keys}  # fmt: skip
            if each.dash:
                mark["dash"] = each.dash
            marks.append(mark)
        is_other = entry.nearest not in ("", entry.distance)
        nearest = f", nearest {entry.nearest}" if is_other else ""
        head = f"{each.number}  {entry.kind}: {entry.buffer} {entry.distance}{nearest}"
        lines = textwrap.wrap(f"{entry.words}.{_not_drawn(each, window)}", _CHARACTERS)
        for n, line in enumerate((head, *lines)):
            marks.append(
                {"shape": "text", "role": "soft" if n else "label", "x": 32, "y": y, "text": line,
                 "keys": each.keys}
            )  # fmt: skip
            y += _LINE
            wide = max(wide, 38 + len(line) * 6.2)
        y += 4
    if len(drawn) > len(shown):
        text = f"{len(drawn) - len(shown)} more are in the table"
        marks.append({"shape": "text", "role": "soft", "x": 32, "y": y, "text": text})
        y += _LINE
    return wide, y - _LINE


def _not_drawn(each: _Drawn, window: Window) -> str:
    """Return why no arrow is drawn for an entry; '' if there is one, or no loop carries it."""
    if each.arrows or each.entry.loop is None:
        return ""
    if each.arrows is None:
        return " It is not drawn: the elements depend on data or symbols, or are too many."
    if each.entry.loop not in window.loops:
        return f" Choose {each.entry.loop.var.name} to see it."
    return " None of it is among the iterations drawn."


def _row(each: _Drawn) -> list[Cell]:
    entry = each.entry
    carried = entry.loop.var.name if entry.loop else "no loop"
    return [
        each.number, entry.kind, entry.buffer, carried, entry.distance, entry.nearest, entry.words,
    ]  # fmt: skip


def _summary(stage: str, nest: Sequence[Loop], entries: Sequence[Entry]) -> str:
    """Return a sentence that says which loops carry dependences, and which carry none."""
    groups: dict[str, list[str]] = {}
    for loop in nest:
        own = [entry for entry in entries if entry.loop is loop]
        groups.setdefault(_carried(own), []).append(loop.var.name)
    order = sorted(groups, key=_CARRIED.index)
    parts = [text.format(", ".join(groups[text])) for text in order]
    return f"Dependences of {stage}: {'; '.join(parts)}."


def _carried(entries: Sequence[Entry]) -> str:
    """Return the text of `_CARRIED` for a loop, given the entries that it carries."""
    ordered, unsure, reduced, unordered, none = _CARRIED
    if not entries:
        return none
    known = [entry for entry in entries if not entry.doubt]
    if any(not entry.is_reduction for entry in known):
        return ordered
    if not known or any(not entry.is_reduction for entry in entries):
        return unsure
    return unordered if all(entry.is_unordered for entry in entries) else reduced
