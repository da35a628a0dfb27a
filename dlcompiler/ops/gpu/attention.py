"""Schedule attention on a GPU: the threads of a block compute the result of one query.

*After*, with scores in shared memory::

    for b.h.i in blockIdx.x(heads * rows):
        for thread in threadIdx.x(128):
            products.shared = …             each thread multiplies the query by keys of its own
            largest.shared = …              across threads
            powers.shared = …
            total.shared = …                across threads
            for step in range(…):
                sums.local = …              each thread adds up columns of its own
                out[…] = sums / total

If the scores of a query do not fit in shared memory, each stage is a kernel, and they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.attention_workload import NAME
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.injective import schedule_rest, share_out
from dlcompiler.ops.gpu.threads import Chip, bind, copy_together, fused, share_elements
from dlcompiler.ops.stages import stages_by_role
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_THREADS = (32, 64, 128, 256)


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     of a block
    ``keep``        where scores are: in ``shared`` memory, if those of a query fit there, or in
                    ``memory``
    ==============  ============================================================================
    """
    chip = Chip.of(target)
    p: Mapping[str, Any] = workload.as_dict()
    threads = tuple(n for n in _THREADS if n <= chip.most_threads)
    size = (2 * p["length"] + 4 * threads[-1]) * dtypes.bytes_of(p["dtype"])
    keeps = ("shared", "memory") if 0 < size <= chip.shared_bytes else ("memory",)
    return Space(workload, [Knob("threads", threads), Knob("keep", keeps)])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with 128 threads and, if they fit, scores in shared memory."""
    choices = space(workload, target)
    threads, keep = (knob.values for knob in choices.knobs)
    return choices.config(threads=max(n for n in threads if n <= 128), keep=keep[0])


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule attention on a GPU.

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
    out, stages, threads = outs[0], stages_by_role(s, NAME), cfg["threads"]
    s[stages["scores"]].compute_inline()
    if cfg["keep"] == "memory":
        for name in ("products", "largest", "total", "sums"):
            share_elements(s[stages[name]], s[stages[name]].op.axis, threads)
        share_out(s, stages["powers"], target)
        share_out(s, out, target)
        schedule_rest(s, out, target)
        return
    *rows, column = out.op.axis
    block = fused(s[out], rows)
    step, thread = s[out].split(column, threads)
    s[out].reorder(thread, step)
    bind(s[out], {"blockIdx.x": block, "threadIdx.x": thread})
    for name in ("products", "powers"):
        s[stages[name]].set_scope("shared")
        s[stages[name]].compute_at(s[out], block)
        axes = s[stages[name]].op.axis
        copy_together(s[stages[name]], {"threadIdx.x": threads}, axes=axes)
    for name in ("largest", "total"):
        stage = s[stages[name]]
        stage.set_scope("shared")
        stage.compute_at(s[out], block)
        _, lane = stage.split(stage.op.reduce_axis[0], threads)
        bind(stage, {"threadIdx.x": lane})
    s[stages["sums"]].set_scope("local")
    s[stages["sums"]].compute_at(s[out], step)
    schedule_rest(s, out, target)


ATTENTION = DeviceSchedule(space, default_config, schedule)
