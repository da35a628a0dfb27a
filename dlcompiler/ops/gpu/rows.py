"""Schedule softmax and normalisations on a GPU: rows that threads reduce, perhaps several times.

The threads of a warp, or of a block, share a row. Each thread loads its part of it once, into
registers, from which all reductions and the result read. A reduction leaves its result in each of
the threads (`lowering.cross_thread`), by shuffles inside a warp.

*Before*, then *after*, of a layer norm whose rows of 1024 elements belong to warps::

    for i in range(64):                 for i in blockIdx.x(16):
        for k in range(1024):               for row in threadIdx.y(4):
            sum[i] += x[i, k]                   for lane in threadIdx.x(32):
        for k in range(1024):                       x.local[0:8, 0:4] = x[…]     vectors
            squares[i] += …                         sum = …        of x.local, across lanes
        for j in range(1024):                       squares = …    of x.local, across lanes
            out[i, j] = …                           out[…] = …     from x.local

An element ``j`` of a row has the place ``(j // (lanes*4), j // 4 % lanes, j % 4)`` in this layout:
the threads of a warp access neighbouring vectors. If rows go along another dimension than the last,
each thread along x has a row of its own, and the threads along y share it.

Rows that no registers can hold stay in shared memory, or are read again from the caches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.anchors import (
    behind,
    computed,
    host_of,
    is_at_own_place,
    needed,
    reads,
    reductions_of,
)
from dlcompiler.ops.gpu.injective import schedule_rest
from dlcompiler.ops.gpu.threads import (
    COLUMN_COUNTS,
    ROW_BLOCK,
    ROW_COUNTS,
    THREAD_COUNTS,
    Chip,
    Sharing,
    bind,
    block_filter,
    copy_together,
    fused,
    in_order,
    unroll_in_registers,
)
from dlcompiler.ops.helpers import reduced
from dlcompiler.ops.shapes import shape_of
from dlcompiler.ops.stages import Loop
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

_MOST_KEPT = 64
"""Registers of a thread for its part of a row [1]."""
_GOOD_KEPT = 32
"""Those of the default config: more leave room for few threads [1]."""
_OTHER_REGISTERS = 40
"""Registers of a thread for other purposes, about [1]."""


@dataclass(frozen=True)
class Rows:
    """The stages of an operator on rows."""

    host: Tensor
    """The result."""
    axis: int
    """The dimension that rows go along."""
    reductions: tuple[Tensor, ...]
    """Reductions of rows, producers first."""
    kept: tuple[Tensor, ...]
    """Tensors of the result's shape that reductions read."""
    small: tuple[Tensor, ...]
    """Tensors with an element for each row, made of reductions."""
    inlined: tuple[Tensor, ...]
    """What is read once only."""

    @property
    def is_last(self) -> bool:
        """Tell whether the elements of a row are neighbours in memory."""
        return self.axis == len(self.host.shape) - 1


def rows_of(s: Schedule, outs: Sequence[Tensor]) -> Rows:
    """Find the stages of an operator on rows in a fresh schedule of a fused group."""
    reductions = reductions_of(s)
    operand, (axis,) = reduced(reductions[-1])
    inputs = dict.fromkeys(tensor for each in reductions for tensor in each.op.input_tensors)
    kept = {t: None for t in inputs if t.static_shape == operand.static_shape and _is_kept(s, t)}

    def is_host(tensor: Tensor) -> bool:
        if tensor.static_shape != operand.static_shape or tensor in kept:
            return False
        own = [each.var for each in tensor.op.axis]
        row = [var for n, var in enumerate(own) if n != axis]
        loads = list(reads(tensor, kept))
        if not any(load.tensor in reductions for load in loads):
            return False
        return all(
            is_at_own_place(load, own if load.tensor in kept else row)
            for load in loads
            if load.tensor in kept or load.tensor in reductions
        )

    host = host_of(s, outs, is_host)
    inside = needed(host)
    others = [
        op.output(0)
        for op in computed(s)
        if not op.reduce_axis
        and op is not host.op
        and op.output(0) not in kept
        and op.output(0) in inside
    ]
    small = [t for t in others if t in behind(s, reductions) and len(t.shape) < len(host.shape)]
    inlined = [t for t in others if t not in small]
    return Rows(host, axis, tuple(reductions), tuple(kept), tuple(small), tuple(inlined))


def _is_kept(s: Schedule, tensor: Tensor) -> bool:
    """Tell whether a tensor is read, or computed, more than once."""
    return isinstance(tensor.op, PlaceholderOp) or len(_readers(s, tensor)) > 1


