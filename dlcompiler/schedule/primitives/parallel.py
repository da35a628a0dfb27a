"""Run the iterations of a loop on several cores.

*Before*, then *after* ``parallel(i)``::

    for i in range(8):                  for i in parallel(8):
        C[i] = …                            C[i] = …

Legal on a data loop: its iterations write different elements. Unlike classic TVM, which compiled
it into a race, a reduction loop is refused. In TVM and Halide ``parallel``.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.primitives.base import Primitive, StepContext, set_kind
from dlcompiler.schedule.primitives.vectorize import require_independent
from dlcompiler.schedule.state import StageState, State, with_notes
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState, *, axis: Any) -> Verdict:
    """Refuse a reduction loop, and a loop with another annotation."""
    require_independent(state, stage, axis, "parallel")
    return LEGAL


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis
) -> tuple[State, None]:
    """Return the next state."""
    return with_notes(state, set_kind(stage, axis, "parallel"), context.state_id), None


PARALLEL = Primitive("parallel", {"axis": "axis"}, check, apply)
