"""Advice as rows of text: the loop, the finding, its source, and the step to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dlcompiler.analysis.advice import RULES, Advice, Severity, advise
from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.per_state import per_state
from dlcompiler.views.render.scene import Table

MOST_ROWS = 20
"""Largest number of rows shown; the first ones are the most serious."""

FOR_A_CPU = (
    "No advice: the rules are for loops of a CPU, and this program runs on threads of a device."
)


class AdviceRow(TypedDict):
    """One piece of advice."""

    rule: str
    text: str
    """One sentence, with the numbers."""
    key: str
    """Key of the loop or the stage in the loop tree."""
    place: str
    """The same in words."""
    severity: Severity
    source: str
    step: dict[str, Any] | None
    """What to try, as data; it is legal in this state."""
    step_text: str


class AdviceList(TypedDict):
    """The findings of the rules for a state."""

    rows: list[AdviceRow]
    summary: str


def advice(schedule: Schedule, args: Sequence[Tensor], target: Target) -> AdviceList:
    """Apply the rules of `dlcompiler.analysis.advice` to a schedule's current state.

    Parameters
    ----------
    schedule
        The schedule.
    args
        Parameters of the function: inputs first, outputs last.
    target
        The machine.

    Returns
    -------
    AdviceList
        JSON-able, the most serious first; empty if the state cannot be lowered, or if the
        program is for a device.
    """
    known = _advice(schedule, tuple(args), target)
    return {"rows": [row.copy() for row in known["rows"]], "summary": known["summary"]}


@per_state
def _advice(schedule: Schedule, args: tuple[Tensor, ...], target: Target) -> AdviceList:
    try:
        footprint = footprint_of(schedule, args, target)
        if is_for_device(footprint, target):
            return {"rows": [], "summary": FOR_A_CPU}
        found = advise(schedule, footprint, target)
    except DLCompilerError as error:
        return {"rows": [], "summary": f"No advice: {error.problem}."}
    rows = [_row(item) for item in found]
    if not rows:
        return {
            "rows": [],
            "summary": f"No advice: none of the {len(RULES)} rules applies to this schedule.",
        }
    noun = "piece" if len(rows) == 1 else "pieces"
    cut = f"; the first {MOST_ROWS} are shown" if len(rows) > MOST_ROWS else ""
    summary = f"{len(rows)} {noun} of advice, from {len(RULES)} rules{cut}."
    return {"rows": rows[:MOST_ROWS], "summary": summary}


def advice_table(found: AdviceList) -> Table:
    """Return advice as rows under columns."""
    return {
        "columns": ["severity", "rule", "loop", "advice", "to try", "source"],
        "rows": [
            [row["severity"], row["rule"], row["place"], row["text"], row["step_text"],
             row["source"]]
            for row in found["rows"]
        ],
    }  # fmt: skip


def _row(item: Advice) -> AdviceRow:
    finding = item.finding
    step = finding.step
    return {
        "rule": item.rule,
        "text": finding.text,
        "key": loop_key(finding.stage, finding.path),
        "place": f"{finding.path} of {finding.stage}" if finding.path else finding.stage,
        "severity": finding.severity,
        "source": item.source,
        "step": None if step is None else step.to_json(),
        "step_text": "" if step is None else str(step),
    }
