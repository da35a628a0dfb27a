"""Fuse adjacent loops into one.

*Before*, then *after* ``fuse(i, j)``::

    for i in range(8):                  for i.j.fused in range(32):
        for j in range(4):                  C[i.j.fused // 4, i.j.fused % 4] = …
            C[i, j] = …

Legal for adjacent loops that are all data loops or all reduction loops. They are fused in the order
of the nest, whatever the order of the arguments. A single loop is returned unchanged. Without
arguments, the result is a new outermost loop that runs once. So code for any number of dimensions
may call ``fuse(*axes)``.
In TVM and Halide ``fuse``. Unlike classic TVM, a mixture of data and reduction loops is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis, extent_binary
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    leaf_names,
    replace_leaves,
    require_distinct,
    require_leaf,
    require_loops,
    require_plain,
)
from dlcompiler.schedule.state import Fuse, Singleton, StageState, State, same_axes
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering

MAX_NAME = 80


@answering
def check(state: State, stage: StageState, *, axes: Any) -> Verdict:
    """Refuse loops that are not adjacent, and data loops together with reduction loops."""
    require_loops(stage)
    for axis in axes:
        require_leaf(state, stage, axis)
    if len(axes) < 2:
        return LEGAL
    for axis in axes:
        require_plain(stage, axis)
    require_distinct(stage, axes)
    first = min(stage.position(axis) for axis in axes)
    if not same_axes(stage.leaves[first : first + len(axes)], _in_order(stage, axes)):
        return Illegal(
            "structural",
            "the loops are not adjacent",
            got=", ".join(stage.paths[axis] for axis in axes),
            hint=f"the loops are: {leaf_names(stage)}; reorder them first",
            conflicts=_between(stage, axes),
        )
    if len({axis.kind for axis in axes}) > 1:
        return Illegal(
            "structural",
            "a data loop and a reduction loop cannot be fused",
            got=", ".join(f"{stage.paths[axis]} ({axis.kind})" for axis in axes),
            because="the fused loop would be neither: the result is initialised between them",
            conflicts=tuple(stage.key(axis) for axis in axes),
        )
    return LEGAL


def _between(stage: StageState, axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Return the keys of the other loops between the loops to fuse."""
    places = [stage.position(axis) for axis in axes]
    inside = stage.leaves[min(places) : max(places)]
    return tuple(stage.key(leaf) for leaf in inside if not any(leaf is axis for axis in axes))


def apply(
    state: State, stage: StageState, context: StepContext, *, axes: tuple[Axis, ...]
) -> tuple[State, Axis]:
    """Return the next state and the fused axis."""
    if not axes:
        return _with_singleton(state, stage, context)
    fused, *rest = _in_order(stage, axes)
    for inner in rest:
        path = f"{stage.paths[fused].removesuffix('.fused')}.{stage.paths[inner]}.fused"
        if len(path) > MAX_NAME:  # names of fused halves would double with each split and fuse
            path = "fused"
        path = unique_name(path, stage.paths.values())
        axis = context.axis(path, extent_binary("mul", fused.extent, inner.extent), inner.kind)
        stage = replace(
            stage,
            leaves=replace_leaves(stage, (fused, inner), (axis,)),
            relations=(*stage.relations, Fuse(fused, inner, axis)),
            paths={**stage.paths, axis: path},
        )
        fused = axis
    return state.with_stage(stage, context.state_id), fused


def _in_order(stage: StageState, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(sorted(axes, key=stage.position))


def _with_singleton(state: State, stage: StageState, context: StepContext) -> tuple[State, Axis]:
    """Return the next state and a new outermost loop that runs once."""
    path = unique_name("singleton", stage.paths.values())
    axis = context.axis(path, 1, "data")
    stage = replace(
        stage,
        leaves=(axis, *stage.leaves),
        relations=(*stage.relations, Singleton(axis)),
        paths={**stage.paths, axis: path},
    )
    return state.with_stage(stage, context.state_id), axis


FUSE = Primitive("fuse", {"axes": "axes"}, check, apply)
