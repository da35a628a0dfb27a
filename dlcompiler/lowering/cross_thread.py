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

If loops along several axes are bound, a tree combines the threads along x, which may be a warp, and
then the first of each of these groups leaves its result to be combined with the others::

        if k.inner == 0:
            C.rows[k.outer.inner] = C.parts[k.outer.inner, 0]
        barrier
        C.part[0] = C.rows[0]
        for other in range(7):
            C.part[0] += C.rows[other + 1]

A stage that is attached inside the threads that reduce it, in their own memory, leaves its result
in each of them: nothing selects the thread that stores it.

**Source:** the tree is that of M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from dlcompiler.ir import (
    PART,
    Axis,
    Barrier,
    Buffer,
    Expr,
    Extent,
    For,
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
    is_thread,
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
    loops_around,
    nest_order,
    reduced_by_threads,
    threads_around,
)

Threads: TypeAlias = dict[str, tuple[Var, Extent]]
"""Axis of threads -> the variable and the extent of its loop."""
MOST_SERIAL = 32
"""Partial results that one thread combines one after the other; of more, a tree is made; [1]."""


@dataclass(frozen=True)
class Parts:
    """The partial results of a reduction: in each thread, and in shared memory."""

    own: tuple[Buffer, ...]
    """A buffer of one element for each result, private to a thread."""
    levels: tuple[Level, ...]
    """The groups of threads that combine their parts, one level after the other."""

    def places(self) -> list[Place]:
        """Return the element, private to each thread, that holds its part of each result."""
        return [(buffer, (index_const(0),)) for buffer in self.own]

    def buffers(self) -> Iterator[Buffer]:
        """Yield the buffers in shared memory."""
        for level in self.levels:
            yield from level.left


@dataclass(frozen=True)
class Level:
    """Threads that combine their parts in shared memory."""

    left: tuple[Buffer, ...]
    """A buffer in shared memory for each result, with one element per thread."""
    row: tuple[Expr, ...]
    """Indices along the other thread axes; threads with equal indices combine their parts."""
    lane: Expr
    """Number of the thread among the threads that combine their parts."""
    count: int
    """Number of threads that combine their parts."""
    is_tree: bool
    """Whether half of them combine two parts each; otherwise one combines all."""
    place: int
    """Dimension of the buffers that goes along these threads. It is not the last one if threads
    along x are others: neighbours then access different banks."""

    def slots(self, lane: Expr) -> list[Place]:
        """Return the element in shared memory where one thread stores its part of each result."""
        index = (*self.row[: self.place], lane, *self.row[self.place :])
        return [(buffer, index) for buffer in self.left]

    def tree(self, reducer: Reducer, assign: Assigner, only: Sequence[Expr] = ()) -> Iterator[Stmt]:
        """Yield the steps after which the first part holds the result.

        `only` are conditions that hold for one thread of each lane.
        """
        for half in _halves(self.count):
            further = binary("add", self.lane, index_const(half))
            values = [Load(*slot) for slot in self.slots(further)]
            is_one = [*only, compare("lt", self.lane, index_const(half))]
            if 2 * half > self.count:
                is_one.append(compare("lt", further, index_const(self.count)))
            step = accumulate(reducer, self.slots(self.lane), values, assign)
            yield If(logical("and", *is_one), step)
            yield Barrier()

    def all_but_first(
        self, reducer: Reducer, places: Sequence[Place], assign: Assigner
    ) -> Iterator[Stmt]:
        """Yield the statements in which one thread combines all parts, one after the other."""
        yield from map(assign, places, (Load(*slot) for slot in self.slots(index_const(0))))
        other = Var(f"{self.left[0].name}.other")
        values = [Load(*slot) for slot in self.slots(binary("add", other, index_const(1)))]
        step = accumulate(reducer, places, values, assign)
        yield For(other, index_const(self.count - 1), "unrolled", step)


def _halves(count: int) -> Iterator[int]:
    """Yield the number of threads that add two parts in each step: 4, 2, 1 for 8 parts."""
    half = 2 ** (count - 1).bit_length() // 2
    while half >= 1:
        yield half
        half //= 2


def parts_of(builder: LoopBuilder, stage: StageState) -> Parts:
    """Return the buffers that hold the partial results of a reduction.

    Parameters
    ----------
    builder
        Knows the buffers of the results, and the threads of the block.
    stage
        The reduction.
    """
    bounds = builder.bounds.stages[stage.name]
    around = _threads_around(builder, stage)
    reduced = {stage.kind(leaf): bounds.loop_vars[leaf] for leaf in reduced_by_threads(stage)}
    threads: Threads = {
        tag: around[tag] if tag in around else (var, _count(bounds, stage, tag))
        for tag, var in sorted(reduced.items())  # x first: a warp
    }
    beside = {tag: pair for tag, pair in around.items() if tag not in reduced}
    for leaf in stage.leaves:
        kind = stage.kind(leaf)
        if leaf.kind == "data" and is_in_block(kind) and leaf not in bounds.joined:
            beside[kind] = (bounds.loop_vars[leaf], bounds.extents[leaf])
    first, *others = threads
    along = {tag: threads[tag] for tag in others}
    levels = [_level(builder, stage, {first: threads[first]}, beside | along, "parts")]
    if others:
        levels.append(_level(builder, stage, along, beside, "rows"))
    own = tuple(
        Buffer(f"{builder.buffers[tensor].name}.part", (1,), tensor.dtype, "local")
        for tensor in stage.tensors
    )
    return Parts(own, tuple(levels))


