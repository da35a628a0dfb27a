"""Schedule reductions on a GPU: in a thread, a warp, a block, or in many blocks and then in one.

If neighbours in memory are reduced together (*rows*), the threads of a warp or a block share a
result; each loads vectors of its operand. Otherwise (*columns*) the threads along x have results of
their own, which are neighbours, and the threads along y share each of them.

*Before*, then *after*, of sums of rows by warps::

    for i in range(1000):               for i in blockIdx.x(250):
        B[i] = 0.0                          for row in threadIdx.y(4):
        for k in range(1024):                   for lane in threadIdx.x(32):
            B[i] += A[i, k]                         for step in range(8):
                                                        A.local[0:4] = A[…]      a vector
                                                        part += A.local[…]
                                                    sums[row] = …      across lanes
                                                if lane == 0:
                                                    B[i] = sums[row]

If there are too few results to occupy all multiprocessors, blocks reduce parts of each (`rfactor`),
and a second kernel combines the parts. A position of an extreme is a second reduction of the same
elements, after that to the extreme; a thread keeps them in registers between the two if they fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.gpu.anchors import (
    computed,
    host_of,
    is_at_own_place,
    needed,
    reads,
    reductions_of,
)
from dlcompiler.ops.gpu.injective import schedule_elements, schedule_rest
from dlcompiler.ops.gpu.threads import (
    COLUMN_COUNTS,
    ROW_BLOCK,
    ROW_COUNTS,
    THREAD_COUNTS,
    Chip,
    Sharing,
    bind,
    block_filter,
    fused,
    in_order,
    unroll_in_registers,
)
from dlcompiler.ops.helpers import reduced
from dlcompiler.ops.reduction import axes_of
from dlcompiler.ops.shapes import shape_of
from dlcompiler.ops.stages import Loop
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

_STEPS = (1, 2, 4, 8)
_WAVES = (1, 2, 4, 8, 16)
"""Blocks for each multiprocessor, if several share a result [1]."""
_MOST_KEPT = 64
"""Elements that a thread keeps between two reductions of them, at most [1]."""
_LAUNCH_BYTES = 128 * 1024
"""What a multiprocessor loads while a kernel is launched: about 4,000 clocks of 32 bytes [byte]."""


@dataclass(frozen=True)
class Chain:
    """Reductions of the same elements, each of which may need the results of those before."""

    host: Tensor
    """What is computed from the last one, at its own place."""
    reductions: tuple[Tensor, ...]
    operand: Tensor
    """What they read."""
    gone: tuple[int, ...]
    """The dimensions of the operand that they reduce."""

    extent: int
    """Elements that are reduced to one in the kernel [1]."""
    is_computed_here: bool
    """Whether the kernel computes the operand, instead of reading it from memory or inlining it."""

    @staticmethod
    def of(host: Tensor, reductions: Sequence[Tensor]) -> Chain:
        """Return the chain of reductions that have not been changed yet."""
        operand, gone = reduced(reductions[0])
        extent = math.prod(operand.static_shape[n] for n in gone)
        is_computed_here = not isinstance(operand.op, PlaceholderOp)
        return Chain(host, tuple(reductions), operand, gone, extent, is_computed_here)

    @property
    def is_rows(self) -> bool:
        """Tell whether neighbours in memory are reduced together."""
        return len(self.operand.shape) - 1 in self.gone

    @property
    def inner(self) -> int:
        """Number of last dimensions of the result that are neighbours in the operand, too [1]."""
        last = len(self.operand.shape) - 1
        return next((n for n in range(last + 1) if last - n in self.gone), last + 1)


def chain_of(s: Schedule, outs: Sequence[Tensor]) -> Chain | None:
    """Find the reductions of a fused group in a fresh schedule; None if there are none."""
    reductions = reductions_of(s)
    if not reductions:
        return None
    last = reductions[-1]

    def is_host(tensor: Tensor) -> bool:
        own = [axis.var for axis in tensor.op.axis]
        loads = [load for load in reads(tensor, ()) if load.tensor is last]
        return (
            bool(loads)
            and tensor.static_shape == last.static_shape
            and all(is_at_own_place(load, own) for load in loads)
        )

    ends = {out.op for out in outs}
    found = [op.output(0) for op in computed(s) if not op.reduce_axis and is_host(op.output(0))]
    host = last
    if found and last.op not in ends:
        host = host_of(s, outs, is_host)
    return Chain.of(host, reductions)


# -- the choices --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """The sizes of a reduction."""

    extent: int
    """Elements that are reduced to one [1]."""
    along: int
    """Those of them that are neighbours in memory [1]."""
    count: int
    """Number of results [1]."""
    inner: int
    """Neighbouring results, if these are not reduced together [1]."""
    is_rows: bool
    times: int
    """How often the elements are read [1]."""
    dtype: str

    @staticmethod
    def of(workload: Workload) -> _Work | None:
        shape = shape_of(workload["shape"])
        gone = axes_of(workload["axes"], len(shape))
        if not gone:
            return None
        last = len(shape) - 1
        is_rows = last in gone
        run = next((n for n in range(last + 1) if (last - n in gone) != is_rows), last + 1)
        edge = math.prod(shape[last + 1 - run :])
        extent = math.prod(shape[n] for n in gone)
        count = math.prod(n for d, n in enumerate(shape) if d not in gone)
        times = 2 if str(workload["function"]).startswith("arg") else 1
        return _Work(
            extent, edge if is_rows else 1, count, 1 if is_rows else edge, is_rows, times,
            workload["dtype"],
        )  # fmt: skip

    def kept(self, threads: int, vector: int, blocks: int) -> int:
        """Return how many elements a thread reduces."""
        return -(-self.extent // (blocks * threads * vector)) * vector


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``threads``     that share a result: neighbours in a warp, or warps of a block; along y if
                    neighbours in memory belong to different results
    ``rows``        results of a block
    ``vector``      neighbouring elements that a thread loads at once
    ``steps``       such loads of a thread before it reduces them
    ``blocks``      that share a result, in a kernel before the last
    ==============  ============================================================================
    """
    work, chip = _Work.of(workload), Chip.of(target)
    if work is None:
        return Space(workload, [Knob("threads", (256,))])
    lanes = chip.lanes(work.dtype) if work.is_rows else 1
    sides = ROW_COUNTS if work.is_rows else COLUMN_COUNTS
    most = work.count if work.is_rows else work.inner
    knobs = [
        Knob("threads", tuple(n for n in THREAD_COUNTS if n == 1 or n < 2 * work.extent)),
        Knob("rows", tuple(n for n in sides if n == sides[0] or n < 2 * most)),
        Knob("vector", tuple(n for n in (1, 2, 4) if n <= lanes and work.along % n == 0)),
        Knob("steps", _STEPS),
        Knob("blocks", tuple(_useful_blocks(work, chip))),
    ]
    return Space(workload, knobs, [
        block_filter(chip, is_by_warps=work.is_rows),
        Filter(
            "each thread has something to reduce",
            lambda v: (
                v["threads"] * v["vector"] * v["blocks"] < 2 * max(work.extent, 1)
                and (v["steps"] == 1 or v["steps"] <= work.kept(v["threads"], 1, v["blocks"]))
            ),
        ),
    ])  # fmt: skip


