"""Compute a stage in a new buffer, and copy the result to the stage's own buffer.

*Before*, then *after* ``CL = s.cache_write(C, "local")``::

    for i in range(8):                  for i.c in range(8):
        for k in range(4):                  for k in range(4):
            C[i] += A[i, k]                     C.local[i.c] += A[i.c, k]
                                        for i in range(8):
                                            C[i] = C.local[i]

The computation moves to the new stage ``C.local`` with fresh data axes and the same reduction
loops; C becomes the copy, and has plain loops over its axes again. Stages attached
inside C's loops are then attached inside the loops of ``C.local``.

The data loops are the dimensions of the new buffer. After splits, fuses and reorders the buffer
has that layout, padded where a split does not divide; ``compute_inline`` of C then lets its
readers read the buffer itself. *Before*, then *after* ``split(j, 4)``, ``reorder(jo, i, ji)``
and ``s.cache_write(C, "global")``::

    for i in range(8):                  for j.outer.c in range(2):
        for j in range(8):                  for i.c in range(8):
            C[i, j] = A[i, j]                   for j.inner.c in range(4):
                                                    C.global[j.outer.c, i.c, j.inner.c] = …
                                        for i in range(8):
                                            for j in range(8):
                                                C[i, j] = C.global[j // 4, i, j % 4]

Several outputs of one operation are cached together: ``s.cache_write([C, D], "local")``. Legal
unless an annotation of a data loop would be lost.
In TVM ``cache_write``, in Halide ``Func.in`` of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dlcompiler.ir import Axis, Expr, TensorLoad, logical
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.groups import joined
from dlcompiler.schedule.inference.layout_bodies import layout_bodies
from dlcompiler.schedule.inference.relations import axes_of, guards, inward, outward, ranged
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    moved_attachments,
    require_expression,
    require_plain,
    require_scope,
)
from dlcompiler.schedule.state import StageState, State, new_stage
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering
from dlcompiler.te import ComputeOp, Tensor


@answering
def check(state: State, stage: StageState, *, scope: Any) -> Verdict:
    """Refuse inputs, inlined stages, stages with annotated data loops, and unknown scopes."""
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: it is not computed")
    require_expression(stage)
    require_scope(scope)
    if stage.is_inlined:
        return Illegal("structural", f"{stage.name} is inlined: it is not stored")
    for leaf in stage.leaves:
        if leaf.kind == "data":
            require_plain(stage, leaf)
    return LEGAL


def apply(
    state: State, stage: StageState, context: StepContext, *, scope: str
) -> tuple[State, Tensor | tuple[Tensor, ...]]:
    """Return the next state and the tensors that are computed in `scope`."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    layout = _Layout.of(stage, context)
    name = unique_name(f"{stage.name}.{scope}", (s.name for s in state.stages))
    values = {axis.var: value for axis, value in layout.values.items()}
    bodies = layout_bodies(op, values, layout.condition)
    cached = ComputeOp(name, layout.axes, bodies, op.tag)
    copies = tuple(TensorLoad(tensor, layout.place) for tensor in cached.outputs)
    writer = replace(
        stage,
        op=ComputeOp(op.name, op.axis, copies, op.tag),
        leaves=op.axis,
        relations=(),
        kinds={},
        pragmas={},
        storing={},  # of the threads that share the reduction, which is the cache's now
        paths={axis: stage.paths[axis] for axis in op.axis},
    )
    stages: list[StageState] = []
    for item in state.stages:
        stages.extend(
            (_cache_stage(stage, cached, layout, scope), writer) if item is stage else (item,)
        )
    moved = layout.fresh | {axis: axis for axis in stage.paths if axis.kind == "reduce"}
    stages = moved_attachments(stages, stage.name, name, moved)
    outputs = cached.outputs
    return State(context.state_id, tuple(stages)), outputs if len(outputs) > 1 else outputs[0]


@dataclass(frozen=True)
class _Layout:
    """The dimensions of the cache, one for each data loop of the stage."""

    fresh: dict[Axis, Axis]
    """For each data loop, outermost first, the axis that takes its place."""
    values: dict[Axis, Expr]
    """The stage's own data axes, in terms of the fresh ones."""
    condition: Expr | None
    """Condition under which a point of the cache is a point of the stage; None if always."""
    place: tuple[Expr, ...]
    """The indices in the cache of a point of the stage's own axes."""

    @staticmethod
    def of(stage: StageState, context: StepContext) -> _Layout:
        loops = [leaf for leaf in stage.leaves if leaf.kind == "data"]
        fresh = {a: context.axis(f"{stage.paths[a]}.c", a.extent, "data") for a in loops}
        known: dict[Axis, Expr] = {old: new.var for old, new in fresh.items()}
        analyzer = ranged({axis.var: axis.extent for axis in (*fresh.values(), *stage.op.axis)})
        values = outward(stage.relations, known)
        conditions = guards(stage.relations, values)
        points = inward(stage.relations, {axis: axis.var for axis in stage.op.axis})
        return _Layout(
            fresh,
            {axis: analyzer.simplify(values[axis]) for axis in stage.op.axis},
            analyzer.simplify(logical("and", *conditions)) if conditions else None,
            tuple(analyzer.simplify(points[leaf]) for leaf in loops),
        )

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(self.fresh.values())


def _cache_stage(stage: StageState, cached: ComputeOp, layout: _Layout, scope: str) -> StageState:
    """Return the stage of the cache: its loops have the order and annotations of the old stage."""
    reduced = {axis: path for axis, path in stage.paths.items() if axis.kind == "reduce"}
    names: dict[Axis, str] = {}
    for axis in cached.axis:
        names[axis] = unique_name(axis.name, (*names.values(), *reduced.values()))
    return replace(
        joined(new_stage(cached, cached.name, scope=scope), stage),
        leaves=tuple(layout.fresh.get(leaf, leaf) for leaf in stage.leaves),
        relations=tuple(r for r in stage.relations if axes_of(r)[0].kind == "reduce"),
        kinds=stage.kinds,
        pragmas=stage.pragmas,
        storing=stage.storing,
        paths={**names, **reduced},
    )


CACHE_WRITE = Primitive("cache_write", {"scope": "text"}, check, apply)
