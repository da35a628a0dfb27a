"""Where the threads of a block meet: what they compute together, and who reads it."""

from __future__ import annotations

from dlcompiler.ir import TensorHandle
from dlcompiler.schedule import StageState, State
from dlcompiler.schedule.inlining import bodies, loads_of
from dlcompiler.schedule.obligations import stages_inside
from dlcompiler.schedule.recurrences import is_update
from dlcompiler.schedule.threads import is_shared, reduced_by_threads, threads_of_block


def is_of_block(state: State, stage: StageState) -> bool:
    """Tell whether the threads of a block compute a stage together: rows of a scan, too."""
    is_common = is_shared(state, stage) or is_update(state, stage)
    return is_common and threads_of_block(state, stage)


def has_barriers(state: State, stage: StageState) -> bool:
    """Tell whether threads meet inside the loops of a stage."""
    return any(
        reduced_by_threads(part) or (part is not stage and is_of_block(state, part))
        for part in stages_inside(state, stage)
    )


def read_by(state: State, stage: StageState) -> set[TensorHandle]:
    """Return what the nest of a stage reads: what it inlines, and what is attached in it, reads."""
    known = bodies(state)
    parts = (known.get(part.name, ()) for part in stages_inside(state, stage))
    return {load.tensor for part in parts for load in loads_of(part)}
