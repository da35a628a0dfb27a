"""Barrier placement: which stages need a barrier between writers and readers in a block.

The threads of a block compute a *cooperative* stage together: each computes a part of it and reads
what others computed. A barrier is needed before the first such stage attached to a loop, because
other threads may still read its memory, and between a cooperative stage and its readers. `nest`
inserts the barriers.
"""

from __future__ import annotations

from dlcompiler.ir import TensorHandle
from dlcompiler.schedule import StageState, State
from dlcompiler.schedule.inference.inlining import bodies, loads_of
from dlcompiler.schedule.inference.recurrences import is_update
from dlcompiler.schedule.inference.thread_loops import (
    is_shared,
    reduced_by_threads,
    threads_of_block,
)
from dlcompiler.schedule.legality.obligations import stages_inside


def is_cooperative(state: State, stage: StageState) -> bool:
    """Tell whether the threads of a block compute a stage, or the rows of a scan, together."""
    is_common = is_shared(state, stage) or is_update(state, stage)
    return is_common and threads_of_block(state, stage)


def has_barriers(state: State, stage: StageState) -> bool:
    """Tell whether barriers are needed inside the loops of a stage."""
    return any(
        reduced_by_threads(part) or (part is not stage and is_cooperative(state, part))
        for part in stages_inside(state, stage)
    )


def tensors_read(state: State, stage: StageState) -> set[TensorHandle]:
    """Return the tensors that a stage reads, or a stage that is inlined or attached in it."""
    known = bodies(state)
    parts = (known.get(part.name, ()) for part in stages_inside(state, stage))
    return {load.tensor for part in parts for load in loads_of(part)}
