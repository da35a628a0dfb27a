"""The time of a program that the roofline model predicts, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from dlcompiler.autotune.features.geometry import Access, Loop
from dlcompiler.autotune.features.programs import ROOFLINE, program_columns
from dlcompiler.autotune.features.statements import Statement, statements
from dlcompiler.autotune.models.roofline import CYCLE_S
from dlcompiler.errors import DLCompilerError, TuningError
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.schedule import Schedule, State, has_bounds, infer_bounds
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.memory.metrics import Metric
from dlcompiler.views.per_state import per_state

NAME = "time of a call"
MODEL = (
    f"the roofline model: each statement takes the time of its arithmetic or of its slowest memory "
    f"level, whichever is longer, at {1e-9 / CYCLE_S:.0f} GHz"
)
"""Where the time comes from, in words: see `dlcompiler.autotune.features.cycles`."""
NO_STATEMENTS = "the roofline model knows neither recurrences nor code from outside"
NO_MODEL = "the roofline model is for CPUs, not for threads of a device"


def predicted_time(program: Schedule | State, args: Sequence[Tensor], target: Target) -> Metric:
    """Predict the time of one call by the roofline model of the tuner.

    Parameters
    ----------
    program
        A schedule, at the state to look at, or a state.
    args
        Parameters of the function: inputs first, outputs last.
    target
        A CPU; for other targets, and for programs without features, the time is unknown.

    Returns
    -------
    Metric
        ``time of a call`` [s], predicted. It is for comparing schedules of one program: real
        kernels are slower, because latencies, loop overhead and tails are mostly left out.
    """
    return _time(program, tuple(args), target).copy()


@per_state
def _time(program: Schedule | State, args: tuple[Tensor, ...], target: Target) -> Metric:
    try:
        if is_for_device(footprint_of(program, args, target), target):
            return _unknown(NO_MODEL)
        state = program.state if isinstance(program, Schedule) else program
        found = statements(state, regions=_regions(state))
        columns = program_columns(tuple(map(_running, found)), target, {})
        cycles = next(column.value for column in columns if column.name == ROOFLINE)
    except TuningError:
        return _unknown(NO_STATEMENTS)
    except DLCompilerError as error:
        return _unknown(error.problem)
    if not isinstance(cycles, int | float):
        return _unknown("it depends on symbols")
    seconds = cycles * CYCLE_S
    return {"name": NAME, "value": seconds, "unit": "s", "text": format_seconds(seconds),
            "kind": "predicted"}  # fmt: skip


def _regions(state: State) -> dict[str, list[int]]:
    """Return the extents of what stages compute, as lowering infers them, where these are numbers.

    Steps that change nothing in the program must change no time.
    """
    if not has_bounds(state):
        return {}
    found: dict[str, list[int]] = {}
    for name, bounds in infer_bounds(state).stages.items():
        op = state.stage(name).op
        extents = [bounds.extents[axis] for axis in op.axis] if isinstance(op, ComputeOp) else [""]
        numbers = [extent for extent in extents if isinstance(extent, int)]
        if len(numbers) == len(extents):
            found[name] = numbers
    return found


def _running(statement: Statement) -> Statement:
    """Leave out the loops of one iteration: lowering removes them, so they must change no time."""
    kept = [n for n, loop in enumerate(statement.loops) if not _is_idle(loop)]
    geometry = copy(statement.geometry)
    geometry.enclosing = tuple(loop for loop in geometry.enclosing if not _is_idle(loop))

    def moving(access: Access) -> Access:
        strides = tuple(access.strides[n] for n in kept)
        widths = (access.widths[0], *(access.widths[n + 1] for n in kept))
        return replace(access, strides=strides, widths=widths)

    return replace(
        statement,
        geometry=geometry,
        loops=tuple(statement.loops[n] for n in kept),
        write=moving(statement.write),
        reads=tuple(map(moving, statement.reads)),
    )


def _is_idle(loop: Loop) -> bool:
    return isinstance(loop.extent, int) and loop.extent == 1


def _unknown(why: str) -> Metric:
    return {"name": NAME, "value": None, "unit": "s", "text": f"unknown: {why}",
            "kind": "predicted"}  # fmt: skip
