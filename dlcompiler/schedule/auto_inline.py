"""Inline at once all stages that are cheap to recompute and have not been scheduled.

*Before*, then *after* ``inline_injective(s)``::

    for i in range(8):                  for i in range(8):
        P[i] = A[i] * 2.0                   C[i] = max(A[i] * 2.0, 0.0)
    for i in range(8):
        C[i] = max(P[i], 0.0)

Each stage is inlined by a step ``s[P].compute_inline()``, which the history shows. A stage is not
inlined if this step would be refused: for an output, for a reduction, or if an expression would
grow too large. It is not inlined either if several copies of it make an expression large. In TVM
``AutoInlineElemWise``, ``AutoInlineBroadcast`` and ``AutoInlineInjective``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Const, Expr, TensorLoad, Var, walk
from dlcompiler.schedule.primitives.compute_inline import growth
from dlcompiler.schedule.schedule import Schedule
from dlcompiler.schedule.state import AtRoot, StageState, State, same_axes
from dlcompiler.te import ComputeOp

MOST_NODES = 2000
"""Largest expression that copies of one stage make; [1]. Chains of stages that read two elements of
the one before them, such as ``y[i] + y[n - i]``, would else compute each element many times."""


def inline_injective(schedule: Schedule) -> None:
    """Inline all stages that are not scheduled and are neither a reduction nor an output."""
    _inline(schedule, lambda op: not op.reduce_axis)


def inline_broadcast(schedule: Schedule) -> None:
    """Inline injective stages whose indices are 0 or their own axes, in the order of the axes."""
    _inline(schedule, _is_broadcast)


def inline_elementwise(schedule: Schedule) -> None:
    """Inline injective stages that read every tensor with exactly their own axes as indices."""
    _inline(schedule, _is_elementwise)


def _inline(schedule: Schedule, is_simple: Callable[[ComputeOp], bool]) -> None:
    for stage in schedule.stages:
        state = stage.state
        is_candidate = is_untouched(state) and not state.is_output
        if not (isinstance(stage.op, ComputeOp) and is_candidate and is_simple(stage.op)):
            continue
        if not _is_copied_often(schedule.state, state):
            with suppress(ScheduleError):  # of an expression that would become too large
                stage.compute_inline()


def _is_copied_often(state: State, stage: StageState) -> bool:
    """Tell whether a reader would become large because it needs several elements of a stage."""
    readers = growth(state, stage)
    return any(copies > 1 and nodes > MOST_NODES for _, copies, nodes, _ in readers)


def is_untouched(stage: StageState) -> bool:
    """Tell whether no step has changed the loops or the place of a stage."""
    axes = (*stage.op.axis, *stage.op.reduce_axis)
    return isinstance(stage.attachment, AtRoot) and same_axes(stage.leaves, axes)


def _is_elementwise(op: ComputeOp) -> bool:
    own = [id(axis.var) for axis in op.axis]
    return not op.reduce_axis and all([id(x) for x in load.indices] == own for load in _loads(op))


def _is_broadcast(op: ComputeOp) -> bool:
    order = {axis.var: position for position, axis in enumerate(op.axis)}
    for load in _loads(op):
        used = [index for index in load.indices if not _is_zero(index)]
        if not all(isinstance(index, Var) and index in order for index in used):
            return False
        positions = [order[index] for index in used if isinstance(index, Var)]
        if positions != sorted(set(positions)):
            return False
    return not op.reduce_axis


def _loads(op: ComputeOp) -> list[TensorLoad]:
    return [node for body in op.bodies for node in walk(body) if isinstance(node, TensorLoad)]


def _is_zero(index: Expr) -> bool:
    return isinstance(index, Const) and index.value == 0
