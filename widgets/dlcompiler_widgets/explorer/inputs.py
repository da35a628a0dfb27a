"""Inputs of the workbench: convert a schedule or tensors to a schedule and its parameters."""

from __future__ import annotations

from typing import Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor


def schedule_of(source: Any) -> Schedule:
    """Return a schedule unchanged; for output tensors, return a new schedule without steps.

    Raises
    ------
    ScheduleError
        If the argument is neither.
    """
    if isinstance(source, Schedule):
        return source
    tensors = source if isinstance(source, list | tuple) else [source]
    if tensors and all(isinstance(tensor, Tensor) for tensor in tensors):
        return create_schedule([tensor.op for tensor in tensors])
    raise ScheduleError(
        "explore a schedule",
        "this is not a schedule",
        got=f"{type(source).__name__}: {source!r:.60}",
        expected="a schedule, or tensors to compute",
        hint="s = te.create_schedule(C.op), then Explorer(s)",
    )


def parameters_of(schedule: Schedule) -> list[Tensor]:
    """Return the placeholders of a schedule, and then its outputs."""
    inputs = [t for s in schedule.state.stages if s.is_placeholder for t in s.tensors]
    outputs = list(schedule.outputs)
    if not outputs:
        raise ScheduleError("explore a schedule", "it has no output")
    return [*inputs, *outputs]
