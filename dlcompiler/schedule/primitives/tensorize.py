"""Replace a loop, and the loops inside it, by an intrinsic of the machine.

*Before*, then *after* ``tensorize(k, te.tensor_intrin("gemv_f32_8x16"))``::

    for i in range(4):                      for i in range(4):
        for j.outer in range(2):                for j.outer in range(2):
            for k in range(16):                     C[i, j.outer*8 : +8] = gemv_f32_8x16(…)
                for j.inner in range(8):
                    C[i, …] += A[i, k]*B[k, …]

Legal if the loops run through a box of known size without conditions, and compute what the
intrinsic declares: the same extents, dtypes and expression, in any order of the loops. If reduction
loops stay outside, the intrinsic's reset replaces the initialisation, and its update replaces the
loops. The replaced loops must have no annotations, and no stage may be attached at them.
In TVM ``tensorize``; Halide has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_leaf,
    require_loops,
    require_plain,
)
from dlcompiler.schedule.state import StageState, State, Tensorized
from dlcompiler.schedule.verdict import LEGAL, Illegal, Pending, Refused, Verdict, answering
from dlcompiler.te import TensorIntrin
from dlcompiler.te.intrinsics.library import tensor_intrin


@answering
def check(state: State, stage: StageState, *, axis: Any, intrin: Any) -> Verdict:
    """Refuse a second or an unknown intrinsic; `tensorized` checks the match in the next state."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    if stage.tensorized is not None:
        other = stage.tensorized
        raise Refused(
            Illegal(
                "structural",
                f"{stage.name} has an intrinsic already",
                got=f"{other.intrin.name} at {stage.label(other.axis)}",
                hint="one stage has one: undo that step, or cache_write and tensorize the cache",
                conflicts=(stage.key(other.axis),),
            )
        )
    chosen = _found(intrin)
    require_plain(stage, axis)
    if len(stage.tensors) > 1:
        return Illegal(
            "structural",
            f"{stage.name} has several outputs, and an intrinsic one",
            got=", ".join(tensor.name for tensor in stage.tensors),
        )
    if not has_bounds(state):
        return Pending(f"{chosen.name} computes what {stage.label(axis)} does: to be shown when it "
                       "is known where each stage is computed")  # fmt: skip
    return LEGAL


def _found(intrin: object) -> TensorIntrin:
    """Return an intrinsic, given as an object or by its name."""
    if isinstance(intrin, TensorIntrin):
        return intrin
    if not isinstance(intrin, str):
        raise Refused(
            Illegal(
                "structural",
                "not a tensor intrinsic",
                got=repr(intrin),
                hint='te.tensor_intrin("gemm_f32_6x16x64"), or one of te.decl_tensor_intrin',
            )
        )
    try:
        return tensor_intrin(intrin)
    except ExpressionError as error:
        known = f"known: {error.expected}"
        raise Refused(
            Illegal("structural", "no such tensor intrinsic", error.hint or known, repr(intrin))
        ) from None


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis, intrin: TensorIntrin | str
) -> tuple[State, None]:
    """Return the next state."""
    tensorized = Tensorized(axis, _found(intrin), context.step)
    return state.with_stage(replace(stage, tensorized=tensorized), context.state_id), None


TENSORIZE = Primitive("tensorize", {"axis": "axis", "intrin": "intrin"}, check, apply)
