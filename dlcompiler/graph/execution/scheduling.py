"""Schedules of kernels that no operator of the library schedules, for CPUs and GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.errors import ScheduleError
from dlcompiler.ops.gpu.injective import share_out
from dlcompiler.ops.gpu.threads import bind, share_elements
from dlcompiler.ops.injective import schedule_injective
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.schedule.auto_inline import inline_injective, is_untouched
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

MOST_THREADS = 128
"""Threads of a block that sums; [1]."""


def schedule_plainly(outputs: Sequence[Tensor], target: Target) -> Schedule:
    """Schedule any kernel: vectors along the last axis, cores along the first ones.

    Injective stages are inlined into what reads them. A reduction runs inside the loop over vectors
    of results. On a GPU, each stage is a launch whose threads have results of their own.

    Parameters
    ----------
    outputs : sequence of Tensor
        What the kernel stores.
    target : Target
        A CPU or a GPU.
    """
    s = create_schedule([tensor.op for tensor in outputs])
    schedule_rest(s, outputs, target)
    return s


def schedule_rest(s: Schedule, outputs: Sequence[Tensor], target: Target) -> None:
    """Schedule the stages of some outputs that no step has touched.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    outputs : sequence of Tensor
        Outputs that are not scheduled.
    target : Target
        A CPU or a GPU.
    """
    if not outputs:
        return
    inline_injective(s)
    schedule_stages(s, [stage.tensor for stage in s.stages], target, outputs)


def schedule_stages(
    s: Schedule, tensors: Sequence[Tensor], target: Target, outputs: Sequence[Tensor] = ()
) -> None:
    """Schedule those of some stages that no step has touched.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    tensors : sequence of Tensor
        Tensors of the stages.
    target : Target
        A CPU or a GPU.
    outputs : sequence of Tensor
        Outputs among them.
    """
    for tensor in tensors:
        op = tensor.op
        if not isinstance(op, ComputeOp) or not is_untouched(s[tensor].state):
            continue
        if not op.axis and target.device != "gpu":
            continue
        before = s.node.id
        try:
            if target.device == "gpu":
                _schedule_launch(s, tensor, target)
            else:
                _schedule_stage(s, tensor, target, is_output=tensor in outputs)
        except ScheduleError:  # the loops stay as they are written
            s.jump(before)


def _schedule_launch(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Share out the results of a stage among threads; each sums its own."""
    op = tensor.op
    assert isinstance(op, ComputeOp)
    if not op.axis:
        bind(s[tensor], {"threadIdx.x": s[tensor].fuse()})
    elif op.reduce_axis:
        share_elements(s[tensor], op.axis, MOST_THREADS)
    else:
        share_out(s, tensor, target)


def _schedule_stage(s: Schedule, tensor: Tensor, target: Target, *, is_output: bool) -> None:
    op = tensor.op
    assert isinstance(op, ComputeOp)
    work = math.prod(tensor.static_shape) * math.prod(
        axis.extent for axis in op.reduce_axis if isinstance(axis.extent, int)
    )
    is_parallel = is_worth_sharing(float(work), target)
    if is_output and not op.reduce_axis:
        schedule_injective(s, tensor, target, is_parallel=is_parallel)
        return
    *rows, last = s[tensor].op.axis
    vectors, vector = s[tensor].split(last, target.lanes(tensor.dtype))
    s[tensor].reorder(*rows, vectors, *op.reduce_axis, vector)
    s[tensor].vectorize(vector)
    if is_parallel:
        s[tensor].parallel(s[tensor].fuse(*rows, vectors) if rows else vectors)
