"""Classic TVM's ``tvm.topi.cuda``: plain schedules for GPUs, and the convolution that they take.

Each stage that is left after inlining is a kernel: a thread for each element, or, of a reduction,
a warp for each element. Tuned schedules are written with `autotvm`.
"""

from __future__ import annotations

from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.topi.nn import conv2d_nchw
from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.schedule.stage import Stage

THREADS = 256
"""Threads of a block, where each computes an element [1]."""
LANES = 32
"""Threads that compute an element of a reduction together [1]."""


def schedule_injective(outs: Any) -> Schedule:
    """Return a schedule of tensors that are not reductions: a thread for each element.

    Parameters
    ----------
    outs : Tensor or sequence of Tensor
        The outputs of the schedule.
    """
    return _scheduled(outs, lanes=1)


def schedule_reduce(outs: Any) -> Schedule:
    """Return a schedule of reductions: the threads of a warp share each of them.

    Parameters
    ----------
    outs : Tensor or sequence of Tensor
        The outputs of the schedule.
    """
    return _scheduled(outs, lanes=LANES)


schedule_softmax = schedule_reduce


def schedule_conv2d_nchw(outs: Any) -> Schedule:
    """Return a schedule of convolutions: a thread for each element, padding inlined.

    Parameters
    ----------
    outs : Tensor or sequence of Tensor
        The outputs of the schedule.
    """
    return _scheduled(outs, lanes=1)


schedule_dense = schedule_pool = schedule_conv2d_nchw


def _scheduled(outs: Any, lanes: int) -> Schedule:
    """Inline what is not a reduction, and bind the loops of all other stages to threads."""
    results = [outs] if isinstance(outs, te.Tensor) else list(outs)
    s = create_schedule([out.op for out in results])
    inline_injective(s)
    for stage in s.stages:
        if not isinstance(stage.op, te.ComputeOp) or stage.state.is_inlined:
            continue
        if stage.op.reduce_axis and lanes > 1:
            _share(stage, lanes)
        elif stage.op.axis:
            block, thread = stage.split(_fused(stage, stage.op.axis), factor=THREADS)
            stage.bind(block, te.thread_axis("blockIdx.x"))
            stage.bind(thread, te.thread_axis("threadIdx.x"))
    return s


def _fused(stage: Stage, axes: tuple[Axis, ...]) -> Axis:
    return stage.fuse(*axes) if len(axes) > 1 else axes[0]


def _share(stage: Stage, lanes: int) -> None:
    """Bind the elements of a reduction to blocks, and the terms of each to threads."""
    _, lane = stage.split(_fused(stage, stage.op.reduce_axis), factor=lanes)
    if stage.op.axis:
        stage.bind(_fused(stage, stage.op.axis), te.thread_axis("blockIdx.x"))
    stage.bind(lane, te.thread_axis("threadIdx.x"))


__getattr__ = reporter(__name__)
__all__ = [
    "conv2d_nchw",
    "schedule_conv2d_nchw",
    "schedule_dense",
    "schedule_injective",
    "schedule_pool",
    "schedule_reduce",
    "schedule_softmax",
]
