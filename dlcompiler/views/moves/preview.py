"""Preview of a step: its verdict, the resulting loop nest, and the metrics before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.schedule import Illegal, Pending, Schedule, Step
from dlcompiler.schedule.moves.device_moves import verdict_on
from dlcompiler.schedule.moves.suggestions import suggestion
from dlcompiler.schedule.trace import decode
from dlcompiler.target import Target
from dlcompiler.views.loops.ghost import GhostRow, ghost_rows
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.loops.tails import tail_of_step, without_tail
from dlcompiler.views.moves.palette import Availability

MOST_METRICS = 3

Metrics = Callable[[Schedule], Sequence[Mapping[str, Any]]]
"""Metrics of a schedule: each with ``name``, ``value``, ``unit``, ``text`` and ``kind``."""


class MetricChange(TypedDict):
    """A metric before and after a step."""

    name: str
    before: str
    after: str
    kind: str
    """Where it comes from: ``exact``, ``predicted``."""
    change: str
    """The change: ``same``, ``×4``; '' if a ratio makes no sense."""


class NearestChange(TypedDict):
    """Steps that can replace an illegal or inefficient one."""

    text: str
    steps: list[dict[str, Any]]
    start: str
    """Id of the state to go back to first; '' for the current one."""


class Preview(TypedDict):
    """The preview of a step."""

    step: dict[str, Any]
    """The step as requested."""
    title: str
    status: Availability
    kind: str
    reason: str
    """Why it is illegal, or the obligation that would be pending."""
    because: str
    got: str
    hint: str
    conflicts: list[str]
    """Keys in the loop tree of the loops and statements that make it illegal."""
    nearest: NearestChange | None
    """The nearest legal step for an illegal one, or a split without a tail for one with a tail."""
    tail: str
    """What a split costs."""
    rows: list[GhostRow]
    """The resulting loop nest, compared with the current one."""
    metrics: list[MetricChange]


def preview(
    schedule: Schedule, step: Step, metrics: Metrics | None = None, target: Target | None = None
) -> Preview:
    """Return the preview of a step; the schedule is not changed.

    Parameters
    ----------
    schedule
        The schedule, at the state to go on from.
    step
        The step as data; the stages and axes that it names are looked up in the state.
    metrics
        Metrics to compare: the first three that both states have.
    target
        The machine to schedule for, as in `Schedule.moves`.

    Returns
    -------
    Preview
        JSON-able.
    """
    view: Preview = {
        "step": step.to_json(), "title": str(step), "status": "legal", "kind": "", "reason": "",
        "because": "", "got": "", "hint": "", "conflicts": [], "nearest": None, "tail": "",
        "rows": [], "metrics": [],
    }  # fmt: skip
    try:
        args = decode(schedule.state, step)
        attempt = schedule.attempt(step.primitive, step.stage, args)
    except ScheduleError as error:
        view["status"], view["reason"] = "illegal", error.problem
        return view
    view["tail"] = tail_of_step(schedule.state, step.primitive, step.stage, args)
    verdict = verdict_on(target, attempt, args)
    if isinstance(verdict, Illegal):
        _refuse(view, verdict)
        if verdict is attempt.verdict:
            view["nearest"] = _nearest(schedule, step.primitive, step.stage, args)
        return view
    if isinstance(verdict, Pending):
        view["status"], view["reason"] = "pending", verdict.obligation
    view["nearest"] = _without_tail(schedule, step, args)
    after = schedule.after(attempt)
    view["rows"] = ghost_rows(loop_tree(schedule), loop_tree(after))
    if metrics is not None:
        view["metrics"] = _changes(metrics, schedule, after)
    return view


def _refuse(view: Preview, verdict: Illegal) -> None:
    view["status"], view["kind"], view["reason"] = "illegal", verdict.kind, verdict.reason
    view["because"], view["got"] = verdict.because or "", verdict.got or ""
    view["hint"], view["conflicts"] = verdict.hint or "", list(verdict.conflicts)


def _nearest(
    schedule: Schedule, name: str, stage: str, args: Mapping[str, Any]
) -> NearestChange | None:
    found = suggestion(schedule, name, stage, args)
    if found is None:
        return None
    steps = [step.to_json() for step in found.steps]
    return {"text": found.text, "steps": steps, "start": found.start}


def _without_tail(schedule: Schedule, step: Step, args: Mapping[str, Any]) -> NearestChange | None:
    """Suggest the nearest factors without a tail for a split; None if it already leaves no tail."""
    numbers = without_tail(schedule.state, step.primitive, step.stage, args)
    if not numbers:
        return None
    new = " × ".join(str(number) for number in numbers.values())
    old = " × ".join(str(step.args[name]) for name in numbers)
    better = replace(step, args={**step.args, **numbers})
    return {
        "text": f"use {new} instead of {old}, without a tail",
        "steps": [better.to_json()],
        "start": "",
    }


def _changes(metrics: Metrics, before: Schedule, after: Schedule) -> list[MetricChange]:
    """Pair the metrics of two states; [] if one has none because an obligation is pending."""
    try:
        old = {str(metric["name"]): metric for metric in metrics(before)}
        new = {str(metric["name"]): metric for metric in metrics(after)}
    except DLCompilerError:
        return []
    names = [name for name in old if name in new][:MOST_METRICS]
    return [
        {
            "name": name,
            "before": str(old[name]["text"]),
            "after": str(new[name]["text"]),
            "kind": str(new[name]["kind"]),
            "change": _ratio(old[name]["value"], new[name]["value"]),
        }
        for name in names
    ]


def _ratio(before: Any, after: Any) -> str:
    """Return ``same``, or the ratio of the new to the old value; '' if there is no ratio."""
    if before == after:
        return "same"
    is_number = isinstance(before, int | float) and isinstance(after, int | float)
    return f"×{after / before:.3g}" if is_number and before > 0 else ""
