"""Schedule normalisations of groups of channels on a GPU: the threads of a block share a group.

*After*, with 256 threads::

    for i.g in blockIdx.x(n * groups):
        for thread in threadIdx.x(256):
            sum = …                          across threads, of neighbours in memory
            squares = …                      across threads
            for step in range(…):
                out[…] = (data[…] - mean) * (root * scale[c]) + shift[c]

A group is read three times; all reads but the first hit a cache, if the group fits there.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.injective import schedule_rest
from dlcompiler.ops.gpu.threads import THREAD_COUNTS, Chip, bind, fused
from dlcompiler.ops.group_norms import inside_group
from dlcompiler.ops.stages import stages_by_role
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_THREADS = 256
"""Threads of a group in the default config, if it has so many elements [1]."""


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     of a block, which share a group
    ==============  ============================================================================
    """
    most = min(Chip.of(target).most_threads, max(inside_group(workload)[0], 1))
    return Space(workload, [Knob("threads", tuple(n for n in THREAD_COUNTS if n <= most))])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with 256 threads, or as many as a group has elements."""
    choices = space(workload, target)
    (knob,) = choices.knobs
    most = min(_THREADS, max(inside_group(workload)[0], 1))
    return choices.config(threads=max(n for n in knob.values if n <= most))


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a normalisation of groups on a GPU.

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
    stages = stages_by_role(s, "group_norm")
    total, squares = stages["sum"], stages["squares"]
    images, channels, *inside = out.op.axis
    each = -(-out.static_shape[1] // max(total.static_shape[1], 1))
    group, channel = s[out].split(channels, max(each, 1))
    block = s[out].fuse(images, group)
    step, thread = s[out].split(fused(s[out], [channel, *inside]), cfg["threads"])
    s[out].reorder(thread, step)
    bind(s[out], {"blockIdx.x": block, "threadIdx.x": thread})
    for tensor in (total, stages["mean"], squares, stages["inverse_deviation"]):
        s[tensor].compute_at(s[out], thread)
    for tensor in (total, squares):
        _, lane = s[tensor].split(fused(s[tensor], s[tensor].op.reduce_axis), cfg["threads"])
        bind(s[tensor], {"threadIdx.x": lane})
    schedule_rest(s, out, target)


GROUP_NORM = DeviceSchedule(space, default_config, schedule)
