"""Prefetch, in each iteration of a loop, the elements that a later iteration reads.

*Before*, then *after* ``s[C].prefetch(A, i, 4)`` and the pass that does it::

    for i in range(64):                 for i in range(64):
        for k in range(64):                 if i + 4 < 64:
            C[i] += A[i, k]                     for A.line in range(4):
                                                    prefetch A[i + 4, A.line*16]
                                            for k in range(64):
                                                C[i] += A[i, k]

A prefetch does not change any value. It is left out if the elements that are read do not form a box
of known size. Legal for a tensor that is read inside the loop. The loop must have more than one
iteration, and run them one after another.
In TVM and Halide ``prefetch``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis, is_concurrent
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_leaf,
    require_loops,
    require_output,
    require_positive,
)
from dlcompiler.schedule.state import PREFETCH, StageState, State, buffer_name, with_notes
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering


@answering
def check(
    state: State,
    stage: StageState,
    *,
    tensor: str,
    axis: Any,
    offset: Any = 1,
    tensor_output: Any = None,
) -> Verdict:
    """Refuse a tensor that is not read, and a loop without later iterations."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    producer = state.stage(tensor)
    require_output(producer, tensor_output, len(producer.tensors))
    if producer.is_inlined:
        return Illegal("structural", f"{tensor} is inlined: it is not stored")
    if stage not in consumers(state, producer):
        return Illegal("structural", f"{stage.name} does not read {tensor}")
    require_positive(offset, "offset")
    if is_concurrent(stage.kind(axis)):
        return Illegal(
            "structural",
            f"the loop is {stage.kind(axis)}: it has no later iterations",
            got=stage.label(axis),
            hint="prefetch at a serial loop inside or outside it",
            conflicts=(stage.key(axis),),
        )
    if isinstance(axis.extent, int) and axis.extent <= 1:
        return Illegal(
            "structural",
            "the loop has no other iteration",
            got=stage.label(axis),
            conflicts=(stage.key(axis),),
        )
    return LEGAL


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    tensor: str,
    axis: Axis,
    offset: int = 1,
    tensor_output: int | None = None,
) -> tuple[State, None]:
    """Return the next state."""
    producer = state.stage(tensor)
    name = PREFETCH + buffer_name(producer, producer.tensors[tensor_output or 0])
    notes = {**stage.pragmas.get(axis, {}), name: int(offset)}
    stage = replace(stage, pragmas={**stage.pragmas, axis: notes})
    return with_notes(state, stage, context.state_id), None


PREFETCHING = Primitive(
    "prefetch",
    {"tensor": "stage", "axis": "axis", "offset": "int", "tensor_output": "int"},
    check,
    apply,
)
