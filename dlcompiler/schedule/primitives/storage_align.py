"""Pad a dimension of a stage's buffer, so that its rows begin at aligned addresses.

*Before*, then *after* ``s[P].storage_align(i, factor=8, offset=1)``::

    allocate P: float32[4, 6]           allocate P: float32[4, 6] strides [9, 1]
    … P[i, j] …                         … P[i, j] …

The stride of the dimension is increased to the next number of the form ``n*factor + offset``.
Values and loops stay as they are. Legal for a dimension of a stage between inputs and outputs: the
layouts of inputs and outputs are the caller's.
In TVM ``storage_align``, in Halide ``align_storage``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_compact,
    require_dimension,
    require_expression,
    require_natural,
    require_own_storage,
    require_positive,
)
from dlcompiler.schedule.state import StageState, State, with_notes
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering

MAX_ALIGNMENT = 65536
"""Elements: a page of 4 KiB in each dimension is enough for any cache."""


@answering
def check(state: State, stage: StageState, *, axis: Any, factor: Any, offset: Any = 0) -> Verdict:
    """Refuse inputs, outputs, axes that are not dimensions, and numbers out of range."""
    require_own_storage(stage)
    require_expression(stage)
    require_compact(state, stage)
    require_dimension(stage, axis)
    require_positive(factor, "factor")
    require_natural(offset, "offset")
    if stage.separators:
        return Illegal(
            "limit",
            f"the dimensions of {stage.name} lie in several of the memory",
            hint="padding is for flat memory: leave it out, or te.AXIS_SEPARATOR",
            conflicts=(stage.name,),
        )
    if max(factor, offset) > MAX_ALIGNMENT:
        return Illegal(
            "limit",
            "the buffer would be mostly padding",
            got=f"factor {factor}, offset {offset}",
            hint=f"at most {MAX_ALIGNMENT} elements",
        )
    return LEGAL


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    axis: Axis,
    factor: int,
    offset: int = 0,
) -> tuple[State, None]:
    """Return the next state."""
    alignments = {**stage.alignments, axis: (int(factor), int(offset))}
    return with_notes(state, replace(stage, alignments=alignments), context.state_id), None


STORAGE_ALIGN = Primitive(
    "storage_align", {"axis": "axis", "factor": "int", "offset": "int"}, check, apply
)
