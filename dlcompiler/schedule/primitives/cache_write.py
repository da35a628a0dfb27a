"""Compute a stage in a buffer of its own, and copy the result out.

*Before*, then *after* ``CL = s.cache_write(C, "local")``::

    for i in range(8):                  for i.c in range(8):
        for k in range(4):                  for k in range(4):
            C[i] += A[i, k]                     C.local[i.c] += A[i.c, k]
                                        for i in range(8):
                                            C[i] = C.local[i]

The computation moves to the new stage ``C.local`` with fresh data axes and the same reduction
axes; C keeps its data axes and becomes the copy. Legal before C's loops are changed.
In TVM ``cache_write``, in Halide ``Func.in`` of the result.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import TensorLoad, substitute
from dlcompiler.schedule.primitives.base import Making, Primitive, answering, require_scope
from dlcompiler.schedule.state import StageState, State, new_stage, same_axes, unique_name
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict
from dlcompiler.te import ComputeOp, Tensor


@answering
def check(state: State, stage: StageState, *, scope: Any) -> Verdict:
    """Refuse inputs, inlined stages, stages whose loops were changed, and unknown scopes."""
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: it is not computed")
    require_scope(scope)
    if stage.is_inlined:
        return Illegal("structural", f"{stage.name} is inlined: it is not stored")
    loops = (*stage.op.axis, *stage.op.reduce_axis)
    if stage.relations or stage.kinds or not same_axes(stage.leaves, loops):
        return Illegal(
            "structural",
            f"the loops of {stage.name} have been changed already",
            hint="call cache_write first, then schedule both stages",
        )
    return LEGAL


def apply(state: State, stage: StageState, making: Making, *, scope: str) -> tuple[State, Tensor]:
    """Return the next state and the tensor that is computed in `scope`."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    name = unique_name(f"{stage.name}.{scope}", (s.name for s in state.stages))
    fresh = tuple(making.axis(f"{a.name}.c", a.static_extent, "data") for a in op.axis)
    values = {old.var: new.var for old, new in zip(op.axis, fresh, strict=True)}
    cached = ComputeOp(name, fresh, tuple(substitute(b, values) for b in op.bodies), op.tag)
    tensor = cached.output(0)
    place = tuple(axis.var for axis in op.axis)
    copy = ComputeOp(op.name, op.axis, tuple(TensorLoad(t, place) for t in cached.outputs), op.tag)
    cache_stage = new_stage(cached, name, scope=scope)
    writer = StageState(
        stage.name,
        stage.tensors,
        copy,
        leaves=op.axis,
        paths={axis: stage.paths[axis] for axis in op.axis},
        attachment=stage.attachment,
        scope=stage.scope,
        is_output=stage.is_output,
    )
    stages: list[StageState] = []
    for item in state.stages:
        stages.extend((cache_stage, writer) if item is stage else (item,))
    return State(making.state_id, tuple(stages)), tensor


CACHE_WRITE = Primitive("cache_write", {"scope": "text"}, check, apply)
