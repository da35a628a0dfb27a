"""Reorder loops of one stage.

*Before*, then *after* ``reorder(k, j)``::

    for j in range(4):                  for k in range(16):
        for k in range(16):                 for j in range(4):
            C[j] += A[j, k]                     C[j] += A[j, k]

The loops given take each other's places; all others stay, and so does a single one. Legal for any
loops of one stage: data iterations are independent, and reductions are commutative; a reducer of
one's own for which that is found to be wrong keeps the order of its loops. In TVM and Halide
``reorder``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.legality.reducers import require_any_order
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_distinct,
    require_leaf,
    require_loops,
)
from dlcompiler.schedule.state import StageState, State, same_axes
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(state: State, stage: StageState, *, axes: Any) -> Verdict:
    """Refuse an axis that is not a loop, and one given twice."""
    require_loops(stage)
    for axis in axes:
        require_leaf(state, stage, axis)
    require_distinct(stage, axes)
    require_reduction_order(stage, axes)
    return LEGAL


def require_reduction_order(stage: StageState, axes: tuple[Axis, ...]) -> None:
    """Refuse to swap reduction loops when the order of the values matters."""
    before, after = (
        [leaf for leaf in leaves if leaf.kind == "reduce"]
        for leaves in (stage.leaves, reorder_stage(stage, axes).leaves)
    )
    if not same_axes(before, after):
        require_any_order(stage)


def apply(
    state: State, stage: StageState, context: StepContext, *, axes: tuple[Axis, ...]
) -> tuple[State, None]:
    """Return the next state."""
    return state.with_stage(reorder_stage(stage, axes), context.state_id), None


def reorder_stage(stage: StageState, axes: tuple[Axis, ...]) -> StageState:
    """Return the stage with `axes` permuted among their own places."""
    queue = iter(axes)
    moving = set(axes)
    leaves = tuple(next(queue) if leaf in moving else leaf for leaf in stage.leaves)
    return replace(stage, leaves=leaves)


REORDER = Primitive("reorder", {"axes": "axes"}, check, apply)
