"""View model of a timeline: the instructions of each engine as arrays, merged where they are small.

A program may have 100,000 instructions, and a picture has some hundred columns. Instructions that
are narrower than a column are merged into a block, which keeps the share of busy cycles. Their
number is bounded by the number of columns, whatever the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.ir import Stmt
from dlcompiler.pipeline.timelines import Timeline
from dlcompiler.simulate.accelerators import Step
from dlcompiler.simulate.accelerators.timing.machine import FETCH
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.simulate.accelerators.timing.waits import Token, tokens_of
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.render.colors import HUES, lighter
from dlcompiler.views.render.scene import Cell, Table

Ints: TypeAlias = npt.NDArray[np.int64]
Group: TypeAlias = tuple[str, bool]
"""Name of a group of instructions, and whether it is a stage."""
PASSING = "only tokens"
"""Group of the instructions that only pop and push tokens."""


@dataclass(frozen=True, eq=False)
class Lane:
    """The instructions of an engine in order; cycles count from the start of the first part."""

    engine: str
    part: Ints
    """Number of the part that each instruction is in; (count,)."""
    step: Ints
    """Number of each instruction in its part; (count,)."""
    start: Ints
    """First busy cycle; (count,) [clock]."""
    end: Ints
    """First cycle in which it is done; (count,) [clock]."""
    idle_since: Ints
    """(count,) [clock]"""
    reason: Ints
    """Why each did not start before; as in `TimedRun`."""
    port_wait: Ints
    """(count,) [clock]"""
    group: Ints
    """Number of the stage that each comes from; (count,)."""

    def within(self, first: int, last: int) -> Lane:
        """Return the instructions that are busy or waited for in some cycles."""
        kept = (self.end > first) & (self.idle_since < last)
        arrays = (self.part, self.step, self.start, self.end, self.idle_since, self.reason,
                  self.port_wait, self.group)  # fmt: skip
        return Lane(self.engine, *(array[kept] for array in arrays))


@dataclass(frozen=True, eq=False)
class Row:
    """The lanes of a program."""

    name: str
    parts: tuple[TimedRun, ...]
    begins: tuple[int, ...]
    """First cycle of each part; [clock]."""
    cycles: int
    lanes: tuple[Lane, ...]

    def step(self, part: int, number: int) -> Step:
        """Return an instruction."""
        return self.parts[part].program.steps[number]

    def tokens(self) -> Iterator[tuple[int, Token]]:
        """Yield the tokens with the number of their part."""
        for number, run in enumerate(self.parts):
            yield from ((number, token) for token in tokens_of(run.program))


@dataclass(frozen=True, eq=False)
class Model:
    """A timeline as arrays, within its window."""

    rows: tuple[Row, ...]
    groups: tuple[str, ...]
    """Stages that the instructions come from, in the order of their first one; names of those
    instructions that come from none."""
    stages: frozenset[str]
    """The groups that are stages."""
    first: int
    last: int
    provenance: str

    @property
    def count(self) -> int:
        """Instructions in the window; [1]."""
        return sum(len(lane.step) for row in self.rows for lane in row.lanes)


@dataclass(frozen=True, eq=False)
class Bars:
    """What is drawn of a lane: single instructions, and blocks of several."""

    first: Ints
    """Index of the first instruction of each in its lane; (count,)."""
    count: Ints
    """Number of instructions of each; (count,)."""
    start: Ints
    end: Ints
    busy: Ints
    """Busy cycles of each; (count,) [clock]."""
    group: Ints
    """The stage that most of the busy cycles come from; (count,)."""


def model_of(timeline: Timeline) -> Model:
    """Return the view model of a timeline."""
    groups: dict[Group, int] = {}
    rows = [_row(name, parts, groups)
            for name, parts in zip(timeline.names, timeline.runs, strict=True)]  # fmt: skip
    # The host waits until a FINISH starts: its engine is busy for a cycle more.
    ends = [int(lane.end[-1]) for row in rows for lane in row.lanes if len(lane.end)]
    whole = max([row.cycles for row in rows] + ends, default=0)
    last = min(timeline.last or whole, whole)
    first = min(timeline.first, max(last - 1, 0))
    cut = tuple(
        Row(row.name, row.parts, row.begins, row.cycles,
            tuple(lane.within(first, last) for lane in row.lanes))
        for row in rows
    )  # fmt: skip
    stages = frozenset(name for name, is_stage in groups if is_stage)
    names = tuple(name for name, _ in groups)
    provenance = provenance_of_runs([run for parts in timeline.runs for run in parts])
    return Model(cut, names, stages, first, last, provenance)


def provenance_of_runs(runs: Sequence[TimedRun]) -> str:
    """Return where the cycles come from: ``"simulated, profile B"``.

    A machine that differs from the measured one is named.
    """
    profiles = dict.fromkeys(run.program.accelerator.profile for run in runs)
    known = [f"profile {profile}" for profile in profiles if profile]
    found = ", ".join(["simulated", *known])
    differences = dict.fromkeys(text for run in runs for text in run.extrapolated)
    return f"{found}; extrapolated: {', '.join(differences)}" if differences else found


def _row(name: str, parts: tuple[TimedRun, ...], groups: dict[Group, int]) -> Row:
    begins = np.cumsum([0, *(run.cycles for run in parts)]).tolist()
    engines = list(dict.fromkeys(e.name for run in parts for e in run.program.accelerator.engines))
    whole = [groups_of(run, groups) for run in parts]
    lanes = []
    for engine in engines:
        chosen = [run.of(engine) for run in parts]

        def joined(values: Sequence[Ints], steps: Sequence[Ints] = chosen) -> Ints:
            found = [array[own] for array, own in zip(values, steps, strict=True)]
            return np.concatenate(found) if found else np.zeros(0, np.int64)

        lanes.append(Lane(
            engine,
            joined([np.full(len(run.start), n) for n, run in enumerate(parts)]),
            joined([np.arange(len(run.start)) for run in parts]),
            joined([run.start + at for run, at in zip(parts, begins, strict=False)]),
            joined([run.end + at for run, at in zip(parts, begins, strict=False)]),
            joined([run.idle_since + at for run, at in zip(parts, begins, strict=False)]),
            joined([run.reason for run in parts]), joined([run.port_wait for run in parts]),
            joined(whole),
        ))  # fmt: skip
    return Row(name, parts, tuple(begins[:-1]), begins[-1], tuple(lanes))


def groups_of(run: TimedRun, groups: dict[Group, int]) -> Ints:
    """Return the number of each instruction's group, and add new ones to `groups`."""
    known: dict[int | tuple[int, bool], int] = {}
    found: list[int] = []
    for step in run.program.steps:
        origin = step.origin
        # Most programs have few statements, and far more instructions.
        key = id(origin) if origin is not None else (id(step.instruction), any(step.values))
        number = known.get(key)
        if number is None:
            number = known[key] = groups.setdefault(_group(step), len(groups))
        found.append(number)
    return np.array(found, np.int64)


