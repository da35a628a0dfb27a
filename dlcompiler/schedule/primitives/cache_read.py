"""Copy a tensor into a new buffer, and let some readers read the copy.

*Before*, then *after* ``AA = s.cache_read(A, "local", [C])``::

    for i in range(8):                  for ax0 in range(8):
        C[i] = A[i] * 2.0                   A.local[ax0] = A[ax0]
                                        for i in range(8):
                                            C[i] = A.local[i] * 2.0

The copy is a new stage, ``A.local``. If it is attached at a loop, it holds only the part that is
read there. Other readers still read the tensor itself. Legal at any time, also for inlined readers,
since the step does not change their loops. If A is a state of a scan, each step copies the rows
that it reads.
In TVM ``cache_read``, in Halide ``Func.in(consumer)``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import TensorLoad
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.groups import joined
from dlcompiler.schedule.inference.inlining import read_from
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_output,
    require_scope,
)
from dlcompiler.schedule.state import StageState, State, buffer_name, new_stage
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering
from dlcompiler.te import ComputeOp, Tensor


@answering
def check(
    state: State, stage: StageState, *, scope: Any, readers: Any, output: Any = None
) -> Verdict:
    """Refuse readers that do not read the tensor, and unknown scopes."""
    require_output(stage, output, len(stage.readable))
    require_scope(scope)
    require_readers(state, stage, stage.readable[output or 0], readers)
    return LEGAL


def require_readers(
    state: State, stage: StageState, tensor: Tensor, readers: tuple[str, ...]
) -> None:
    """Refuse an empty list of readers, duplicates, and readers that do not read the tensor."""
    known = [s.name for s in state.stages if tensor in s.op.input_tensors]
    hint = f"the readers are: {', '.join(known)}" if known else f"no stage reads {stage.name}"
    if not readers:
        raise Refused(Illegal("structural", "no reader is given", hint=hint))
    for name in readers:
        if name not in known:
            raise Refused(Illegal("structural", f"{name} does not read {tensor.name}", hint=hint))
    if len(set(readers)) < len(readers):
        got = ", ".join(readers)
        raise Refused(Illegal("structural", "each reader may be given once", got=got))


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    scope: str,
    readers: tuple[str, ...],
    output: int | None = None,
) -> tuple[State, Tensor]:
    """Return the next state and the copy that the readers read now."""
    tensor = stage.readable[output or 0]
    base = tensor.name if tensor in stage.states else buffer_name(stage, tensor)
    name = unique_name(f"{base}.{scope}", (s.name for s in state.stages))
    axes = tuple(context.axis(f"ax{n}", extent, "data") for n, extent in enumerate(tensor.shape))
    copy = ComputeOp(name, axes, (TensorLoad(tensor, tuple(axis.var for axis in axes)),))
    cache = copy.output(0)
    stages = list(state.stages)
    for n, item in enumerate(stages):
        if item.name in readers:
            stages[n] = replace(item, op=read_from(item.op, {tensor: cache}))
    is_state = tensor in stage.states  # its readers come before the scan
    place = min(map(state.position, readers)) if is_state else state.position(stage.name) + 1
    stages.insert(place, joined(new_stage(copy, name, scope=scope), stage))
    return State(context.state_id, tuple(stages)), cache


CACHE_READ = Primitive(
    "cache_read", {"scope": "text", "readers": "stages", "output": "int"}, check, apply
)
