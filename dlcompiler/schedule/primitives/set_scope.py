"""Choose the memory that holds a stage's values.

*Before*, then *after* ``s[P].set_scope("local")``::

    allocate P: float32[8]              allocate P: float32[8] in local
    for i in range(8):                  for i in range(8):
        P[i] = …                            P[i] = …

Legal for a stage between inputs and outputs: inputs and outputs are in the caller's memory.
In TVM ``set_scope``, in Halide ``store_in``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_own_storage,
    require_scope,
)
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState, *, scope: Any) -> Verdict:
    """Refuse inputs, outputs and unknown scopes."""
    require_own_storage(stage)
    require_scope(scope)
    return LEGAL


def apply(
    state: State, stage: StageState, context: StepContext, *, scope: str
) -> tuple[State, None]:
    """Return the next state."""
    return state.with_stage(replace(stage, scope=scope), context.state_id), None


SET_SCOPE = Primitive("set_scope", {"scope": "text"}, check, apply)