def _level(
    builder: LoopBuilder, stage: StageState, along: Threads, beside: Threads, name: str
) -> Level:
    """Return the level at which the threads of some axes combine their parts."""
    count, lane = 1, cast(Expr, index_const(0))
    for var, extent in along.values():
        assert isinstance(extent, int)  # in a state without problems
        lane = binary("add", binary("mul", lane, extent), var)
        count *= extent
    others = {tag: beside[tag] for tag in sorted(beside, reverse=True)}  # x last
    row = [(var, extent) for var, extent in others.values() if isinstance(extent, int)]
    place = len(row) - 1 if "threadIdx.x" in others else len(row)
    extents = [extent for _, extent in row]
    shape = (*extents[:place], count, *extents[place:])
    left = tuple(
        Buffer(f"{builder.buffers[tensor].name}.{name}", shape, tensor.dtype, "shared")
        for tensor in stage.tensors
    )
    is_tree = name == "parts" or count > MOST_SERIAL
    return Level(left, tuple(var for var, _ in row), lane, count, is_tree, place)


def _threads_around(builder: LoopBuilder, stage: StageState) -> Threads:
    """Return variable and extent of each loop of a block's threads around a stage, by its axis."""
    found: Threads = {}
    for tag, (host, leaf) in threads_around(builder.state, stage).items():
        bounds = builder.bounds.stages[host.name]
        if is_in_block(host.kind(leaf)):
            found[tag] = bounds.loop_vars[leaf], bounds.extents[leaf]
    return found


def _count(bounds: StageBounds, stage: StageState, tag: str) -> int:
    """Return the number of threads of the reduction loop that is bound to an axis."""
    leaf = next(leaf for leaf in reduced_by_threads(stage) if stage.kind(leaf) == tag)
    extent = bounds.extents[leaf]
    assert isinstance(extent, int)  # in a state without problems
    return extent


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
    threads = reduced_by_threads(stage)
    order = nest_order(stage)
    first = next(n for n, leaf in enumerate(order) if leaf is threads[0])
    outer, serial = order[:first], order[first + len(threads) :]
    parts = parts_of(builder, stage)
    builder.shared += (PendingAllocation(buffer, stage.name) for buffer in parts.buffers())
    assign = Assigner(builder.origin(stage, PART, (*outer, *threads)))
    identity = head.reducer.identity_of(head.values)
    fresh = seq(map(assign, parts.places(), identity))
    update = under(guards, builder.update(stage, parts.places(), head, values))
    most = builder.loops(stage, bounds, serial, (*outer, *threads), Inside(None, update))
    reduced = {bounds.loop_vars[leaf] for leaf in (*threads, *serial)}
    needed = [guard for guard in guards if not loop_vars_of(guard) & reduced]
    is_private = bool(bounds.joined.intersection(threads))
    conditions = needed if is_private else [*_storing(builder, stage), *needed]
    start = [builder.expr(expr, values) for expr in head.start] if head.init else None
    targets = [builder.target(stage, bounds, tensor) for tensor in stage.tensors]
    places = [
        (builder.buffers[tensor], target)
        for tensor, target in zip(stage.tensors, targets, strict=True)
    ]
    store = under(conditions, _stored(parts, head.reducer, assign, places, start))
    steps = [fresh, most, *_combined(parts, head.reducer, assign), store]
    if (is_private or len(parts.levels) > 1) and _is_repeated(builder, stage, outer):
        steps.append(Barrier())  # other threads may still read the parts of this iteration
    own = (PendingAllocation(buffer, stage.name) for buffer in parts.own)
    body = with_allocations(own, seq(steps))
    body = builder.loops(stage, bounds, threads, outer, Inside(None, body))
    return builder.loops(stage, bounds, outer, (), Inside(None, body))


def _combined(parts: Parts, reducer: Reducer, assign: Assigner) -> Iterator[Stmt]:
    """Yield the steps of all threads until the parts that are left can be read by one thread."""
    values, is_first = [Load(*place) for place in parts.places()], list[Expr]()
    for level in parts.levels:
        yield under(is_first, seq(map(assign, level.slots(level.lane), values)))
        yield Barrier()
        if level.is_tree:
            yield from level.tree(reducer, assign, is_first)
        values = [Load(*slot) for slot in level.slots(index_const(0))]
        is_first = [compare("eq", level.lane, index_const(0))]


def _stored(
    parts: Parts, reducer: Reducer, assign: Assigner, places: Sequence[Place],
    start: Sequence[Expr] | None,
) -> Stmt:  # fmt: skip
    """Return the statements of a thread that stores the result."""
    last, before = parts.levels[-1], list[Stmt]()
    result: Sequence[Expr] = [Load(*slot) for slot in last.slots(index_const(0))]
    if not last.is_tree:
        before = list(last.all_but_first(reducer, parts.places(), assign))
        result = [Load(*place) for place in parts.places()]
    if start is not None:
        result = combine(reducer, start, result)
    return seq((*before, *map(assign, places, result)))


def _is_repeated(builder: LoopBuilder, stage: StageState, outer: Sequence[Axis]) -> bool:
    """Tell whether a loop that is not of threads runs a reduction more than once."""
    around = [*loops_around(builder.state, stage), *((stage, leaf) for leaf in outer)]
    extents = {name: bounds.extents for name, bounds in builder.bounds.stages.items()}
    return any(
        not is_thread(host.kind(leaf)) and str(extents[host.name][leaf]) != "1"
        for host, leaf in around
    )


def _storing(builder: LoopBuilder, stage: StageState) -> Iterator[Expr]:
    """Yield the conditions under which a thread stores the result; by default, the first does."""
    bounds = builder.bounds.stages[stage.name]
    for leaf in reduced_by_threads(stage):
        yield compare(
            "eq", bounds.loop_vars[leaf], index_const(stage.storing.get(stage.kind(leaf), 0))
        )
