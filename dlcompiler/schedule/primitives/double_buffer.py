"""Double-buffer a stage: compute the next values while the old ones are read.

*Before*, then *after* ``s[P].double_buffer()`` and the pass that does it, for a stage that is
attached at ``i``::

    for i in range(8):                  allocate P: float32[2, 4]
        allocate P: float32[4]          P[0, …] = … of iteration 0
        P[…] = …                        for i in range(8):
        C[i] = … P[…] …                     if i + 1 < 8:
                                                P[(i + 1) % 2, …] = … of iteration i + 1
                                            C[i] = … P[i % 2, …] …

Legal for a stage between inputs and outputs, at a serial loop that does not compute anything that
the stage reads. A stage in shared memory needs one barrier in each iteration. The step is pending
until the stage is computed inside a loop: without a loop there is no next iteration.
In TVM ``double_buffer``; Halide has ``double_buffer`` beside ``async``.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_expression,
    require_own_storage,
)
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse inputs and outputs; the loop that is needed is a pending obligation."""
    require_own_storage(stage)
    require_expression(stage)
    return LEGAL


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    stage = replace(stage, double_buffered_by=stage.double_buffered_by or context.step)
    return state.with_stage(stage, context.state_id), None


DOUBLE_BUFFER = Primitive("double_buffer", {}, check, apply)
