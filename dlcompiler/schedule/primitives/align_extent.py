"""Compute a few more elements of a stage than its readers need: a multiple of a factor.

*Before*, then *after* ``s[P].align_extent(j, factor=8)`` of a P computed at ``i``::

    for i in range(4):                  for i in range(4):
        for j in range(7):                  for j in range(8):
            P[j] = …                            P[j] = …
        for j in range(7):                  for j in range(7):
            C[i, j] = P[j] + …                  C[i, j] = P[j] + …

The rounded extent can be computed in whole vectors. The buffer grows by the same number of
elements. Elements outside the tensor are guarded, so define the tensor wide enough for the rounded
rows. The step has an effect only if the stage is attached at a loop of its consumer, where it
computes a part of its tensor. Legal for a dimension of a stage between inputs and outputs.
In Halide ``align_extent``; TVM has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis, Extent
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_dimension,
    require_expression,
    require_own_storage,
    require_positive,
    size_of,
)
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering

MAX_FACTOR = 64
"""Elements: the lanes of the widest vector."""


@answering
def check(state: State, stage: StageState, *, axis: Any, factor: Any) -> Verdict:
    """Refuse inputs, outputs, axes that are not dimensions, and factors out of range."""
    require_own_storage(stage)
    require_expression(stage)
    require_dimension(stage, axis)
    require_positive(factor, "factor")
    if factor > MAX_FACTOR:
        return Illegal(
            "limit",
            "most of the elements computed would not be used",
            got=f"factor {factor}",
            hint=f"at most {MAX_FACTOR} elements",
        )
    return LEGAL


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis, factor: Extent
) -> tuple[State, None]:
    """Return the next state."""
    rounded = {**stage.rounded, axis: size_of(factor)}
    return state.with_stage(replace(stage, rounded=rounded), context.state_id), None


ALIGN_EXTENT = Primitive("align_extent", {"axis": "axis", "factor": "int"}, check, apply)
