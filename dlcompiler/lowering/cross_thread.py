"""Reductions that the threads of a block share: each reduces a part, then they combine the parts.

Of a sum over ``k`` whose inner loop of 4 iterations is bound to ``threadIdx.x``::

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
from typing import TypeAlias

from dlcompiler.ir import (
    Barrier,
    Buffer,
    Expr,
    If,
    Let,
    Load,
    Origin,
    Reducer,
    Stmt,
    Store,
    Var,
    binary,
    combine,
    compare,
    index_const,
    logical,
    seq,
)
from dlcompiler.schedule import StageBounds, StageState
from dlcompiler.schedule.inference.threads import reduced_by_threads

PART = "(part)"
"""Names, in an origin, what only one thread's part of a reduction is about."""

Place: TypeAlias = tuple[Buffer, tuple[Expr, ...]]


@dataclass(frozen=True)
class Assigner:
    """Makes stores of one origin."""

    origin: Origin

    def __call__(self, place: Place, value: Expr) -> Store:
        """Return what stores a value at a place."""
        return Store(*place, value, self.origin)


def accumulate(
    reducer: Reducer, places: Sequence[Place], values: Sequence[Expr], assign: Assigner
) -> Stmt:
    """Return what combines one more value of each result with those so far, at their places."""
    old = [Load(buffer, indices) for buffer, indices in places]
    new = combine(reducer, old, values)
    if len(new) > 1:  # each result may depend on all old ones, so none is stored too early
        fresh = [Var(f"{buffer.name}.next", buffer.dtype) for buffer, _ in places]
    else:
        fresh = []
    pairs = zip(places, fresh or new, strict=True)
    update = seq(assign(place, value) for place, value in pairs)
    for var, value in zip(reversed(fresh), reversed(new), strict=False):
        update = Let(var, value, update)
    return update


@dataclass(frozen=True)
class Parts:
    """The parts of a reduction: each thread's own, and where the threads of a block leave them."""

    own: tuple[Buffer, ...]
    """One element of each result."""
    left: tuple[Buffer, ...]
    """An element for each thread, in shared memory."""
    row: tuple[Expr, ...]
    """Which threads combine their parts: the indices of all thread axes but the reduced ones."""
    lane: Expr
    """The number of a thread among those."""
    count: int
    """How many those are."""

    def places(self) -> list[Place]:
        """Return where this thread keeps its part."""
        return [(buffer, (index_const(0),)) for buffer in self.own]

    def slots(self, lane: Expr) -> list[Place]:
        """Return where a thread leaves its part."""
        return [(buffer, (*self.row, lane)) for buffer in self.left]

    def combined(self, reducer: Reducer, assign: Assigner) -> Stmt:
        """Return what leaves the parts for the others, and combines them to the first."""
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
    """Yield how many threads combine two parts each, step by step, until one part is left."""
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
    """Return the buffers of a reduction's parts.

    Parameters
    ----------
    stage, bounds
        The reduction.
    around
        Variables and extents of the other threads of the block.
    names
        Of the buffers of its results.
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
