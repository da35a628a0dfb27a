"""The footprints of a schedule's loops, counted once for each state."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis.footprint import Nest, ProgramFootprint
from dlcompiler.ir import is_thread
from dlcompiler.lowering import build_nests
from dlcompiler.passes import simplify
from dlcompiler.pipeline.lower import check_args, check_obligations
from dlcompiler.schedule import Schedule, State
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.per_state import per_state


def footprint_of(
    program: Schedule | State, args: Sequence[Tensor], target: Target
) -> ProgramFootprint:
    """Return the footprints of a state's loops, before the passes change them.

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
        If the state has a pending obligation, or the sizes are known only when the program runs.
    """
    line_bytes = target.caches[0].line if target.caches else 64
    return _counted(program, tuple(args), line_bytes)


@per_state
def _counted(
    program: Schedule | State, args: tuple[Tensor, ...], line_bytes: int
) -> ProgramFootprint:
    # The checks of a build are left out: a preview draws states that may never be built.
    state = program.state if isinstance(program, Schedule) else program
    check_obligations(state, "main")
    check_args(state, args, "main")
    return ProgramFootprint(simplify(build_nests(state, args, "main")), line_bytes)


def is_for_device(footprint: ProgramFootprint, target: Target) -> bool:
    """Tell whether a program runs on threads of a device: its target or its loops have thread axes.

    A cache model for CPUs does not apply to such a program.
    """
    loops = (nest.loop for nest in footprint.root.walk() if nest.loop is not None)
    return bool(target.thread_axes) or any(is_thread(loop.kind) for loop in loops)


def loop_of(nest: Nest) -> str | None:
    """Return the key of a loop, as in the loop tree; None for the whole program."""
    if nest.loop is None:
        return None
    return next((key for key in keys_of(nest.loop.statement) if "/" in key), None)


def nest_of(footprint: ProgramFootprint, key: str | None) -> Nest:
    """Return the loop that a key of the loop tree names.

    If several loops have the key (one initialises, one adds), return the one that runs most often.
    For a stage, or a loop that was removed because it had one iteration, return the loop around it.
    """
    if key is None:
        return footprint.root
    own = [nest for nest in footprint.nests if loop_of(nest) == key]
    if own:
        return max(own, key=lambda nest: nest.runs * nest.trips * len(nest.references))
    for nest in footprint.root.walk():
        for child in nest.children:
            if child.loop is not None and key in keys_of(child.loop.statement):
                return nest
        if any(key in keys_of(item.access.statement) for item in nest.own):
            return nest
    return footprint.root


def around(footprint: ProgramFootprint, nest: Nest) -> list[Nest]:
    """Return the loops around `nest`, outermost first, and `nest` itself at the end."""
    path = [footprint.root]
    while path[-1] is not nest:
        path.append(next(each for each in path[-1].children if nest in each.walk()))
    return path[1:]
