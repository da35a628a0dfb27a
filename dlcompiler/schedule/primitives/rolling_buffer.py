"""Keep elements for the next iteration in a circular buffer, and compute only the new ones.

*Before*, then *after* ``s[P].rolling_buffer()`` and the pass that does it, for a stage that is
attached at ``y`` and of which each iteration needs three rows::

    for y in range(8):                  allocate P: float32[3, 4]
        allocate P: float32[3, 4]       for y in range(8):
        for P.y in range(3):                if y >= 1:
            P[P.y, …] = …                       P[(y + 2) % 3, …] = … of row y + 2
        C[y, …] = P[0, …] + P[2, …]         else:
                                                P[0, …], P[1, …], P[2, …] = …
                                            C[y, …] = P[y % 3, …] + P[(y + 2) % 3, …]

Legal for a stage between inputs and outputs whose part moves forward by a constant step along one
dimension with each iteration of the loop it is attached at. The iterations must run one
after the other, so the loop cannot be parallel, vectorized or bound to threads. The step is pending
until the stage is attached.
In TVM ``rolling_buffer``; in Halide what ``store_at`` further out than ``compute_at`` leads to
(sliding windows and storage folding).
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
    """Refuse inputs and outputs; `validity` checks how the window moves."""
    require_own_storage(stage)
    require_expression(stage)
    return LEGAL


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    stage = replace(stage, rolled_by=stage.rolled_by or context.step)
    return state.with_stage(stage, context.state_id), None


ROLLING_BUFFER = Primitive("rolling_buffer", {}, check, apply)
