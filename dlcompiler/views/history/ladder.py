"""The measured times of the states of a branch, beside NumPy's time and the machine's peak.

The model of the ladder is used by a strip on the page and by a picture with one row for each state.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Cell, Mark, Scene, Table
from dlcompiler.views.tuning.chart import (
    DASHES,
    Scale,
    clipped,
    line,
    log_scale,
    number,
    text,
    wrapped,
)

Status = Literal["measured", "wrong", "failed", "empty"]

EMPTY = "Run measures the first step of the ladder."
_SHORTEST = 0.06
"""Height of the lowest bar, as a share: it must be seen and clicked."""
_LEAST_RATE = 0.1
"""Largest rate of a ladder below which the unit is smaller [GFLOP/s]."""
_WORDS = 0.32
"""Height of a line of words in the strip, as a share."""
_NAMES, _PLOT, _ROW, _RIGHT = 200.0, 240.0, 24.0, 110.0
"""Widths of the names, of the bars and of the values, and height of a row [px]."""
_SIGNS: dict[str, str] = {"measured": "", "wrong": "✕ wrong", "failed": "✕ failed", "empty": "–"}


@dataclass(frozen=True, slots=True)
class Rung:
    """A state of the branch, and its time if it was measured."""

    id: str
    title: str
    """Its name, or the step that led to it."""
    status: Status = "empty"
    seconds: float | None = None
    """Median time of a call [s]."""
    spread_s: float | None = None
    gflops: float | None = None
    """None if the program has no float operations."""
    threads: int = 1
    """Of the processor; 0 on a device that has its own."""
    note: str = ""
    """Why it is wrong or failed, or what else is known of its time."""
    is_here: bool = False
    target: str = ""
    """Name of the target that the code was made for; '' if it is not known."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A time and a rate to compare with: NumPy's, or the machine's peak."""

    text: str
    seconds: float
    gflops: float | None = None
    short: str = ""
    """A few words for the strip; by default, the text."""


class LadderRow(TypedDict):
    """A step of the ladder."""

    id: str
    title: str
    status: Status
    value: str
    """The value without its unit, or a sign where there is none."""
    share: float
    """Height of the bar, 0 to 1."""
    change: str
    """The speed as a multiple of that of the step before that was measured; '' for the first, and
    where the code of that step was made for another target."""
    label: str
    """The step in words, to be spoken."""
    is_here: bool


class LadderLine(TypedDict):
    """A line across the ladder."""

    text: str
    short: str
    """A few words and the value."""
    share: float
    place: float
    """Height of its words, 0 to 1: that of the line, moved away from those of other lines."""


class Ladder(TypedDict):
    """The measured states of a branch, as bars on a logarithmic scale."""

    title: str
    unit: str
    """Unit of all values; '' if nothing is measured."""
    summary: str
    how_to_read: str
    hint: str
    """What to do; '' if the current state is measured."""
    notes: list[str]
    """Why a line is missing."""
    rows: list[LadderRow]
    lines: list[LadderLine]
    table: Table


def ladder(
    rungs: Sequence[Rung],
    references: Sequence[Reference] = (),
    notes: Sequence[str] = (),
    *,
    can_run: bool = True,
) -> Ladder:
    """Return the ladder of a branch.

    Parameters
    ----------
    rungs
        The states, the first one first.
    references
        What they are compared with.
    notes
        Why something else is not among these.
    can_run
        Whether states can be measured here: then it says how.

    Returns
    -------
    Ladder
        JSON-able.
    """
    axis = _Axis.of(rungs, references)
    rows, before = [], None
    for rung in rungs:
        rows.append(_row(rung, before, axis, can_run))
        before = rung if rung.seconds is not None else before
    measured = [rung for rung in rungs if rung.seconds is not None]
    return {
        "title": "Ladder",
        "unit": axis.unit if measured else "",
        "summary": _summary(rungs, measured),
        "how_to_read": axis.how_to_read(),
        "hint": _hint(rungs, bool(measured)) if can_run else "",
        "notes": list(notes),
        "rows": rows,
        "lines": _lines(references, axis),
        "table": _table(rungs, references),
    }


