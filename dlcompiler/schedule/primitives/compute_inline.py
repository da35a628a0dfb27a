"""Substitute a stage's expression into its readers.

*Before*, then *after* ``s[P].compute_inline()``::

    for i in range(8):                  for i in range(8):
        P[i] = A[i] * 2.0                   C[i] = A[i] * 2.0 + 1.0
    for i in range(8):
        C[i] = P[i] + 1.0

Legal for a stage that is neither an output nor a reduction. In TVM ``compute_inline``, Halide's
default.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.schedule.primitives.base import Making, Primitive, answering
from dlcompiler.schedule.state import INLINED, StageState, State, is_reduction
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse inputs, outputs and reductions."""
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: there is nothing to substitute")
    if stage.is_output:
        return Illegal(
            "structural",
            f"{stage.name} is an output: it must be stored",
            hint="inline the stages that it reads",
        )
    if is_reduction(stage):
        return Illegal(
            "semantic",
            "a reduction cannot be inlined",
            got=f"{stage.name} = {stage.op.body}",  # type: ignore[union-attr]
            because="its value is complete only after the last iteration of its loops",
            hint=f"use s[{stage.name}].compute_at(…) to compute it where it is read",
        )
    return LEGAL


def apply(state: State, stage: StageState, making: Making) -> tuple[State, None]:
    """Return the next state."""
    return state.with_stage(replace(stage, attachment=INLINED), making.state_id), None


COMPUTE_INLINE = Primitive("compute_inline", {}, check, apply)