# -- the choices --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """The sizes of a workload."""

    extent: int
    """Elements of a row [1]."""
    inner: int
    """Neighbouring rows, if the elements of a row are not neighbours; else 1 [1]."""
    count: int
    """Number of rows [1]."""
    is_last: bool
    dtype: str
    name: str

    @staticmethod
    def of(workload: Workload) -> _Work:
        shape = shape_of(workload["shape"])
        axis = int(workload.as_dict().get("axis", len(shape) - 1))
        extent = max(shape[axis], 1)
        count = math.prod(shape[:axis]) * math.prod(shape[axis + 1 :])
        inner = math.prod(shape[axis + 1 :])
        return _Work(extent, inner, count, axis == len(shape) - 1, workload["dtype"], workload.op)

    @property
    def words(self) -> int:
        """Registers of an element [1]."""
        return max(dtypes.bytes_of(self.dtype) // 4, 1)

    @property
    def keeps(self) -> tuple[str, ...]:
        """What may stay between the reductions."""
        powers = ("inputs",) if self.name == "softmax" else ()
        return ("registers", *powers, *(("shared",) if self.is_last else ()), "memory")

    def kept(self, threads: int, vector: int) -> int:
        """Return the registers of a thread for its part of a row."""
        return -(-self.extent // (threads * vector)) * vector * self.words

    def fits(self, keep: str, threads: int, rows: int, vector: int, chip: Chip) -> bool:
        """Tell whether there is room for what a block of rows keeps."""
        if keep == "shared":
            parts = 2 * (threads * rows + chip.warp)  # of two reductions
            size = (rows * self.extent + parts) * dtypes.bytes_of(self.dtype)
            return size <= chip.shared_bytes
        kept = self.kept(threads, vector)
        copies = 2 if self.name == "softmax" and keep == "registers" else 1
        needed = threads * rows * (copies * kept + _OTHER_REGISTERS)
        return keep == "memory" or (kept <= _MOST_KEPT and needed <= chip.registers)


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     that share a row: neighbours in a warp, or warps of a block; along y if rows
                    do not go along the last dimension
    ``rows``        of a block
    ``vector``      neighbouring elements that a thread loads and stores at once
    ``keep``        what stays between the reductions of a row, and where: all that is read twice in
                    ``registers``, only ``inputs`` there, inputs in ``shared`` memory, or nothing:
                    then they are read again from ``memory`` or a cache
    ==============  ============================================================================
    """
    work, chip = _Work.of(workload), Chip.of(target)
    most = min(chip.most_threads, 2 * work.extent)
    lanes = chip.lanes(work.dtype) if work.is_last else 1
    vectors = tuple(n for n in (1, 2, 4) if n <= lanes and work.extent % n == 0)
    if work.is_last:
        rows = tuple(n for n in ROW_COUNTS if n == 1 or n <= work.count)
        threads = tuple(n for n in THREAD_COUNTS if n == 1 or n <= most)
    else:
        rows = tuple(n for n in COLUMN_COUNTS if n == COLUMN_COUNTS[0] or n < 2 * work.inner)
        threads = tuple(n for n in THREAD_COUNTS if n <= min(most, 64))
    knobs = [
        Knob("threads", threads),
        Knob("rows", rows),
        Knob("vector", vectors),
        Knob("keep", work.keeps),
    ]
    return Space(workload, knobs, [
        block_filter(chip, is_by_warps=work.is_last),
        Filter(
            "there is room for what a block keeps",
            lambda v: work.fits(v["keep"], v["threads"], v["rows"], v["vector"], chip),
        ),
        Filter(
            "vectors are loaded into registers, or copied to shared memory",
            lambda v: v["keep"] != "memory" or v["vector"] == 1,
        ),
    ])  # fmt: skip


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a formula chooses.

    Notes
    -----
    A warp shares a row, or as many of its threads as there are vectors; more threads, if each could
    not keep its part in 32 registers, or if there are too few rows to give each multiprocessor a
    warp. A block has 128 threads or more.
    """
    work, chip = _Work.of(workload), Chip.of(target)
    choices = space(workload, target)
    values = {knob.name: knob.values for knob in choices.knobs}
    vector = max(values["vector"])
    if not work.is_last:
        return choices.config(**_columns(work, chip, values))
    least = min(chip.warp, -(-work.extent // vector))
    threads = next(
        (n for n in values["threads"] if n >= least and work.kept(n, vector) <= _GOOD_KEPT),
        values["threads"][-1],
    )
    for more in values["threads"]:
        is_useful = threads < more and more * vector <= work.extent
        if is_useful and work.count * threads < chip.processors * chip.warp:
            threads = more
    rows = 1
    if threads <= chip.warp:
        fitting = [
            n for n in values["rows"] if n * threads <= ROW_BLOCK and n <= _share(work, chip)
        ]
        rows = max(fitting, default=1)
    keep = next(k for k in work.keeps if work.fits(k, threads, rows, vector, chip))
    vector = 1 if keep == "memory" else vector
    return choices.config(threads=threads, rows=rows, vector=vector, keep=keep)


def _share(work: _Work, chip: Chip) -> int:
    """Return how many rows a block may have, so that there is one for each multiprocessor."""
    return max(work.count // chip.processors, 1)


def _columns(work: _Work, chip: Chip, values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the config of rows whose elements are not neighbours."""
    rows = max(n for n in values["rows"] if n <= 32)
    threads = next(
        (n for n in values["threads"] if work.kept(n, 1) <= _GOOD_KEPT),
        values["threads"][-1],
    )
    for more in values["threads"]:
        blocks = max(work.count // rows, 1)
        if more > threads and rows * more <= 512 and 2 * more <= work.extent:
            threads = more if blocks * rows * threads < chip.processors * 512 else threads
    threads = max(n for n in values["threads"] if n <= threads and n * rows <= chip.most_threads)
    keep = next(k for k in work.keeps if work.fits(k, threads, rows, 1, chip))
    return {"threads": threads, "rows": rows, "vector": 1, "keep": keep}


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule an operator on rows on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The results of a fused group.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    rows = rows_of(s, outs)
    for tensor in rows.inlined:
        s[tensor].compute_inline()
    _Rows(s, rows, cfg, Chip.of(target).warp).schedule()
    schedule_rest(s, rows.host, target)


@dataclass
class _Rows:
    """Schedules the stages of an operator on rows."""

    s: Schedule
    rows: Rows
    cfg: Config
    warp: int

    def __post_init__(self) -> None:
        threads, is_last = self.cfg["threads"], self.rows.is_last
        self.is_block = is_last and threads > self.warp
        """Whether several warps share a row."""
        self.in_registers = self.cfg["keep"] in ("registers", "inputs")
        tag = "threadIdx.x" if is_last else "threadIdx.y"
        shares = {tag: self.warp, "threadIdx.y": threads // self.warp}
        self.sharing = Sharing(
            shares if self.is_block else {tag: threads},
            self.cfg["vector"] if self.in_registers else 1,
        )
        """How threads share the elements of a row."""

    def schedule(self) -> None:
        """Bind the result, and compute all other stages in its threads."""
        s, rows, host = self.s, self.rows, self.s[self.rows.host]
        copies, made = self.kept()
        for tensor in (*copies, *made) if self.in_registers else ():
            s[tensor].transform_layout(self.layout)
        block, leaf, loops = self.bind_host(host)
        for tensor in (*copies, *made, *rows.reductions, *rows.small):
            s[tensor].compute_at(host, leaf)
        for tensor in copies:
            if self.in_registers:
                s[tensor].vectorize(s[tensor].op.axis[-1])
            else:
                s[tensor].compute_at(host, block)
                copy_together(s[tensor], self.threads, vector=self.cfg["vector"])
        for tensor in rows.reductions:
            step, shares, lane = self.sharing.split(s[tensor], s[tensor].op.reduce_axis[0])
            bind(s[tensor], shares)
            loops += [(tensor, step), (tensor, lane)]
        if self.in_registers:
            loops += [(t, axis) for t in copies for axis in s[t].op.axis[:-1]]
            loops += [(t, axis) for t in made for axis in s[t].op.axis]
            unroll_in_registers(s, rows.host, block, loops)

    def kept(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return copies of the inputs, and computed tensors, that stay between reductions."""
        s, keep = self.s, self.cfg["keep"]
        inputs = [t for t in self.rows.kept if isinstance(t.op, PlaceholderOp)]
        made = [t for t in self.rows.kept if t not in inputs]
        copies = []
        if keep != "memory":
            scope = "local" if self.in_registers else "shared"
            copies = [s.cache_read(t, scope, _readers(s, t)) for t in inputs]
        if keep == "registers":
            return copies, made
        for tensor in made:
            s[tensor].compute_inline()
        return copies, []

    @property
    def threads(self) -> dict[str, Any]:
        """The axes of a block's threads, x last."""
        found = dict(self.sharing.threads)
        if not self.is_block:
            found["threadIdx.y" if self.rows.is_last else "threadIdx.x"] = self.cfg["rows"]
        return {tag: found[tag] for tag in sorted(found, reverse=True)}

    def layout(self, *indices: Any) -> list[Any]:
        """Return the place of an element: in which step, in which thread, in which lane."""
        n = self.rows.axis
        return [*indices[:n], *self.sharing.place(indices[n]), *indices[n + 1 :]]

    def bind_host(self, host: Stage) -> tuple[Axis, Axis, list[Loop]]:
        """Bind the result.

        Returns
        -------
        tuple
            The loop of a block, the innermost loop of its threads, and the loops of a thread.
        """
        axes, n = list(host.op.axis), self.rows.axis
        before, after = axes[:n], axes[n + 1 :]
        step, bound, lane = self.sharing.split(host, axes[n])
        if not self.is_block and (before or after):
            side, row = host.split(fused(host, after or before), self.cfg["rows"])
            before = [*before, side] if after else [side]
            bound["threadIdx.x" if after else "threadIdx.y"] = row
        threads = in_order(bound)
        host.reorder(*before, *threads, step, lane)
        block = fused(host, before) if before else host.fuse()
        bind(host, {"blockIdx.x": block, **bound})
        if self.rows.is_last:
            host.vectorize(lane)
        return block, threads[-1], [(self.rows.host, step)]


def _readers(s: Schedule, tensor: Tensor) -> list[Tensor]:
    """Return the stages that read a tensor."""
    return [op.output(0) for op in computed(s) if tensor in op.input_tensors]


ROWS = DeviceSchedule(space, default_config, schedule)
