"""Check every built program for races and uninitialised reads; report races on demand.

Each step of a schedule was checked on axes and regions when it was made. Here the loads and stores
of the resulting program are checked, independently of those steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis import LoopVerdict, RaceReport, analyze_races
from dlcompiler.analysis.accesses import collect_accesses
from dlcompiler.analysis.initialisation import BufferVerdict, initialisation_of
from dlcompiler.analysis.races import races_of
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.ir import SHARED_SCOPES, Expr, ExternCall, For, PrimFunc, Stmt, Store, walk
from dlcompiler.lowering import build_nests
from dlcompiler.schedule import Schedule
from dlcompiler.te import PlaceholderOp, Tensor

NESTS = "loop nests"
POINTS = 4
"""Most points at which a build searches for an element that is not written, where no proof shows
that all are written."""


def races(program: Schedule | PrimFunc, args: Sequence[Tensor] | None = None) -> RaceReport:
    """Report which parallel and vectorized loops are safe, and two iterations that conflict.

    Parameters
    ----------
    program
        A schedule, at the state to check, or a lowered function.
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
            given = default_args(program) if args is None else args
            return analyze_races(build_nests(program.state, given, "main"))
    raise ScheduleError(
        "races",
        "neither a schedule nor a lowered function",
        got=repr(program),
        expected="s = te.create_schedule(C.op), or what lower returns",
    )


def default_args(schedule: Schedule) -> list[Tensor]:
    """Return all inputs of a schedule, then its outputs."""
    stages = schedule.state.stages
    inputs = [s for s in stages if isinstance(s.op, PlaceholderOp)]
    outputs = [s for s in stages if s.is_output and s not in inputs]
    return [tensor for stage in (*inputs, *outputs) for tensor in stage.tensors]


def check_program(
    func: PrimFunc, schedule: Schedule, after: str, *, is_repeated: bool = False
) -> None:
    """Refuse a program with a race, or one that uses elements before it writes them.

    Parameters
    ----------
    func
        The program.
    schedule
        Where it comes from, to be replayed.
    after
        What made the program: the loop nests, or a pass.
    is_repeated
        Whether it was checked before, and only passes were run since. A pass may introduce a race,
        and may make an earlier proof impossible.

    Raises
    ------
    InternalError
        If iterations conflict, or an element is used that nothing has written: each step was
        checked, so legality or lowering is wrong.
    ScheduleError
        If the independence of iterations could not be shown, or statements of the user's own
        (`te.extern`) have a race or use what they have not written.
    """
    accesses = collect_accesses(func)
    report = races_of(accesses)
    for verdict in report.violations:
        if any(schedule.state.stage(name).is_extern for name in verdict.stages):
            problem = f"iterations of {verdict.label}, in code from outside, depend on each other"
            raise _to_be_serial(verdict, func, problem)
        problem = f"iterations of {verdict.label} depend on each other"
        raise _wrong(func, schedule, after, problem, verdict.reason)
    for verdict in () if is_repeated else report.unknowns:
        if not _is_ordered_by_barriers(verdict):
            problem = f"the iterations of {verdict.label} could not be shown to be independent"
            raise _to_be_serial(verdict, func, problem)
    if is_repeated:
        return
    for unwritten in initialisation_of(accesses, max_points=POINTS).violations:
        if _is_of_extern(unwritten, func, schedule):
            raise ScheduleError(
                f"lower {func.name}",
                f"code from outside uses {unwritten.buffer.name} before it is written in full",
                because=unwritten.reason,
                excerpt=str(func),
            )
        problem = f"{unwritten.buffer.name} is not written in full before it is needed"
        raise _wrong(func, schedule, after, problem, unwritten.reason)


def _is_ordered_by_barriers(verdict: LoopVerdict) -> bool:
    """Tell whether the unknown verdict is about memory that lowering protects by barriers.

    Such a program is accepted: each run in the simulator finds the races that it has.
    """
    return verdict.conflict is not None and verdict.conflict.buffer.scope in SHARED_SCOPES


def _wrong(
    func: PrimFunc, schedule: Schedule, after: str, problem: str, because: str
) -> InternalError:
    return InternalError(
        f"lower {func.name}: {after}",
        f"{problem}, though each step was allowed",
        because=because,
        excerpt=str(func),
        replay=_replay(schedule),
    )


def _is_of_extern(verdict: BufferVerdict, func: PrimFunc, schedule: Schedule) -> bool:
    """Tell whether statements of an extern stage write the buffer of a verdict, or read it."""
    used: set[Expr | Stmt] = {verdict.read.statement} if verdict.read else set()
    for node in walk(func.body):
        written = {node.buffer} if isinstance(node, Store) else set()
        if isinstance(node, ExternCall):
            written = {region.buffer for region in node.regions if region.is_written}
        if verdict.buffer in written:
            used.add(node)
    origins = (node.origin for node in used if isinstance(node, Store | ExternCall | For))
    stages = {ref.stage for origin in origins for ref in origin}
    return any(schedule.state.stage(name).is_extern for name in stages)


def _to_be_serial(verdict: LoopVerdict, func: PrimFunc, problem: str) -> ScheduleError:
    return ScheduleError(
        f"lower {func.name}",
        problem,
        because=verdict.reason,
        hint=f"leave {verdict.loop.var.name} serial",
        excerpt=str(func),
    )


def _replay(schedule: Schedule) -> str | None:
    """Return the line of Python that replays the schedule; None if its trace has no text form."""
    try:
        text = schedule.trace.to_json()
    except ScheduleError:
        return None  # a step has an argument that cannot be written down
    return f"Trace.from_json({text!r}).replay(te.create_schedule(…))"
