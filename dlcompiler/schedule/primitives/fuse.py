"""Fuse adjacent loops into one.

*Before*, then *after* ``fuse(i, j)``::

    for i in range(8):                  for i.j.fused in range(32):
        for j in range(4):                  C[i.j.fused // 4, i.j.fused % 4] = …
            C[i, j] = …

Legal for adjacent loops, outer first, that are all data loops or all reduction loops.
In TVM and Halide ``fuse``. Unlike classic TVM, a swapped pair is refused, not re-ordered, and so
is a mixture of data and reduction loops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis, extent_binary
from dlcompiler.schedule.primitives.base import (
    Making,
    Primitive,
    answering,
    leaf_names,
    replace_leaves,
    require_distinct,
    require_leaf,
    require_loops,
    require_plain,
)
from dlcompiler.schedule.state import Fuse, StageState, State, same_axes, unique_name
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict

MAX_NAME = 80


@answering
def check(state: State, stage: StageState, *, axes: Any) -> Verdict:
    """Refuse loops that are not neighbours, or not of one kind."""
    require_loops(stage)
    for axis in axes:
        require_leaf(state, stage, axis)
        require_plain(stage, axis)
    require_distinct(stage, axes)
    first = stage.position(axes[0])
    if not same_axes(stage.leaves[first : first + len(axes)], axes):
        return Illegal(
            "structural",
            "the loops are not adjacent in this order",
            got=", ".join(stage.paths[axis] for axis in axes),
            hint=f"the loops are: {leaf_names(stage)}; reorder them first",
        )
    if len({axis.kind for axis in axes}) > 1:
        return Illegal(
            "structural",
            "a data loop and a reduction loop cannot be fused",
            got=", ".join(f"{stage.paths[axis]} ({axis.kind})" for axis in axes),
            because="the fused loop would be neither: the result is initialised between them",
        )
    return LEGAL


def apply(
    state: State, stage: StageState, making: Making, *, axes: tuple[Axis, ...]
) -> tuple[State, Axis]:
    """Return the next state and the fused axis."""
    fused = axes[0]
    for inner in axes[1:]:
        path = f"{stage.paths[fused].removesuffix('.fused')}.{stage.paths[inner]}.fused"
        if len(path) > MAX_NAME:  # names of fused halves would double with each split and fuse
            path = "fused"
        path = unique_name(path, stage.paths.values())
        axis = making.axis(path, extent_binary("mul", fused.extent, inner.extent), inner.kind)
        stage = replace(
            stage,
            leaves=replace_leaves(stage, (fused, inner), (axis,)),
            relations=(*stage.relations, Fuse(fused, inner, axis)),
            paths={**stage.paths, axis: path},
        )
        fused = axis
    return state.with_stage(stage, making.state_id), fused


FUSE = Primitive("fuse", {"axes": "axes"}, check, apply)