@dataclass(frozen=True, slots=True)
class _Axis:
    """What the bars show: a rate, or a time where the program has no float operations."""

    is_rate: bool
    factor: float
    """Multiplies a rate in GFLOP/s, or a time in seconds, to give a value in `unit`."""
    unit: str
    scale: Scale

    @staticmethod
    def of(rungs: Sequence[Rung], references: Sequence[Reference]) -> _Axis:
        timed = [each for each in rungs if each.seconds is not None]
        is_rate = bool(timed) and all(each.gflops for each in timed)
        rates = [each.gflops for each in timed if each.gflops]
        factor, unit = (
            _unit_of_rates(rates) if is_rate else _unit_of([_seconds(each) for each in timed])
        )
        found = _Axis(is_rate, factor, unit, Scale(0, 1, 0, 1))
        entries: list[Rung | Reference] = [*timed, *references]
        values = [value for each in entries if (value := found.value(each))]
        if not values:
            return found
        scale = log_scale([min(values) / 1.5, max(values)], 0, 1)
        return _Axis(is_rate, factor, unit, scale)

    def value(self, item: Rung | Reference) -> float | None:
        raw = item.gflops if self.is_rate else item.seconds
        return None if raw is None else raw * self.factor

    def share(self, item: Rung | Reference) -> float:
        value = self.value(item)
        return 0.0 if value is None else round(self.position(value), 4)

    def position(self, value: float) -> float:
        # `Scale.at` rounds to tenths of a pixel: a share needs more digits.
        wide = Scale(self.scale.low, self.scale.high, 0, 1000, is_log=True)
        return max(wide.at(value) / 1000, _SHORTEST)

    def words(self, item: Rung | Reference) -> str:
        value = self.value(item)
        return "" if value is None else number(value)

    def how_to_read(self) -> str:
        better = "higher" if self.is_rate else "lower"
        return (
            "each bar is a state, from the first to the last of this branch; "
            f"{better} is faster. The scale is logarithmic: equal distances are equal ratios. "
            "A click on a bar goes to its state."
        )


def _lines(references: Sequence[Reference], axis: _Axis) -> list[LadderLine]:
    shown = [each for each in references if axis.value(each) is not None]
    places = spread([axis.share(each) for each in shown], _WORDS)
    return [
        {
            "text": f"{each.text}: {axis.words(each)}",
            "short": f"{each.short or each.text} {axis.words(each)}",
            "share": axis.share(each),
            "place": place,
        }
        for each, place in zip(shown, places, strict=True)
    ]


def spread(places: Sequence[float], distance: float) -> list[float]:
    """Move places between 0 and 1 apart, so that neighbours keep a least distance if all fit.

    Examples
    --------
    >>> spread([0.9, 0.2, 0.9], 0.25)
    [1.0, 0.2, 0.75]
    """
    order = sorted(range(len(places)), key=lambda n: (places[n], -n))
    found = dict(zip(order, sorted(places), strict=True))
    for lower, upper in itertools.pairwise(order):
        found[upper] = max(found[upper], found[lower] + distance)
    limit = 1.0
    for n in reversed(order):
        found[n] = limit = min(found[n], limit)
        limit = max(limit - distance, 0.0)
    return [round(found[n], 4) for n in range(len(places))]


def _seconds(rung: Rung) -> float:
    return rung.seconds or 0.0


def _unit_of_rates(gflops: Sequence[float]) -> tuple[float, str]:
    """Return the unit of rates, as factor and name: small programs have millionths of a peak."""
    return (1.0, "GFLOP/s") if max(gflops) >= _LEAST_RATE else (1e3, "MFLOP/s")


def _unit_of(seconds: Sequence[float]) -> tuple[float, str]:
    """Return the unit of times in which the smallest is at least 1, as factor and name."""
    least = min(seconds, default=1.0)
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if least * factor >= 1:
            return factor, unit
    return 1e9, "ns"


def _row(rung: Rung, before: Rung | None, axis: _Axis, can_run: bool) -> LadderRow:
    is_timed = rung.seconds is not None
    change = ""
    if before and before.seconds and rung.seconds and _is_one_target((before, rung)):
        change = format_ratio(before.seconds / rung.seconds)
    return {
        "id": rung.id,
        "title": rung.title,
        "status": rung.status,
        "value": axis.words(rung) if is_timed else _SIGNS[rung.status],
        "share": axis.share(rung) if is_timed else 0.0,
        "change": change,
        "label": _label(rung, change, can_run),
        "is_here": rung.is_here,
    }


def _label(rung: Rung, change: str, can_run: bool) -> str:
    parts = [rung.title]
    if rung.seconds is not None:
        rate = f", {number(rung.gflops)} GFLOP/s" if rung.gflops else ""
        threads = f", {_threads(rung.threads)}" if rung.threads else ""
        parts.append(f"measured {format_seconds(rung.seconds)}{rate}{threads}")
        parts += [f"{change} the speed of the measured step before"] if change else []
    elif rung.status == "empty":
        how = "Run" if rung.is_here else "go there, then Run"
        parts.append(f"not measured: {how}" if can_run else "not measured")
    else:
        parts.append(rung.status)
    parts += [rung.note] if rung.note else []
    parts += ["current state"] if rung.is_here else []
    return "; ".join(parts)


