"""Attach a pragma to a loop: a hint for passes and code generators.

*Before*, then *after* ``pragma(i, "auto_unroll_max_step", 16)``::

    for i in range(8):                  for i in range(8) with auto_unroll_max_step=16:
        …                                   …

``"unroll"`` and ``"vectorize"`` are the primitives of these names. A pragma must not
change any value. On an accelerator ``"dma_copy"`` asks for one copy instruction; a program with
``"skip_dma_copy"`` or ``"skip_alu"`` leaves instructions out, and can only be timed. Unknown
pragmas are refused, and also those of classic TVM that leave out computations or insert
foreign code.
In TVM ``pragma``; Halide has none.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule.primitives import unroll, vectorize
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_leaf,
    require_loops,
    require_natural,
)
from dlcompiler.schedule.state import StageState, State, with_notes
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering

PRIMITIVES = {"unroll": unroll.UNROLL, "vectorize": vectorize.VECTORIZE}
HINTS: Mapping[str, str] = {
    "auto_unroll_max_step": "unroll short serial loops inside: up to this number of copies; "
    "0: ask the compiler of a GPU to leave this loop as it is",
    "unroll_explicit": "1: repeat the body of unrolled loops here; 0: leave that to LLVM",
    "loop_partition_hint": "split off the iterations at the ends, where conditions fail",
    "nontemporal": "store past the caches the vectors that nothing here reads",
    "async_copy": "GPU: begin copies to shared memory, and wait for them at the barrier",
    "dma_copy": "accelerator: the loops from here on are one copy instruction, or it is refused",
    "alu": "accelerator: elementwise instructions compute this, as they do without the pragma",
    "skip_dma_copy": "accelerator: time the program without the copies of this stage",
    "skip_alu": "accelerator: time the program without the elementwise instructions of this stage",
    "parallel_launch_point": "classic TVM: begin the threads here",
    "parallel_barrier_when_finish": "classic TVM: wait for all threads behind this loop",
    "parallel_stride_pattern": "classic TVM: give out iterations in strides",
}
REFUSED: Mapping[str, str] = {
    "debug_skip_region": "it would leave the computation out",
    "import_c": "it would bring in code that nothing checks",
    "import_llvm": "it would bring in code that nothing checks",
    "tensor_core": "a CPU has no tensor cores",
}


@answering
def check(
    state: State, stage: StageState, *, axis: Any, pragma_type: Any, pragma_value: Any = None
) -> Verdict:
    """Refuse unknown pragmas, pragmas that change results, and values that are not numbers."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    name = pragma_type if isinstance(pragma_type, str) else ""
    if name in PRIMITIVES:
        return PRIMITIVES[name].check(state, stage, axis=axis)
    if name in REFUSED:
        return Illegal("limit", f"the pragma {name} is not available", because=REFUSED[name])
    if name not in HINTS:
        known = ", ".join([*PRIMITIVES, *HINTS])
        return Illegal(
            "structural", "no such pragma", got=repr(pragma_type), hint=f"known pragmas: {known}"
        )
    if pragma_value is not None and not isinstance(pragma_value, bool):
        require_natural(pragma_value, "pragma_value")
    return LEGAL


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    axis: Axis,
    pragma_type: str,
    pragma_value: numbers.Integral | None = None,
) -> tuple[State, None]:
    """Return the next state."""
    if pragma_type in PRIMITIVES:
        return PRIMITIVES[pragma_type].apply(state, stage, context, axis=axis)
    value = 1 if pragma_value is None else int(pragma_value)
    notes = {**stage.pragmas.get(axis, {}), pragma_type: value}
    stage = replace(stage, pragmas={**stage.pragmas, axis: notes})
    return with_notes(state, stage, context.state_id), None


PRAGMA = Primitive(
    "pragma", {"axis": "axis", "pragma_type": "text", "pragma_value": "int"}, check, apply
)
