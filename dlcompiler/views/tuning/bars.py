"""Horizontal bar charts: shares of a whole, and positive and negative contributions."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.runtime.timing import format_ratio
from dlcompiler.views.render.scene import Mark
from dlcompiler.views.tuning.chart import BLUE, ORANGE, text, wrapped

ROW_PX = 22.0
NAME_SHARE = 0.46
"""Part of the width for the names."""
_VALUE_PX = 74.0
_LINE_PX = 14.0
"""Of a name that needs several lines."""


def bars_height(names: Sequence[str], width: float) -> float:
    """Return the height of a chart of bars with these names; [px]."""
    return sum(ROW_PX + _LINE_PX * (len(_lines(name, width)) - 1) for name in names)


def _lines(name: str, width: float) -> list[str]:
    return wrapped(name, width * NAME_SHARE - 12)


def _name(name: str, width: float, y: float) -> list[Mark]:
    """Return the marks of a name, in as many lines as it needs."""
    left = width * NAME_SHARE
    return [
        text(left - 8, y + 13 + n * _LINE_PX, line, "end", "label")
        for n, line in enumerate(_lines(name, width))
    ]


def share_bars(items: Sequence[tuple[str, float]], width: float, top: float) -> list[Mark]:
    """Return a bar for each share of 1, with its name and its percentage."""
    left = width * NAME_SHARE
    room = width - left - _VALUE_PX
    most = max((share for _, share in items), default=1.0) or 1.0
    marks: list[Mark] = []
    for n, (name, share) in enumerate(items):
        y = top + bars_height([each for each, _ in items[:n]], width)
        marks += _name(name, width, y)
        marks.append(_bar(left, y, room * share / most, BLUE, f"{name}: {share:.1%}"))
        marks.append(text(left + room * share / most + 6, y + 13, f"{share:.1%}"))
    return marks


def factor(part: float) -> str:
    """Return a difference in log2 of speed in words.

    Examples
    --------
    >>> factor(1.0), factor(-0.5), factor(0.05), factor(0.0)
    ('2.0× faster', '1.4× slower', '4% faster', 'as fast')
    """
    ratio = 2.0 ** abs(part)
    # Factors near 1 differ in the percents, which a ratio of two digits does not have.
    size = f"{ratio - 1:.0%}" if format_ratio(ratio) == "1.0×" else format_ratio(ratio)
    return "as fast" if size == "0%" else f"{size} {'faster' if part > 0 else 'slower'}"


def diverging_bars(items: Sequence[tuple[str, float]], width: float, top: float) -> list[Mark]:
    """Return a bar for each difference [log2]: speed-ups to the right, slow-downs to the left."""
    left = width * NAME_SHARE
    middle = left + (width - left) / 2
    room = (width - left) / 2 - _VALUE_PX - 12
    most = max((abs(part) for _, part in items), default=1.0) or 1.0
    marks: list[Mark] = []
    for n, (name, part) in enumerate(items):
        y = top + bars_height([each for each, _ in items[:n]], width)
        size = room * abs(part) / most
        is_faster = part >= 0
        words = factor(part)
        marks += _name(name, width, y)
        marks.append(
            _bar(middle if is_faster else middle - size, y, size, BLUE if is_faster else ORANGE,
                 f"{name}: {words}")
        )  # fmt: skip
        end = middle + size + 6 if is_faster else middle - size - 6
        marks.append(text(end, y + 13, words, "start" if is_faster else "end"))
    bottom = top + bars_height([name for name, _ in items], width)
    marks.append({"shape": "line", "role": "axis", "x": middle, "y": top - 4, "x2": middle,
                  "y2": bottom})  # fmt: skip
    return marks


def _bar(x: float, y: float, size: float, color: str, title: str) -> Mark:
    return {"shape": "rect", "role": "bar", "x": round(x, 1), "y": y, "w": round(max(size, 1), 1),
            "h": ROW_PX - 6, "fill": color, "title": title}  # fmt: skip
