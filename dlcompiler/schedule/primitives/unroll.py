"""Repeat the body of a loop instead of looping.

*Before*, then *after* ``unroll(i)`` and the pass that does it::

    for i in range(2):                  C[0] = A[0]
        C[i] = A[i]                     C[1] = A[1]

Legal on any loop. The unrolled loops of one nest may repeat its body at most 1,024 times in all,
with the extents at the place where the stage is computed.
In TVM and Halide ``unroll``.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_kind,
    require_leaf,
    require_loops,
    set_kind,
)
from dlcompiler.schedule.state import StageState, State, with_notes
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState, *, axis: Any) -> Verdict:
    """Refuse a loop with another annotation; `validity` checks the number of copies."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    require_kind(stage, axis, "unrolled")
    return LEGAL


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis
) -> tuple[State, None]:
    """Return the next state."""
    return with_notes(state, set_kind(stage, axis, "unrolled"), context.state_id), None


UNROLL = Primitive("unroll", {"axis": "axis"}, check, apply)
