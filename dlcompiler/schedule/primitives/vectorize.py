"""Run the iterations of a loop as the lanes of vector instructions.

*Before*, then *after* ``vectorize(j)``::

    for j in range(8):                  for j in vectorized(8):
        C[j] = A[j] + B[j]                  C[j] = A[j] + B[j]

Legal on one data loop of each nest, if no stage is attached inside it. On a reduction loop all
lanes would update the same element. In TVM and Halide ``vectorize``.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis, LoopKind
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_kind,
    require_leaf,
    require_loops,
    set_kind,
)
from dlcompiler.schedule.state import PREFETCH, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering


@answering
def check(state: State, stage: StageState, *, axis: Any) -> Verdict:
    """Refuse a reduction loop, and a loop with another annotation."""
    require_independent(state, stage, axis, "vectorized")
    return LEGAL


def require_independent(state: State, stage: StageState, axis: Any, kind: LoopKind) -> None:
    """Refuse a reduction loop: its iterations must not run at the same time."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    require_kind(stage, axis, kind)
    if any(name.startswith(PREFETCH) for name in stage.pragmas.get(axis, ())):
        raise Refused(
            Illegal(
                "structural",
                f"the loop prefetches, and a {kind} loop has no later iterations",
                got=stage.label(axis),
                hint="undo that step, or choose another loop",
                conflicts=(stage.key(axis),),
            )
        )
    if axis.kind == "data":
        return
    who = "all lanes" if kind == "vectorized" else "all threads"
    raise Refused(on_reduction(stage, axis, kind, who, _alternative(stage, kind)))


def on_reduction(
    stage: StageState, axis: Axis, done: str, who: str, hint: str | None = None
) -> Illegal:
    """Return the refusal to run the iterations of a reduction loop at the same time.

    Parameters
    ----------
    done
        What the loop cannot be: ``vectorized``.
    who
        What would run its iterations: ``all lanes``.
    """
    extent = axis.extent
    reason = f"a reduction axis cannot be {done}"
    got = f"axis {stage.paths[axis]} of stage {stage.name} (reduction, extent {extent})"
    conflicts = (stage.key(axis), stage.body_key)
    if isinstance(extent, int) and extent < 2:
        many = "one iteration" if extent else "no iteration"
        because = f"it has {many}: there is nothing to run at the same time"
        return Illegal("structural", reason, got=got, because=because, conflicts=conflicts)
    element = f"{stage.name}[{', '.join(data.name for data in stage.op.axis)}]"
    because = (
        f"{who} would update {element}: iterations {axis.name}=0 and {axis.name}=1 write the same "
        "element"
    )
    return Illegal("semantic", reason, got=got, because=because, hint=hint, conflicts=conflicts)


def _alternative(stage: StageState, kind: LoopKind) -> str | None:
    """Return a hint that names a suitable data loop: innermost for vectors, else outermost."""
    if kind in stage.kinds.values():
        return None  # there is such a loop already
    free = [x for x in stage.leaves if x.kind == "data" and stage.kind(x) == "serial"]
    if not free:
        return None
    if kind == "vectorized":
        return f"vectorize {stage.paths[free[-1]]}, a data axis"
    return f"parallelize {stage.paths[free[0]]}, a data axis"


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis
) -> tuple[State, None]:
    """Return the next state."""
    return state.with_stage(set_kind(stage, axis, "vectorized"), context.state_id), None


VECTORIZE = Primitive("vectorize", {"axis": "axis"}, check, apply)
