"""Schedule running sums on a GPU: windows and sums of blocks are kernels, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.cumsum import NAME, define_in_blocks
from dlcompiler.ops.gpu.injective import schedule_rest, share_out
from dlcompiler.ops.gpu.threads import Chip, share_elements
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_THREADS = (64, 128, 256, 512)


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     of a block
    ==============  ============================================================================
    """
    most = Chip.of(target).most_threads
    return Space(workload, [Knob("threads", tuple(n for n in _THREADS if n <= most))])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with 128 threads."""
    return space(workload, target).config(threads=128)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule running sums on a GPU: each stage is a kernel whose threads have own elements.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The result, first.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    out = outs[0]
    for stage in s.stages:
        op = stage.op
        if not isinstance(op, ComputeOp) or not stage.name.startswith(f"{NAME}."):
            continue
        if op.reduce_axis:
            share_elements(stage, op.axis, cfg["threads"])
        else:
            share_out(s, op.output(0), target)
    share_out(s, out, target)
    schedule_rest(s, out, target)


CUMSUM = DeviceSchedule(space, default_config, schedule, define=define_in_blocks)
