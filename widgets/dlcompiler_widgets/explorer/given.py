"""What the workbench is given: a schedule, or an expression that has none yet."""

from __future__ import annotations

from typing import Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor


def schedule_of(given: Any) -> Schedule:
    """Return a schedule as it is; of a tensor, or of several, a schedule without any step.

    Raises
    ------
    ScheduleError
        For anything else.
    """
    if isinstance(given, Schedule):
        return given
    tensors = given if isinstance(given, list | tuple) else [given]
    if tensors and all(isinstance(tensor, Tensor) for tensor in tensors):
        return create_schedule([tensor.op for tensor in tensors])
    raise ScheduleError(
        "explore a schedule",
        "this is none",
        got=f"{type(given).__name__}: {given!r:.60}",
        expected="a schedule, or the tensors that it shall compute",
        hint="s = te.create_schedule(C.op), then Explorer(s)",
    )


def parameters_of(schedule: Schedule) -> list[Tensor]:
    """Return the tensors that a schedule reads from outside, and then its outputs."""
    inputs = [t for s in schedule.state.stages if s.is_placeholder for t in s.tensors]
    outputs = list(schedule.outputs)
    if not outputs:
        raise ScheduleError("explore a schedule", "it has no output")
    return [*inputs, *outputs]
