"""The picture of a profile: where the time of a model goes, along a run and kernel by kernel.

The upper part is like a flame graph: time runs to the right, a bar is a kernel, and a bar above
several others is the part of the model that their names share. The lower part compares the slowest
kernels with the least time that their operations and bytes allow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from dlcompiler.graph.execution.profiles import KernelTime, Profile
from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.scene import Cell, Mark, Role, Scene
from dlcompiler.views.render.text import shortened, text_table
from dlcompiler.views.render.units import percent
from dlcompiler.views.tuning.chart import AMBER, BLUE, GREEN, SKY, USUAL, Scale, line, text

COLUMNS = ("kernel", "operators", "schedule", "time", "share", "rate", "of roofline")
MOST_ROWS = 20
"""Most kernels in a table in a terminal; [1]."""
MOST_BARS = 12
"""Most kernels in the lower part; [1]."""
HOW_TO_READ = (
    "In the upper part, time runs to the right, in the order of the run. A bar is a kernel, and as "
    "wide as it takes long; a bar above others is the part of the model that their names share. "
    "Below are the slowest kernels. Of each, the full part is the least time that its operations "
    "or its bytes take on this machine, if that is known; the faint rest is what is left to gain."
)
_LANE_PX, _ROW_PX = 22.0, 22.0
_MARGIN, _NAMES_PX, _VALUES_PX = 8.0, 240.0, 180.0
_CHAR_PX = 6.8
_NARROWEST_PX = 0.4
"""Bars that are narrower are left out: the table has them; [px]."""
_DEEPEST = 3
"""Most bars above each other between the model and a kernel; [1]."""
_LONGEST, _SHORT = 36, 31
"""Most characters of a name in the table, and beside a bar; [1]."""
_SEPARATORS = re.compile(r"[/.:]+|_(?=[a-z])")
_KIND_COLORS = (BLUE, GREEN, AMBER, SKY)


def profile_scene(profile: Profile) -> Scene:
    """Return the picture of a profile.

    Parameters
    ----------
    profile
        The times of the kernels of a model.
    """
    flame, height = _flame(profile)
    bars, below = _bars(profile, height + 26)
    rows: list[list[Cell]] = [list(row) for row in profile_rows(profile, len(profile))]
    return {
        "title": "Where the time of a model goes",
        "summary": _summary(profile),
        "how_to_read": HOW_TO_READ,
        "width": USUAL,
        "height": below,
        "marks": [*flame, *bars],
        "table": {"columns": list(COLUMNS), "rows": rows},
    }


def _summary(profile: Profile) -> str:
    if not profile:
        return "The model has no kernel."
    slowest = max(profile, key=lambda each: each.seconds)
    share = percent(slowest.seconds / profile.seconds)
    kinds = sorted({str(each.times) for each in profile})
    return (
        f"{count(len(profile), 'kernel')} in {format_seconds(profile.seconds)}; the slowest, "
        f"{shortened(slowest.name, _LONGEST)}, takes {share} of it ({'; '.join(kinds)})."
    )


# -- the flame ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Span:
    """Neighbouring kernels whose names begin with the same words."""

    depth: int
    first: int
    last: int
    """Number of the kernel behind it."""
    name: str
    words: str
    """What stands in it: its name without those of the bars above."""


def _flame(profile: Profile) -> tuple[list[Mark], float]:
    """Return the marks of the upper part, and its height; [px]."""
    total = profile.seconds or 1.0
    starts = [0.0, *accumulate(each.seconds for each in profile)]
    spans = list(_spans(profile)) if profile else []
    deepest = max((span.depth for span in spans), default=0)
    scale = Scale(0.0, total, _MARGIN, USUAL - _MARGIN)
    marks: list[Mark] = []
    for span in spans:
        left, right = scale.at(starts[span.first]), scale.at(starts[span.last])
        about = _about(span.name, starts[span.last] - starts[span.first], total)
        marks += _bar(span.words, about, "box", BLUE, (left, right, 4 + span.depth * _LANE_PX))
    colors = _colors(profile)
    y = 4 + (deepest + 1) * _LANE_PX
    for n, each in enumerate(profile):
        place = (scale.at(starts[n]), scale.at(starts[n + 1]), y)
        about = _about(each.name, each.seconds, total)
        marks += _bar(each.name, about, "node", colors.get(_kind(each), "none"), place)
    foot = y + _LANE_PX
    marks.append(line(_MARGIN, foot + 4, USUAL - _MARGIN, foot + 4))
    for value in scale.ticks(6):
        marks.append(text(scale.at(value), foot + 18, format_seconds(value), "middle"))
    return marks + _legend(colors, foot + 28), foot + 46


def _about(name: str, seconds: float, total: float) -> str:
    return f"{name}: {format_seconds(seconds)}, {percent(seconds / total)}"


def _legend(colors: Mapping[str, str], y: float) -> list[Mark]:
    marks: list[Mark] = []
    at = _MARGIN
    for name, color in {**colors, "others": "none"}.items():
        marks.append({"shape": "rect", "role": "node", "x": at, "y": y, "w": 12.0, "h": 12.0,
                      "fill": color})  # fmt: skip
        marks.append(text(at + 17, y + 10, name))
        at += 36 + _CHAR_PX * len(name)
    return marks


def _bar(
    words: str, about: str, role: Role, fill: str, place: tuple[float, float, float]
) -> list[Mark]:  # fmt: skip
    left, right, y = place
    if right - left < _NARROWEST_PX:
        return []
    marks: list[Mark] = [
        {"shape": "rect", "role": role, "x": left, "y": y, "w": right - left, "h": _LANE_PX - 2,
         "fill": fill, "title": about}
    ]  # fmt: skip
    room = int((right - left - 8) / _CHAR_PX)
    if room >= 4:
        marks.append(text(left + 4, y + 14, shortened(words, room), "start", "label"))
    return marks


def _spans(profile: Profile) -> Iterator[_Span]:
    """Yield the whole model, and the parts of it that the names share."""
    yield _Span(0, 0, len(profile), "the model", "the model")
    words = [_words(each.name) for each in profile]
    yield from _parts(words, 0, len(words), 0, 1)


def _words(name: str) -> tuple[str, ...]:
    """Return the words of the name of a kernel's first node, but the last.

    Examples
    --------
    >>> _words("/layer1/layer1.0/conv1/Conv+/layer1/relu"), _words("block2_conv+block2_norm")
    (('layer1', 'layer1', '0', 'conv1'), ('block2',))
    """
    found = [word for word in _SEPARATORS.split(name.partition("+")[0]) if word]
    return tuple(found[:-1])


def _parts(
    words: Sequence[tuple[str, ...]], first: int, last: int, known: int, depth: int
) -> Iterator[_Span]:
    """Yield the parts among some kernels, whose names have the first words in common."""
    if depth > _DEEPEST:
        return
    at = first
    for word, group in groupby(words[first:last], lambda of: of[known] if len(of) > known else ""):
        size = len(list(group))
        if word and size > 1:
            shared = known + 1
            if size < last - first or depth == 1:
                yield _Span(depth, at, at + size, ".".join(words[at][:shared]), word)
                yield from _parts(words, at, at + size, shared, depth + 1)
            else:  # all of them: the same part with a longer name
                yield from _parts(words, at, at + size, shared, depth)
        at += size


def _kind(time: KernelTime) -> str:
    return "" if time.work is None else time.work.schedule


def _colors(profile: Profile) -> dict[str, str]:
    """Return a colour for each of the kinds of kernels that take most."""
    spent: dict[str, float] = defaultdict(float)
    for each in profile:
        spent[_kind(each)] += each.seconds
    kinds = sorted(filter(None, spent), key=lambda name: -spent[name])
    return dict(zip(kinds, _KIND_COLORS, strict=False))


# -- the slowest kernels ---------------------------------------------------------------------------


def _bars(profile: Profile, top: float) -> tuple[list[Mark], float]:
    """Return a bar for each of the slowest kernels, and where they end; [px]."""
    slowest = sorted(profile, key=lambda each: -each.seconds)[:MOST_BARS]
    longest = max((each.seconds for each in slowest), default=1.0)
    scale = Scale(0.0, longest, _NAMES_PX, USUAL - _VALUES_PX)
    marks: list[Mark] = []
    for n, each in enumerate(slowest):
        y = top + n * _ROW_PX
        marks.append(text(_NAMES_PX - 8, y + 13, shortened(each.name, _SHORT), "end", "label"))
        end = scale.at(each.seconds)
        marks.append({"shape": "rect", "role": "box", "x": _NAMES_PX, "y": y, "fill": BLUE,
                      "w": end - _NAMES_PX, "h": _ROW_PX - 5, "title": each.name})  # fmt: skip
        words = format_seconds(each.seconds)
        if each.least_s is not None:
            least = min(scale.at(each.least_s), end)
            marks.append({"shape": "rect", "role": "bar", "x": _NAMES_PX, "y": y, "fill": BLUE,
                          "w": least - _NAMES_PX, "h": _ROW_PX - 5,
                          "title": f"least time by the {each.bound}: "
                          f"{format_seconds(each.least_s)}"})  # fmt: skip
        if each.of_roofline is not None:
            words += f", {percent(each.of_roofline)} of {each.bound}"
        marks.append(text(end + 6, y + 13, words))
    return marks, top + len(slowest) * _ROW_PX + 6


# -- the table ------------------------------------------------------------------------------------


def profile_table(profile: Profile, most: int = MOST_ROWS) -> str:
    """Return the kernels of a model as a table, slowest first.

    Parameters
    ----------
    profile : Profile
        The times of the kernels.
    most : int
        Most rows; one more adds up the others.
    """
    return text_table(COLUMNS, profile_rows(profile, most))


def profile_rows(profile: Profile, most: int) -> list[tuple[str, ...]]:
    """Return the rows of `profile_table`."""
    total = profile.seconds
    ranked = sorted(profile, key=lambda each: -each.seconds)
    rows = [_row(each, total) for each in ranked[:most]]
    if rest := ranked[most:]:
        seconds = sum(each.seconds for each in rest)
        share = percent(seconds / total)
        rows.append((f"{len(rest)} others", "", "", format_seconds(seconds), share, "", ""))
    return rows


def _row(time: KernelTime, total: float) -> tuple[str, ...]:
    work = time.work
    names = ", ".join(name.removeprefix("nn.") for name in work.operators) if work else ""
    share = time.of_roofline
    return (
        shortened(time.name, _LONGEST), shortened(names, _LONGEST),
        (work.schedule or "plain") if work else "",
        format_seconds(time.seconds), percent(time.seconds / total), _rate(time),
        "" if share is None else f"{percent(share)} ({time.bound})",
    )  # fmt: skip


def _rate(time: KernelTime) -> str:
    """Return the rate of what limits a kernel: of its operations, or of the bytes that it moves."""
    if time.work is None:
        return ""
    flops = time.work.flops
    if flops and time.bound != "memory":
        return f"{format_rate(flops / time.seconds / 1e9)} GFLOP/s"
    return f"{format_rate(time.work.bytes / time.seconds / 1e9)} GB/s"
