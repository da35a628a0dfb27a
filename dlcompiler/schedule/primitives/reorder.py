"""Reorder loops of one stage.

*Before*, then *after* ``reorder(k, j)``::

    for j in range(4):                  for k in range(16):
        for k in range(16):                 for j in range(4):
            C[j] += A[j, k]                     C[j] += A[j, k]

The given loops are permuted among their positions; all other loops stay. A single loop stays where
it is. Legal for any loops of one stage, since data iterations are independent and reductions are
commutative. If a user's reducer is found not to be commutative, its loops keep their order.
In TVM and Halide ``reorder``.
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
    """Refuse axes that are not loops, and duplicates."""
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
    """Return the stage with `axes` permuted among their own positions."""
    queue = iter(axes)
    moving = set(axes)
    leaves = tuple(next(queue) if leaf in moving else leaf for leaf in stage.leaves)
    return replace(stage, leaves=leaves)


REORDER = Primitive("reorder", {"axes": "axes"}, check, apply)
