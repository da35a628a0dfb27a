"""Run the iterations of a loop on the threads of a device: one thread, or one block, each.

*Before*, then *after* ``bind(i.outer, te.thread_axis("blockIdx.x"))`` and
``bind(i.inner, te.thread_axis("threadIdx.x"))``::

    for i.outer in range(4):            for i.outer in blockIdx.x(4):
        for i.inner in range(32):           for i.inner in threadIdx.x(32):
            C[…] = …                            C[…] = …

Legal on a data loop, once for each axis in a nest: its iterations write different elements. A
reduction loop may be bound to ``threadIdx``: each thread reduces a part, and then the threads
combine their parts (`lowering.cross_thread`). A stage that is attached inside thread loops runs in
one thread. A stage that is attached inside block loops only may have its own thread loops, and the
block shares its values. Splits from which a bound loop comes keep their factor even if the extent
is smaller. In TVM ``bind``, in Halide ``gpu_blocks`` and ``gpu_threads``.
"""

from __future__ import annotations

from typing import Any, cast

from dlcompiler.ir import THREADS, Axis, ThreadTag
from dlcompiler.schedule.legality.reducers import require_any_grouping
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    require_leaf,
    require_loops,
    require_plain,
    set_kind,
)
from dlcompiler.schedule.primitives.vectorize import on_reduction
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering


@answering
def check(state: State, stage: StageState, *, axis: Any, thread: Any) -> Verdict:
    """Refuse reductions on blocks, annotated loops, and thread axes that are unknown or in use."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    if thread not in THREADS:
        raise Refused(
            Illegal(
                "structural",
                "no such thread axis",
                got=repr(thread),
                hint=f"te.thread_axis takes one of {', '.join(THREADS)}",
            )
        )
    require_plain(stage, axis)
    if axis.kind != "data" and not (axis.kind == "reduce" and thread.startswith("threadIdx")):
        raise Refused(_on_reduction(stage, axis, thread))
    if axis.kind == "reduce":
        require_any_grouping(stage, is_moved=True)
    taken = next((leaf for leaf in stage.leaves if stage.kind(leaf) == thread), None)
    if taken is not None and thread != "vthread":
        raise Refused(
            Illegal(
                "structural",
                f"another loop of the nest is bound to {thread}",
                got=stage.label(taken),
                hint=f"fuse {stage.paths[taken]} and {stage.paths[axis]}, or bind to another axis",
                conflicts=(stage.key(taken),),
            )
        )
    return LEGAL


def _on_reduction(stage: StageState, axis: Axis, thread: str) -> Illegal:
    threads = "blocks" if thread.startswith("blockIdx") else "threads"
    hint = "bind a data axis, or make one of the reduction first, with s.rfactor"
    if thread == "vthread":  # the name of which may have been "cthread"
        return on_reduction(stage, axis, "bound to virtual threads", "all of them", hint)
    return on_reduction(stage, axis, f"bound to {thread}", f"all {threads}", hint)


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis, thread: str
) -> tuple[State, None]:
    """Return the next state."""
    bound = set_kind(stage, axis, cast(ThreadTag, thread))
    return state.with_stage(bound, context.state_id), None


BIND = Primitive("bind", {"axis": "axis", "thread": "text"}, check, apply)
