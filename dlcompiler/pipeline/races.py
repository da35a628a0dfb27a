"""The race check of every build, and the race report on demand."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis import LoopVerdict, RaceReport, analyze_races
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.lowering import build_nests
from dlcompiler.schedule import Schedule
from dlcompiler.te import PlaceholderOp, Tensor

NESTS = "loop nests"


def races(program: Schedule | PrimFunc, args: Sequence[Tensor] | None = None) -> RaceReport:
    """Tell which parallel and vectorized loops are safe, and show two iterations where not.

    Parameters
    ----------
    program
        A schedule, at the state to look at, or a lowered function.
    args
        Of a schedule: the parameters of the function; by default its inputs and outputs.

    Returns
    -------
    RaceReport
        It prints as a line for each loop.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64,), name="A")
    >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    >>> s = create_schedule(B.op)
    >>> s[B].parallel(B.op.axis[0])
    >>> races(s)
    races of main: 1 loop, all safe
      parallel i (B): safe
    """
    match program:
        case PrimFunc():
            return analyze_races(program)
        case Schedule():
            given = _parameters(program) if args is None else args
            return analyze_races(build_nests(program.state, given, "main"))
    raise ScheduleError(
        "races",
        "neither a schedule nor a lowered function",
        got=repr(program),
        expected="s = te.create_schedule(C.op), or what lower returns",
    )


def _parameters(schedule: Schedule) -> list[Tensor]:
    stages = schedule.state.stages
    inputs = [s for s in stages if isinstance(s.op, PlaceholderOp)]
    outputs = [s for s in stages if s.is_output and s not in inputs]
    return [tensor for stage in (*inputs, *outputs) for tensor in stage.tensors]


def check_races(func: PrimFunc, schedule: Schedule, after: str) -> None:
    """Refuse a program whose concurrent iterations are not independent.

    Parameters
    ----------
    func
        The program.
    schedule
        Where it comes from, to be replayed.
    after
        What made the program: the loop nests, or the last pass.

    Raises
    ------
    InternalError
        If iterations conflict: each step was checked, so legality or lowering is wrong.
    ScheduleError
        If independence of the loop nests could not be shown.
    """
    report = analyze_races(func)
    for verdict in report.violations:
        raise InternalError(
            f"lower {func.name}: {after}",
            f"iterations of {verdict.label} depend on each other, though each step was allowed",
            because=verdict.reason,
            excerpt=str(func),
            replay=_replay(schedule),
        )
    for verdict in report.unknowns if after == NESTS else ():
        raise _not_shown(verdict, func)


def _not_shown(verdict: LoopVerdict, func: PrimFunc) -> ScheduleError:
    return ScheduleError(
        f"lower {func.name}",
        f"the iterations of {verdict.label} could not be shown to be independent",
        because=verdict.reason,
        hint=f"leave {verdict.loop.var.name} serial",
        excerpt=str(func),
    )


def _replay(schedule: Schedule) -> str | None:
    """Return the line that makes the schedule again from a fresh one."""
    try:
        text = schedule.trace.to_json()
    except ScheduleError:
        return None  # a step has an argument that is no data
    return f"Trace.from_json({text!r}).replay(te.create_schedule(…))"
