"""Heat maps of a cache simulation: misses over time, and over the elements of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from dlcompiler.simulate.cache import CacheSimulation
from dlcompiler.views.memory.caches import TensorCounts
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Mark
from dlcompiler.views.render.units import format_bytes

_LEFT, _RIGHT, _NAME_PX = 4.0, 360.0, 76.0
_ROW, _LINE = 14.0, 17.0
_MOST_NAME = 10

Scale = Sequence[tuple[float, str]]
"""Upper limits of the shades, with their words."""
RATES: Scale = (
    (0.01, "≤ 1%"), (0.05, "≤ 5%"), (0.2, "≤ 20%"), (0.5, "≤ 50%"), (1.0, "more"),
)  # fmt: skip
TIMES: Scale = (
    (1.0, "once"), (2.0, "≤ 2 ×"), (8.0, "≤ 8 ×"), (64.0, "≤ 64 ×"), (float("inf"), "more"),
)  # fmt: skip


def draw_time_maps(
    found: CacheSimulation, levels: list[list[TensorCounts]], y: float, marks: list[Mark]
) -> float:
    """Draw the share of a tensor's accesses that miss in each interval of time, by tensor.

    As in `draw_tensor_maps`, only the first level and the last are drawn.
    """
    y = _head("Misses over time", f"accesses 1 to {found.accesses:,}, left to right", y, marks)
    y = _legend("of the tensor's accesses:", RATES, y, marks)
    for number in dict.fromkeys((0, len(levels) - 1)):
        for each in levels[number]:
            if each.counts.misses:
                y = _draw_row(each, *_over_time(found, number, each), RATES, y, marks)
    return y + 8


def draw_tensor_maps(
    found: CacheSimulation, levels: list[list[TensorCounts]], y: float, marks: list[Mark]
) -> float:
    """Draw how often the lines of each part of a tensor are loaded, first and last level."""
    y = _head("Misses over the tensors", "first element to last, left to right", y, marks)
    y = _legend("a line is loaded:", TIMES, y, marks)
    for number in dict.fromkeys((0, len(levels) - 1)):
        for each in levels[number]:
            if each.counts.misses:
                y = _draw_row(each, *_over_tensor(found, number, each), TIMES, y, marks)
    return y


def _over_time(
    found: CacheSimulation, number: int, each: TensorCounts
) -> tuple[list[float], Callable[[int, int], str]]:
    all_accesses = found.over_time(0, each.tensor)[0].tolist()
    misses = found.over_time(number, each.tensor)[1].tolist()
    shares = [n / max(whole, 1) for n, whole in zip(misses, all_accesses, strict=True)]

    def words(begin: int, end: int) -> str:
        first = begin * found.bin_accesses + 1
        last = min(end * found.bin_accesses, found.accesses)
        return (
            f"{each.tensor.name}, accesses {first:,} to {last:,} of the program: "
            f"{sum(misses[begin:end]):,} of {sum(all_accesses[begin:end]):,} "
            f"miss in {each.counts.level.name}"
        )

    return shares, words


def _over_tensor(
    found: CacheSimulation, number: int, each: TensorCounts
) -> tuple[list[float], Callable[[int, int], str]]:
    misses = found.over_tensor(number, each.tensor).tolist()
    place, line = found.placements[each.tensor], each.counts.level.line
    ends = [min((n + 1) * place.part_bytes, place.bytes) for n in range(len(misses))]
    lines = [max(-(-end // line) - n * place.part_bytes // line, 1) for n, end in enumerate(ends)]
    times = [n / count for n, count in zip(misses, lines, strict=True)]

    def words(begin: int, end: int) -> str:
        first, last = begin * place.part_bytes, ends[end - 1]
        return (
            f"{each.tensor.name}, {format_bytes(first)} to {format_bytes(last)}: "
            f"{sum(misses[begin:end]):,} misses in {each.counts.level.name} on "
            f"{sum(lines[begin:end]):,} lines"
        )

    return times, words


def _draw_row(
    each: TensorCounts, values: list[float], words: Callable[[int, int], str], scale: Scale,
    y: float, marks: list[Mark],
) -> float:  # fmt: skip
    """Draw a row of cells; neighbouring cells of the same shade are one mark."""
    name = each.tensor.name
    short = name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"
    keys = list(each.keys)
    marks.append({"shape": "text", "role": "label", "x": _LEFT, "y": y + 11, "keys": keys,
                  "text": f"{short} {each.counts.level.name}", "title": name})  # fmt: skip
    left = _LEFT + _NAME_PX
    cell = (_RIGHT - left) / max(len(values), 1)
    marks.append({"shape": "rect", "role": "axis", "x": left, "y": y + 1, "w": _RIGHT - left,
                  "h": _ROW - 3, "title": words(0, len(values))})  # fmt: skip
    for begin, end, shade in _runs(values, scale):
        marks.append(
            {"shape": "rect", "role": "cell", "x": round(left + begin * cell, 1), "y": y + 1,
             "w": round((end - begin) * cell, 1), "h": _ROW - 3, "fill": _color(shade, scale),
             "keys": keys, "title": words(begin, end)}
        )  # fmt: skip
    return y + _ROW


def _runs(values: list[float], scale: Scale) -> Iterator[tuple[int, int, int]]:
    """Yield begin, end and shade of each run of cells with the same shade; cells of 0 have none."""
    begin = 0
    for shade, group in groupby(_shade(value, scale) for value in values):
        end = begin + len(list(group))
        if shade is not None:
            yield begin, end, shade
        begin = end


def _shade(value: float, scale: Scale) -> int | None:
    if value <= 0:
        return None
    return next((n for n, (limit, _) in enumerate(scale) if value <= limit), len(scale) - 1)


def _color(shade: int, scale: Scale) -> str:
    return ramp(shade / (len(scale) - 1))


def _head(title: str, detail: str, y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, _LEFT, y)
    flow.text(title, "name")
    flow.text(detail, "soft")
    return flow.y + _LINE


def _legend(what: str, scale: Scale, y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, _LEFT, y)
    flow.text(what, "soft")
    for shade, (_, text) in enumerate(scale):
        flow.swatch(_color(shade, scale), f"{text} ", [], f"{what} {text}")
    return flow.y + _LINE + 3
