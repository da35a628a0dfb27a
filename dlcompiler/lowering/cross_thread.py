"""Reductions that the threads of a block share: each reduces a part, then they combine the parts.

A sum over ``k`` whose inner loop of 4 iterations is bound to ``threadIdx.x`` becomes::

    for k.inner in threadIdx.x(4):
        C.part[0] = 0.0                             each thread's part of the sum
        for k.outer in range(…):
            C.part[0] += A[i, k.outer*4 + k.inner]
        C.parts[k.inner] = C.part[0]                in shared memory
        barrier
        if k.inner < 2:                             a tree: half of the threads each time
            C.parts[k.inner] += C.parts[k.inner + 2]
        barrier
        if k.inner < 1:
            C.parts[k.inner] += C.parts[k.inner + 1]
        barrier
        if k.inner == 0:
            C[i] = C.parts[0]

**Source:** the tree is that of M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlcompiler.ir import (
    PART,
    Barrier,
    Buffer,
    Expr,
    If,
    Load,
    Reduce,
    Reducer,
    Stmt,
    Var,
    binary,
    combine,
    compare,
    index_const,
    is_in_block,
    logical,
    seq,
)
from dlcompiler.lowering.loop_builder import LoopBuilder
from dlcompiler.lowering.pieces import (
    Assigner,
    Inside,
    PendingAllocation,
    Place,
    accumulate,
    loop_vars_of,
    under,
    with_allocations,
)
from dlcompiler.schedule import StageBounds, StageState
from dlcompiler.schedule.inference.thread_loops import (
    nest_order,
    reduced_by_threads,
    threads_around,
)


@dataclass(frozen=True)
class Parts:
    """The partial results of a reduction: in each thread, and in shared memory."""

    own: tuple[Buffer, ...]
    """A buffer of one element for each result, private to a thread."""
    left: tuple[Buffer, ...]
    """A buffer in shared memory for each result, with one element per thread."""
    row: tuple[Expr, ...]
    """Indices along the other thread axes; threads with equal indices combine their parts."""
    lane: Expr
    """Number of the thread among the threads that combine their parts."""
    count: int
    """Number of threads that combine their parts."""

    def places(self) -> list[Place]:
        """Return the element, private to each thread, that holds its part of each result."""
        return [(buffer, (index_const(0),)) for buffer in self.own]

    def slots(self, lane: Expr) -> list[Place]:
        """Return the element in shared memory where one thread stores its part of each result."""
        return [(buffer, (*self.row, lane)) for buffer in self.left]

    def combined(self, reducer: Reducer, assign: Assigner) -> Stmt:
        """Return the stores of the parts to shared memory and the tree that combines them."""
        own = (Load(*place) for place in self.places())
        steps: list[Stmt] = [*map(assign, self.slots(self.lane), own), Barrier()]
        for half in _halves(self.count):
            further = binary("add", self.lane, index_const(half))
            values = [Load(*slot) for slot in self.slots(further)]
            is_one = [compare("lt", self.lane, index_const(half))]
            if 2 * half > self.count:
                is_one.append(compare("lt", further, index_const(self.count)))
            step = accumulate(reducer, self.slots(self.lane), values, assign)
            steps += [If(logical("and", *is_one), step), Barrier()]
        return seq(steps)


def _halves(count: int) -> Iterator[int]:
    """Yield the number of threads that add two parts in each step: 4, 2, 1 for 8 parts."""
    half = 2 ** (count - 1).bit_length() // 2
    while half >= 1:
        yield half
        half //= 2


def parts_of(
    stage: StageState,
    bounds: StageBounds,
    around: Sequence[tuple[Var, int]],
    names: Sequence[str],
) -> Parts:
    """Return the buffers that hold the partial results of a reduction.

    Parameters
    ----------
    stage, bounds
        The reduction.
    around
        Variables and extents of the other threads of the block.
    names
        Names of the buffers of its results.
    """
    count: int = 1
    lane: Expr = index_const(0)
    for leaf in reduced_by_threads(stage):
        extent = bounds.extents[leaf]
        assert isinstance(extent, int)  # in a state without problems
        lane = binary("add", binary("mul", lane, extent), bounds.loop_vars[leaf])
        count *= extent
    pairs = list(zip(names, stage.tensors, strict=True))
    shape = (*(extent for _, extent in around), count)
    return Parts(
        tuple(Buffer(f"{name}.part", (1,), tensor.dtype, "local") for name, tensor in pairs),
        tuple(Buffer(f"{name}.parts", shape, tensor.dtype, "shared") for name, tensor in pairs),
        tuple(var for var, _ in around),
        lane,
        count,
    )


def nest_across_threads(
    builder: LoopBuilder,
    stage: StageState,
    bounds: StageBounds,
    guards: Sequence[Expr],
) -> Stmt:
    """Return the loops of a reduction that threads share.

    All threads must reach its barriers, so the guards are inside the loops. The threads' loops are
    outside the other reduction loops: each thread keeps its partial result while these run.

    Parameters
    ----------
    builder, stage
        The reduction.
    bounds
        Its bounds, without guards around the loops.
    guards
        Conditions of its elements, which are tested at the stores.
    """
    head = builder.bodies[stage.name][0]
    assert isinstance(head, Reduce)
    values = {axis.var: value for axis, value in bounds.values.items()}
    targets = [builder.target(stage, bounds, tensor) for tensor in stage.tensors]
    threads = reduced_by_threads(stage)
    order = nest_order(stage)
    first = next(n for n, leaf in enumerate(order) if leaf is threads[0])
    outer, serial = order[:first], order[first + len(threads) :]
    names = [builder.buffers[tensor].name for tensor in stage.tensors]
    parts = parts_of(stage, bounds, _threads_beside(builder, stage), names)
    builder.shared += (PendingAllocation(buffer, stage.name) for buffer in parts.left)
    assign = Assigner(builder.origin(stage, PART, (*outer, *threads)))
    start = [builder.expr(expr, values) for expr in head.start]
    identity = head.reducer.identity_of(head.values)
    fresh = seq(map(assign, parts.places(), identity))
    update = under(guards, builder.update(stage, parts.places(), head, values))
    most = builder.loops(stage, bounds, serial, (*outer, *threads), Inside(None, update))
    reduced = {bounds.loop_vars[leaf] for leaf in (*threads, *serial)}
    needed = (guard for guard in guards if not loop_vars_of(guard) & reduced)
    result: Sequence[Expr] = [Load(*slot) for slot in parts.slots(index_const(0))]
    if head.init:
        result = combine(head.reducer, start, result)
    places = zip((builder.buffers[tensor] for tensor in stage.tensors), targets, strict=True)
    store = under((*_storing(builder, stage), *needed), seq(map(assign, places, result)))
    body = seq((fresh, most, parts.combined(head.reducer, assign), store))
    own = (PendingAllocation(buffer, stage.name) for buffer in parts.own)
    body = with_allocations(own, body)
    body = builder.loops(stage, bounds, threads, outer, Inside(None, body))
    return builder.loops(stage, bounds, outer, (), Inside(None, body))


def _threads_beside(builder: LoopBuilder, stage: StageState) -> list[tuple[Var, int]]:
    """Return variables and extents of a block's thread loops that do not share the reduction."""
    bounds = builder.bounds.stages[stage.name]
    found = {
        builder.bounds.stages[host.name].loop_vars[leaf]: builder.bounds.stages[host.name].extents[
            leaf
        ]
        for host, leaf in threads_around(builder.state, stage).values()
        if is_in_block(host.kind(leaf))
    }
    for leaf in stage.leaves:
        if leaf.kind == "data" and is_in_block(stage.kind(leaf)):
            found.setdefault(bounds.loop_vars[leaf], bounds.extents[leaf])
    return [(var, extent) for var, extent in found.items() if isinstance(extent, int)]


def _storing(builder: LoopBuilder, stage: StageState) -> Iterator[Expr]:
    """Yield the conditions under which a thread stores the result; by default, the first does."""
    bounds = builder.bounds.stages[stage.name]
    for leaf in reduced_by_threads(stage):
        yield compare(
            "eq", bounds.loop_vars[leaf], index_const(stage.storing.get(stage.kind(leaf), 0))
        )
