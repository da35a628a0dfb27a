"""Compute a stage in a loop nest of its own, before its readers: undo an attachment.

*Before*, then *after* ``s[P].compute_root()``::

    for i in range(8):                  for i in range(8):
        allocate P: float32[1]              P[i] = …
        P[0] = …                        for i in range(8):
        C[i] = P[0] + 1.0                   C[i] = P[i] + 1.0

Always legal. A stage of a group is computed where the group is. In TVM and Halide
``compute_root``; the default here.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.schedule.primitives.base import Primitive, StepContext
from dlcompiler.schedule.state import ROOT, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse inputs."""
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: it is not computed")
    return LEGAL


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    place = ROOT if stage.group is None else stage.group.place
    return state.with_stage(replace(stage, attachment=place), context.state_id), None


COMPUTE_ROOT = Primitive("compute_root", {}, check, apply)
