"""Preview of a step: its verdict, the resulting loop nest, and the metrics before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.runtime.timing import format_ratio
from dlcompiler.schedule import Illegal, Pending, Schedule, Step
from dlcompiler.schedule.moves.device_moves import verdict_on
from dlcompiler.schedule.moves.suggestions import suggestion
from dlcompiler.schedule.trace import decode
from dlcompiler.target import Target
from dlcompiler.views.loops.ghost import GhostRow, ghost_rows
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.loops.tails import tail_of_step, without_tail
from dlcompiler.views.moves.effect import why_without_effect
from dlcompiler.views.moves.figures import Model, models_of
from dlcompiler.views.moves.palette import Availability

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
    """The change: ``same``, ``4.0×``; '' if a ratio makes no sense."""
    bars: list[float]
    """Before and after, as parts of the larger of both; [] if they are no amounts."""


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
    """Why it is illegal or changes nothing, or the obligation that would be pending."""
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
    models: list[Model]
    """The models that the predicted metrics come from."""
    unknown: str
    """Why some metrics are unknown; '' if all are known."""


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
        Metrics to compare: those that both states have.
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
        "rows": [], "metrics": [], "models": [], "unknown": "",
    }  # fmt: skip
    try:
        args = decode(schedule.state, step)
        attempt = schedule.attempt(step.primitive, step.stage, args)
    except ScheduleError as error:
        view["status"], view["reason"] = "illegal", error.problem
        return view
    view["tail"] = tail_of_step(schedule.state, step.primitive, step.stage, args)
    verdict = verdict_on(target, attempt, args, schedule.state)
    if isinstance(verdict, Illegal):
        _refuse(view, verdict)
        if verdict is attempt.verdict:
            view["nearest"] = _nearest(schedule, step.primitive, step.stage, args)
        return view
    if isinstance(verdict, Pending):
        view["status"], view["reason"] = "pending", verdict.obligation
    if unchanged := why_without_effect(schedule, step.primitive, step.stage, args):
        view["status"], view["reason"] = "done", unchanged
    view["nearest"] = _without_tail(schedule, step, args)
    after = schedule.after(attempt)
    view["rows"] = ghost_rows(loop_tree(schedule), loop_tree(after))
    if metrics is not None:
        _compare(view, metrics, schedule, after)
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


def _compare(view: Preview, metrics: Metrics, before: Schedule, after: Schedule) -> None:
    """Pair the metrics of two states; if a state has none, say why."""
    try:
        old = {str(metric["name"]): metric for metric in metrics(before)}
        new = {str(metric["name"]): metric for metric in metrics(after)}
    except DLCompilerError as error:
        view["unknown"] = error.problem
        return
    missing = [each for each in (*old.values(), *new.values()) if each["value"] is None]
    if missing:
        view["unknown"] = str(missing[0]["text"]).removeprefix("unknown: ")
    pairs = [(old[name], new[name]) for name in old if name in new]
    view["metrics"] = [
        {
            "name": str(one["name"]),
            "before": str(one["text"]),
            "after": str(other["text"]),
            "kind": str(other["kind"]),
            "change": _ratio(one["value"], other["value"]),
            "bars": _bars(one["value"], other["value"]),
        }
        for one, other in pairs
        if one["value"] is not None and other["value"] is not None
    ]
    predicted = [str(other["unit"]) for _, other in pairs if other["kind"] == "predicted"]
    view["models"] = models_of(predicted)


def _ratio(before: Any, after: Any) -> str:
    """Return ``same``, or the ratio of the new to the old value; '' if there is no ratio."""
    if before == after:
        return "same"
    is_number = isinstance(before, int | float) and isinstance(after, int | float)
    return format_ratio(after / before) if is_number and before > 0 else ""


def _bars(before: Any, after: Any) -> list[float]:
    """Return both values as parts of the larger one; [] if they are no amounts."""
    values = (before, after)
    if not all(isinstance(value, int | float) and value >= 0 for value in values):
        return []
    most = max(values)
    return [round(value / most, 4) for value in values] if most else []