def _is_one_target(rungs: Sequence[Rung]) -> bool:
    """Tell whether the code of all states was made for one target, as far as is known."""
    return len({rung.target for rung in rungs} - {""}) <= 1


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _hint(rungs: Sequence[Rung], is_measured: bool) -> str:
    if not is_measured:
        return EMPTY
    here = next((rung for rung in rungs if rung.is_here), None)
    return "Run measures the current state." if here and here.status == "empty" else ""


def _summary(rungs: Sequence[Rung], measured: Sequence[Rung]) -> str:
    if not measured:
        return "No state of this branch is measured."
    count = f"{len(measured)} of {len(rungs)} states measured"
    first, last = measured[0], measured[-1]
    if first is last or not first.seconds or not last.seconds:
        return f"{count}."
    if not _is_one_target(measured):
        return f"{count}, of code for several targets: these are not compared."
    ratio = format_ratio(first.seconds / last.seconds)
    return f"{count}; the last one has {ratio} the speed of the first."


def _table(rungs: Sequence[Rung], references: Sequence[Reference]) -> Table:
    rows: list[list[Cell]] = [
        [
            rung.title,
            _in_words(rung.seconds),
            _in_words(rung.spread_s),
            number(rung.gflops) if rung.gflops else "",
            (rung.threads or None) if rung.seconds is not None else None,
            rung.status if rung.status != "empty" else "not measured",
            rung.note,
        ]
        for rung in rungs
    ]
    rows += [
        [each.text, _in_words(each.seconds), "", number(each.gflops) if each.gflops else "",
         None, "measured", ""]
        for each in references
    ]  # fmt: skip
    return {"columns": ["state", "time", "±", "GFLOP/s", "threads", "status", "note"], "rows": rows}


def _in_words(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


# -- the picture ----------------------------------------------------------------------------------


def ladder_scene(model: Ladder) -> Scene:
    """Return the picture of a ladder: a row for each state, and a vertical line for each reference.

    The key of a mark is the id of its state.
    """
    rows, lines = model["rows"], model["lines"]
    top = 20.0 + 16.0 * len(lines)
    bottom = top + _ROW * len(rows)
    marks: list[Mark] = [text(_NAMES, 12, model["unit"] and f"{model['unit']} (logarithmic)")]
    for place, each in enumerate(lines):
        x, y = round(_NAMES + each["share"] * _PLOT, 1), 28.0 + 16.0 * place
        look: Mark = {"dash": DASHES[1 + place % 5], "title": each["text"]}
        marks.append({**line(x, top - 2, x, bottom, "capacity"), **look})
        marks.append({**line(_NAMES, y - 4, _NAMES + 26, y - 4, "capacity"), **look})
        marks.append(text(_NAMES + 32, y, each["text"], "start", "label"))
    for place, row in enumerate(rows):
        marks += _bar(row, top + _ROW * place)
    marks.append(line(_NAMES, top - 2, _NAMES, bottom, "axis"))
    width = _NAMES + _PLOT + _RIGHT
    said = [note for note in (model["hint"], *model["notes"]) if note]
    notes = [words for note in said for words in wrapped(note, width)]
    marks += [text(0, bottom + 18 + 16 * n, note) for n, note in enumerate(notes)]
    return {
        "title": model["title"],
        "summary": model["summary"],
        "how_to_read": f"{model['how_to_read']} In brackets: how many times as fast as the "
        "measured state before. The vertical lines are named above.",
        "width": width,
        "height": bottom + 10 + 16 * len(notes),
        "marks": marks,
        "table": model["table"],
    }


def _bar(row: LadderRow, y: float) -> list[Mark]:
    width = round(row["share"] * _PLOT, 1)
    keys = [row["id"]]
    name: Mark = {
        **text(0, y + 16, clipped(row["title"], _NAMES - 8), "start",
               "name" if row["is_here"] else "label"),
        "keys": keys, "title": row["label"],
    }  # fmt: skip
    bar: Mark = {
        "shape": "rect", "role": "bar" if width else "capacity", "x": _NAMES, "y": y + 4,
        "w": width or 12.0, "h": _ROW - 8, "keys": keys, "title": row["label"],
    }  # fmt: skip
    if width:
        bar["fill"] = HUES[0] if row["is_here"] else HUES[5]
    change = f"  ({row['change']})" if row["change"] else ""
    # Beside the plot: a value at the end of its bar would be crossed by the lines.
    value = text(_NAMES + _PLOT + 8, y + 16, row["value"] + change, "start", "label")
    return [name, bar, value]
