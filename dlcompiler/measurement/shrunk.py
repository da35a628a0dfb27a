"""Replay a schedule on a smaller shape, for an oracle that limits the number of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlcompiler.errors import UserError
from dlcompiler.pipeline.lower import Argument, lower
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.schedule import create_schedule
from dlcompiler.simulate.steps import count_steps
from dlcompiler.te import Tensor
from dlcompiler.te.evaluation.shrink import shrunk

MAX_TRIES = 6


def shrunk_schedules(
    schedule: Schedule, args: Sequence[Argument], max_steps: int
) -> Iterator[tuple[Schedule, list[Argument]]]:
    """Replay the trace of a schedule on smaller shapes.

    Parameters
    ----------
    schedule
        A schedule of known shapes.
    args
        Parameters of its function.
    max_steps
        The most statements that a run of the smaller program may execute; [1].

    Yields
    ------
    (Schedule, list)
        The smaller schedule and its arguments. None of them if the expression does not shrink, or
        a step does not apply to the smaller one.
    """
    root = schedule.history.history.root.state
    outputs = [tensor for stage in root.stages if stage.is_output for tensor in stage.tensors]
    for known, _ in zip(shrunk(outputs), range(MAX_TRIES), strict=False):
        try:
            small = create_schedule([known[output].op for output in outputs])
            schedule.trace.replay(small)
            chosen = [_counterpart(arg, schedule, small) for arg in args]
            if count_steps(lower(small, chosen, simple_mode=True)) <= max_steps:
                yield small, chosen
        except UserError:  # a step that the smaller shape does not allow
            continue


def _counterpart(arg: Argument, schedule: Schedule, small: Schedule) -> Argument:
    """Return the same argument of the smaller program: for a tensor, that of the same stage."""
    if not isinstance(arg, Tensor):
        return arg
    stage = schedule.state.producer_of(arg)
    return small.state.stage(stage.name).tensors[stage.tensors.index(arg)]
