"""Advice as rows of text: the loop, the finding, its source, and the step to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dlcompiler.analysis.advice import GPU_RULES, RULES, Advice, Severity, Speed, advise
from dlcompiler.analysis.advice.peak import FAR
from dlcompiler.errors import DLCompilerError
from dlcompiler.ops.gemm.written import product_of
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.schedule import Schedule
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.per_state import per_state
from dlcompiler.views.render.scene import Table

MOST_ROWS = 20
"""Largest number of rows shown; the first ones are the most serious."""

FOR_A_CPU = (
    "No advice: the rules are about the caches, vectors and threads of a CPU, and this program "
    "runs on threads of a device. For a GPU as target, there are rules about its kernels."
)
NOT_MEASURED = " Those about its speed apply when it was measured."
OPEN_BEST = "Open the best known schedule as a branch"
"""The button that leads to the schedule of the operator library."""
BEST_SOURCE = (
    "K. Goto, R. A. van de Geijn, Anatomy of High-Performance Matrix Multiplication, TOMS 34(3), "
    "2008, section 4"
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
    opens: str
    """The schedule that a button opens as a branch: ``best``, the best known one; '' for none."""
    opens_text: str


class AdviceList(TypedDict):
    """The findings of the rules for a state."""

    rows: list[AdviceRow]
    summary: str


def advice(
    schedule: Schedule,
    args: Sequence[Tensor],
    target: Target,
    speed: Speed | None = None,
    kernels: Sequence[KernelFacts] | None = None,
) -> AdviceList:
    """Apply the rules of `dlcompiler.analysis.advice` to a schedule's current state.

    Parameters
    ----------
    schedule
        The schedule.
    args
        Parameters of the function: inputs first, outputs last.
    target
        The machine.
    speed
        How fast this state ran, if it was measured.
    kernels
        What is known of its kernels on a GPU; None: they are described here.

    Returns
    -------
    AdviceList
        JSON-able, the most serious first; empty if the state cannot be lowered, or if the
        program is for threads and the target is no GPU.
    """
    known = _advice(schedule, tuple(args), target, speed, None if kernels is None else (*kernels,))
    return {"rows": [row.copy() for row in known["rows"]], "summary": known["summary"]}


@per_state
def _advice(
    schedule: Schedule,
    args: tuple[Tensor, ...],
    target: Target,
    speed: Speed | None,
    kernels: tuple[KernelFacts, ...] | None,
) -> AdviceList:
    is_gpu = target.device == "gpu"
    try:
        footprint = footprint_of(schedule, args, target)
        if is_gpu and kernels is None:
            kernels = tuple(kernels_of(lower_program(schedule, args, target), target))
        elif not is_gpu and is_for_device(footprint, target):
            return {"rows": [], "summary": FOR_A_CPU}
        found = advise(schedule, footprint, target, speed, kernels or ())
    except DLCompilerError as error:
        return {"rows": [], "summary": f"No advice: {error.problem}."}
    rows = [*([] if is_gpu else _best(schedule, speed)), *map(_row, found)]
    return (
        _listed(rows, len(GPU_RULES), "")
        if is_gpu
        else _listed(rows, len(RULES), NOT_MEASURED if speed is None else "")
    )


def _listed(rows: list[AdviceRow], rules: int, more: str) -> AdviceList:
    """Return the first rows under a summary; `more` is said where there are none."""
    if not rows:
        text = f"No advice: none of the {rules} rules applies to this schedule."
        return {"rows": [], "summary": text + more}
    noun = "piece" if len(rows) == 1 else "pieces"
    cut = f"; the first {MOST_ROWS} are shown" if len(rows) > MOST_ROWS else ""
    summary = f"{len(rows)} {noun} of advice, from {rules} rules{cut}."
    return {"rows": rows[:MOST_ROWS], "summary": summary}


def advice_table(found: AdviceList) -> Table:
    """Return advice as rows under columns."""
    return {
        "columns": ["severity", "rule", "loop", "advice", "to try", "source"],
        "rows": [
            [row["severity"], row["rule"], row["place"], row["text"],
             row["step_text"] or row["opens_text"], row["source"]]
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
        "opens": "",
        "opens_text": "",
    }


def _best(schedule: Schedule, speed: Speed | None) -> list[AdviceRow]:
    """Return the row that offers the operator's schedule for a product that was measured slow."""
    if speed is None or speed.share >= FAR:
        return []
    found = next((tensor for tensor in schedule.outputs if product_of(tensor) is not None), None)
    if found is None:
        return []
    stage = schedule[found].name
    return [
        {
            "rule": "a faster schedule is known",
            "text": f"{stage} is a matrix product. The library has a schedule for it with a "
            "register tile and packed copies; its config is the fastest on record for this machine "
            "or, without a record, the default one",
            "key": loop_key(stage),
            "place": stage,
            "severity": "high",
            "source": BEST_SOURCE,
            "step": None,
            "step_text": "",
            "opens": "best",
            "opens_text": OPEN_BEST,
        }
    ]
