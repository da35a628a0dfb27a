"""The footprints of a schedule's loops, counted once for each state."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.errors import DLCompilerError
from dlcompiler.lowering import build_nests
from dlcompiler.passes import simplify
from dlcompiler.pipeline.lower import check_args, check_obligations
from dlcompiler.schedule import Schedule, State
from dlcompiler.target import Target
from dlcompiler.te import Tensor


def footprint_of(
    program: Schedule | State, args: Sequence[Tensor], target: Target
) -> ProgramFootprint:
    """Return the footprints of a state's loops, as scheduled.

    Parameters
    ----------
    program
        A schedule, at the state to look at, or a state: also one that is not in a history yet.
    args
        Parameters of the function: inputs first, outputs last.
    target
        Its cache lines are counted.

    Raises
    ------
    DLCompilerError
        If the state owes something, or the sizes are known only when the program runs.
    """
    state = program.state if isinstance(program, Schedule) else program
    line_bytes = target.caches[0].line if target.caches else 64
    key = f"footprint {line_bytes} {' '.join(tensor.name for tensor in args)}"
    if key not in state.cache:
        state.cache[key] = _counted(state, args, line_bytes)
    known: ProgramFootprint | DLCompilerError = state.cache[key]
    if isinstance(known, DLCompilerError):
        raise known
    return known


def _counted(
    state: State, args: Sequence[Tensor], line_bytes: int
) -> ProgramFootprint | DLCompilerError:
    # Without the checks of a build: what is drawn may be a step that nobody will take.
    try:
        check_obligations(state, "main")
        check_args(state, args, "main")
        return ProgramFootprint(simplify(build_nests(state, args, "main")), line_bytes)
    except DLCompilerError as error:
        return error