def _useful_blocks(work: _Work, chip: Chip) -> list[int]:
    """Return how many blocks may share a result: one, or as many as occupy all multiprocessors."""
    results = max(work.count // (1 if work.is_rows else COLUMN_COUNTS[2]), 1)
    found = {each * chip.processors // results for each in _WAVES}
    return [1, *sorted(n for n in found if n > 1 and 256 * n <= work.extent)]


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config that a formula chooses.

    Notes
    -----
    A warp shares a result of rows, or as many of its threads as there are vectors. More threads do
    until each has at most eight loads, or four if there are fewer results than multiprocessors.
    Several blocks share a result only if the multiprocessors that would be busy have more to load
    than they can while a second kernel is launched.
    """
    work, chip = _Work.of(workload), Chip.of(target)
    choices = space(workload, target)
    if work is None:
        return choices.config(threads=256)
    values = {knob.name: knob.values for knob in choices.knobs}
    vector = max(n for n in values["vector"] if n <= max(work.extent, 1))
    busy = max(min(work.count // (1 if work.is_rows else 32), chip.processors), 1)
    size = work.extent * work.count * dtypes.bytes_of(work.dtype)
    is_divided = size > busy * _LAUNCH_BYTES and len(values["blocks"]) > 1
    most = min(chip.most_threads, 1024 if busy == 1 and not is_divided else 256)
    threads = _threads(work, chip, values["threads"], vector, most=most)
    blocks = 1
    if is_divided:
        fitting = [n for n in values["blocks"] if n * threads * vector < 2 * max(work.extent, 1)]
        enough = chip.processors * chip.threads_at_once
        blocks = next((n for n in fitting if n * work.count * threads >= enough), fitting[-1])
    if work.is_rows:
        side = max(work.count * blocks // chip.processors, 1) if threads <= chip.warp else 1
        rows = max(n for n in values["rows"] if n == 1 or (n * threads <= ROW_BLOCK and n <= side))
    else:
        rows = max((n for n in values["rows"] if n <= chip.warp), default=min(values["rows"]))
    ahead = max(16 // (vector * dtypes.bytes_of(work.dtype)), 1)
    kept = work.kept(threads, 1, blocks)
    steps = max(n for n in values["steps"] if n == 1 or (n <= ahead and n <= kept))
    return choices.config(threads=threads, rows=rows, vector=vector, steps=steps, blocks=blocks)


def _threads(work: _Work, chip: Chip, values: Sequence[int], vector: int, *, most: int) -> int:
    """Return how many threads share a result."""
    if not work.is_rows:
        enough = chip.processors * chip.threads_at_once // 2
        fitting = [n for n in values if n <= 32 and 4 * n <= max(work.extent, 4)]
        return next((n for n in fitting if n * work.count >= enough), fitting[-1])
    least = min(chip.warp, -(-work.extent // vector))
    found = next((n for n in values if n >= least), values[-1])
    for more in values:
        if found < more <= most and work.kept(found, vector, 1) > 8 * vector:
            found = more
    return found if found * vector < 2 * max(work.extent, 1) else 1


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a reduction on a GPU.

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
    chip, chain = Chip.of(target), chain_of(s, outs)
    if chain is None:
        inline_injective(s)
        for out in outs:
            schedule_elements(s, out, {"threads": cfg["threads"], "vector": 1, "steps": 1})
        return
    for op in computed(s):
        tensor = op.output(0)
        if tensor is chain.operand or op.reduce_axis or tensor is chain.host:
            continue
        if not s[tensor].state.is_output and tensor in needed(chain.host):
            s[tensor].compute_inline()
    if cfg["blocks"] == 1:
        _reduce(s, _with_host(s, chain), cfg.values, chip)
    else:
        _reduce_in_parts(s, chain, cfg.values, chip)
    schedule_rest(s, chain.host, target)


def _with_host(s: Schedule, chain: Chain) -> Chain:
    """Return a chain whose last reduction is not the host: that copies it."""
    *before, last = chain.reductions
    if chain.host is not last:
        return chain
    made = s.cache_write(last, "local")
    return replace(chain, reductions=(*before, made))


def _reduce_in_parts(s: Schedule, chain: Chain, cfg: Mapping[str, Any], chip: Chip) -> None:
    """Schedule two kernels for each reduction: blocks reduce parts, then one combines them."""
    if chain.is_computed_here:
        s[chain.operand].compute_inline()
    step = cfg["threads"] * cfg["vector"]
    steps = -(-chain.extent // (step * cfg["blocks"]))
    for tensor in chain.reductions:
        stage = s[tensor]
        part, _ = stage.split(fused(stage, stage.op.reduce_axis), steps * step)
        parts = s.rfactor(tensor, part)
        own = replace(
            chain,
            host=parts,
            reductions=(parts,),
            extent=steps * step,
            is_computed_here=False,
        )
        _reduce(s, _with_host(s, own), cfg, chip)
        host = chain.host if tensor is chain.reductions[-1] else tensor
        combined = Chain.of(host, [s[tensor].op.output(0)])  # of what `rfactor` has rewritten
        last = replace(combined, reductions=(tensor,), is_computed_here=False)
        _reduce(s, _with_host(s, last), _last_config(last), chip)


def _last_config(chain: Chain) -> dict[str, int]:
    """Return the config of the kernel that combines the parts that blocks have reduced."""
    rows = 1 if chain.is_rows else 16
    threads = min(1 << (max(chain.extent, 1) - 1).bit_length(), 256 // rows)
    return {"threads": threads, "rows": rows, "vector": 1, "steps": 1}


def _reduce(s: Schedule, chain: Chain, cfg: Mapping[str, Any], chip: Chip) -> None:
    """Schedule a chain of reductions in one kernel, without any of its elements read twice."""
    if cfg["threads"] == 1 or chain.extent == 0:
        _reduce_alone(s, chain, cfg)
    else:
        _Shared(s, chain, cfg, chip.warp).schedule()


def _reduce_alone(s: Schedule, chain: Chain, cfg: Mapping[str, Any]) -> None:
    """Schedule reductions by one thread each."""
    host = s[chain.host]
    if chain.is_computed_here:
        s[chain.operand].compute_inline()
    block, thread = host.split(
        fused(host, host.op.axis) if host.op.axis else host.fuse(), cfg["rows"]
    )
    bind(host, {"blockIdx.x": block, "threadIdx.x": thread})
    for tensor in chain.reductions:
        s[tensor].set_scope("local")
        s[tensor].compute_at(host, thread)


@dataclass
class _Shared:
    """Schedules reductions that threads share."""

    s: Schedule
    chain: Chain
    cfg: Mapping[str, Any]
    warp: int

    def __post_init__(self) -> None:
        threads, is_rows = self.cfg["threads"], self.chain.is_rows
        self.is_block = is_rows and threads > self.warp
        """Whether several warps share a result."""
        tag = "threadIdx.x" if is_rows else "threadIdx.y"
        self.row_tag = "threadIdx.y" if is_rows else "threadIdx.x"
        """The axis of threads along which a block has several results."""
        shares = {tag: self.warp, self.row_tag: threads // self.warp}
        self.sharing = Sharing(shares if self.is_block else {tag: threads}, self.cfg["vector"])
        """How threads share the elements of a result."""
        kept = -(-self.chain.extent // (threads * self.cfg["vector"])) * self.cfg["vector"]
        *before, _ = self.chain.reductions
        found = {load.tensor for load in reads(self.chain.host, ())}
        self.read_by_host = [tensor for tensor in before if tensor in found]
        """Reductions before the last one whose results the host reads, too."""
        is_chain = len(self.chain.reductions) > 1 and not self.read_by_host
        self.is_kept = is_chain and kept <= _MOST_KEPT
        """Whether a thread keeps its elements between the reductions."""

    def schedule(self) -> None:
        """Schedule the kernel."""
        s, chain = self.s, self.chain
        *before, last = chain.reductions
        copies = self.copies()
        for tensor in chain.reductions:
            if len(tensor.shape) > 1:
                s[tensor].transform_layout(self.flat)
        block = self.bind_host(s[chain.host])
        for tensor in (*self.read_by_host, last):
            s[tensor].set_scope("shared")
            s[tensor].compute_at(s[chain.host], block)
        thread, groups, loops = self.bind_reduction(last, is_last=True)
        at = {last: groups}
        for tensor in before:
            is_shared = tensor in self.read_by_host
            if not is_shared:
                s[tensor].set_scope("local")
                s[tensor].compute_at(s[last], thread)
            _, at[tensor], more = self.bind_reduction(tensor, is_last=is_shared)
            loops += more
        for copy, reader in copies:
            s[copy].set_scope("local")
            s[copy].compute_at(s[last if self.is_kept else reader],
                               thread if self.is_kept else at[reader])  # fmt: skip
            s[copy].vectorize(s[copy].op.axis[-1])
            loops += [(copy, axis) for axis in s[copy].op.axis[:-1]]
        if copies:
            loops += list(at.items()) if self.is_kept else []
            unroll_in_registers(s, chain.host, block, loops)

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        """Make copies of the operand for a thread; return each with a reduction that reads it."""
        s, operand, readers = self.s, self.chain.operand, list(self.chain.reductions)
        if self.chain.is_computed_here:
            if len(readers) > 1 and not self.is_kept:
                s[operand].compute_inline()
                return []
            found = [(operand, readers[-1])]
        elif self.is_kept:
            found = [(s.cache_read(operand, "local", readers), readers[-1])]
        else:
            found = [(s.cache_read(operand, "local", [each]), each) for each in readers]
        for copy, _ in found:
            if len(self.chain.gone) > 1 or not self.chain.is_rows:
                s[copy].transform_layout(self.gathered)
            s[copy].transform_layout(lambda *i: [*i[:-1], *self.sharing.place(i[-1])])
        return found

    def gathered(self, *indices: Any) -> list[Any]:
        """Return the indices of an element with those that are reduced as one, the last."""
        gone, extents = self.chain.gone, self.chain.operand.static_shape
        total = indices[gone[0]]
        for n in gone[1:]:
            total = total * extents[n] + indices[n]
        return [*(index for n, index in enumerate(indices) if n not in gone), total]

    def flat(self, *indices: Any) -> list[Any]:
        """Return the indices of a result: as one, or as one for those that are neighbours."""
        extents, count = self.chain.host.static_shape, len(indices)
        first = 0 if self.chain.is_rows else count - self.chain.inner
        total = indices[first]
        for n in range(first + 1, count):
            total = total * extents[n] + indices[n]
        return [*indices[:first], total]

    def bind_host(self, host: Stage) -> Axis:
        """Bind the loops over results; return the loop of a block."""
        axes = list(host.op.axis)
        if not axes:
            block = host.fuse()
            bind(host, {"blockIdx.x": block})
            return block
        outer = [] if self.chain.is_rows else axes[: len(axes) - self.chain.inner]
        block, row = host.split(fused(host, axes[len(outer) :]), self.cfg["rows"])
        host.reorder(*outer, block, row)
        block = fused(host, [*outer, block])
        bind(host, {"blockIdx.x": block, **({} if self.is_block else {self.row_tag: row})})
        return block

    def bind_reduction(self, tensor: Tensor, *, is_last: bool) -> tuple[Axis, Axis, list[Loop]]:
        """Bind a reduction.

        Returns
        -------
        tuple
            The innermost loop of threads, the loop over groups of loads, and the loops inside it.
        """
        stage = self.s[tensor]
        axis, bound, lane = self.sharing.split(stage, fused(stage, stage.op.reduce_axis))
        groups, step = stage.split(axis, self.cfg["steps"])
        threads = in_order(bound)
        stage.reorder(*stage.op.axis, *threads, groups, step, lane)
        if is_last and not self.is_block and stage.op.axis:
            bound[self.row_tag] = stage.op.axis[-1]
        bind(stage, bound)
        return threads[-1], groups, [(tensor, step), (tensor, lane)]


REDUCTION = DeviceSchedule(space, default_config, schedule)
