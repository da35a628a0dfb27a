"""Schedule recurrent layers on a GPU: each stage of a step is a kernel of its own."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.injective import share_out
from dlcompiler.ops.gpu.threads import Chip, share_elements
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.auto_inline import inline_injective, is_untouched
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_THREADS = (64, 128, 256, 512)


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     of a block that sums
    ==============  ============================================================================
    """
    most = Chip.of(target).most_threads
    return Space(workload, [Knob("threads", tuple(n for n in _THREADS if n <= most))])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with 128 threads."""
    return space(workload, target).config(threads=128)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a recurrent layer on a GPU: each stage is a kernel whose threads have own elements.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The results.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    inline_injective(s)
    for stage in s.stages:
        op = stage.op
        if not isinstance(op, ComputeOp) or not is_untouched(stage.state):
            continue
        if op.reduce_axis:
            share_elements(stage, op.axis, cfg["threads"])
        else:
            share_out(s, op.output(0), target)


RECURRENT = DeviceSchedule(space, default_config, schedule)