def _group(step: Step) -> Group:
    """Return the outermost stage of an instruction, else its name; and whether it is a stage."""
    keys = keys_of(step.origin) if isinstance(step.origin, Stmt) else []
    if keys:
        return keys[0], True
    is_nop = step.instruction.is_copy and not any(step.values)
    return (PASSING if is_nop else step.instruction.name), False


def color_of_group(number: int) -> str:
    """Return the colour of a group of instructions; the eighth and later ones are lighter."""
    hue = HUES[number % len(HUES)]
    return lighter(hue) if (number // len(HUES)) % 2 else hue


def bars_of(lane: Lane, column: float, groups: int) -> Bars:
    """Return what is drawn of a lane.

    Parameters
    ----------
    lane
        The instructions.
    column
        Cycles of the narrowest bar: shorter instructions of one column are merged; [clock].
    groups
        Number of stages.
    """
    if not len(lane.start):
        none = np.zeros(0, np.int64)
        return Bars(none, none, none, none, none, none)
    spans = lane.end - lane.start
    is_wide = spans >= column
    columns = np.floor(lane.start / column).astype(np.int64)
    cuts = np.ones(len(spans), bool)
    cuts[1:] = is_wide[1:] | is_wide[:-1] | (columns[1:] != columns[:-1])
    first = np.flatnonzero(cuts)
    count = np.diff([*first, len(spans)])
    of = np.cumsum(cuts) - 1
    shares = np.bincount(of * groups + lane.group, spans, len(first) * groups)
    return Bars(
        first, count, lane.start[first], np.maximum.reduceat(lane.end, first),
        np.add.reduceat(spans, first), shares.reshape(-1, groups).argmax(axis=1),
    )  # fmt: skip


def table_of(model: Model) -> Table:
    """Return the table of a timeline: a line for each engine, in the cycles that are shown."""
    entries = [_entry(row, lane, model) for row in model.rows for lane in row.lanes]
    reasons = list(dict.fromkeys(name for _, waits in entries for name in waits))
    heads = ["program", "engine", "instructions", "busy [cycles]", "busy", *reasons]
    return {
        "columns": heads,
        "rows": [[*cells, *(waits.get(name, 0) for name in reasons)] for cells, waits in entries],
    }


def _entry(row: Row, lane: Lane, model: Model) -> tuple[list[Cell], dict[str, int]]:
    first, last = model.first, model.last
    shown = max(min(last, row.cycles) - first, 1)
    busy = _covered(lane.start, lane.end, first, last)
    idle = _covered(lane.idle_since, lane.start - 1, first, last)
    waits: dict[str, int] = {}
    for name, is_chosen in _reasons(row, lane):
        if cycles := int(idle[is_chosen].sum()):
            head = f"waits for {name} [cycles]"
            waits[head] = waits.get(head, 0) + cycles
    if port := int(lane.port_wait.sum()):
        waits["busy, waits for the port [cycles]"] = port
    total = int(busy.sum())
    cells: list[Cell] = [row.name, lane.engine, len(lane.step), total, f"{total / shown:.0%}"]
    return cells, waits


def _covered(start: Ints, end: Ints, first: int, last: int) -> Ints:
    """Return how many cycles of intervals lie in a window; (count,) [clock]."""
    covered: Ints = np.maximum(np.minimum(end, last) - np.maximum(start, first), 0)
    return covered


def _reasons(row: Row, lane: Lane) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield what instructions of a lane waited for, and which ones did."""
    yield "fetch", lane.reason == FETCH
    for number, run in enumerate(row.parts):
        mine = lane.part == number
        for code, queue in enumerate(run.program.accelerator.queues or ()):
            yield queue.source, mine & (lane.reason == code)
