"""Tile two loops: split both and move the outer halves outside.

*Before*, then *after* ``tile(i, j, 8, 16)``::

    for i in range(64):                 for i.outer in range(8):
        for j in range(64):                 for j.outer in range(4):
            C[i, j] = …                         for i.inner in range(8):
                                                    for j.inner in range(16):
                                                        C[…] = …

Legal if both splits are legal. If reduction loops change their order, the conditions of `reorder`
also apply. In TVM and Halide ``tile``.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.legality.reducers import require_any_order
from dlcompiler.schedule.primitives import split
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_distinct,
    require_positive,
)
from dlcompiler.schedule.primitives.reorder import reorder_stage
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Verdict, answering


@answering
def check(
    state: State, stage: StageState, *, x: Any, y: Any, x_factor: Any, y_factor: Any
) -> Verdict:
    """Refuse loops or factors that one of the two splits refuses."""
    for axis in (x, y):
        verdict = split.check(state, stage, axis=axis, factor=1)
        if not verdict:
            return verdict
    require_positive(x_factor, "x_factor")
    require_positive(y_factor, "y_factor")
    require_distinct(stage, (x, y))
    if _moves_reduction(stage, x, y):
        require_any_order(stage)
    return LEGAL


def _moves_reduction(stage: StageState, x: Axis, y: Axis) -> bool:
    """Tell whether tiling changes the order of reduction loops."""
    halves = [(leaf, n) for leaf in stage.leaves for n in range(2 if leaf is x or leaf is y else 1)]
    tiled = iter([(x, 0), (y, 0), (x, 1), (y, 1)])
    after = [next(tiled) if leaf is x or leaf is y else (leaf, n) for leaf, n in halves]
    before, moved = (
        [(id(leaf), n) for leaf, n in order if leaf.kind == "reduce"] for order in (halves, after)
    )
    return before != moved


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    x: Axis,
    y: Axis,
    x_factor: int,
    y_factor: int,
) -> tuple[State, tuple[Axis, Axis, Axis, Axis]]:
    """Return the next state and (x outer, y outer, x inner, y inner)."""
    stage, (x_outer, x_inner) = split.split_stage(stage, context, x, x_factor, None)
    stage, (y_outer, y_inner) = split.split_stage(stage, context, y, y_factor, None)
    order = (x_outer, y_outer, x_inner, y_inner)
    return state.with_stage(reorder_stage(stage, order), context.state_id), order


TILE = Primitive(
    "tile", {"x": "axis", "y": "axis", "x_factor": "int", "y_factor": "int"}, check, apply
)
