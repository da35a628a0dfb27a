"""Cut a program with too many accesses down to the first iterations of its outer loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Allocate,
    Const,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    binary,
    index_const,
)
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.cache.inputs import NONE, Inputs
from dlcompiler.simulate.cache.tracing import (
    Tracer,
    buffers_of,
    extent_refusal,
    placements_of,
)


@dataclass(frozen=True, eq=False)
class Sample:
    """A loop of which only the first iterations were simulated.

    Examples
    --------
    >>> from dlcompiler.ir import Seq
    >>> i = Var("i.outer", "index")
    >>> print(Sample(For(i, index_const(16), "serial", Seq(())), 2, 16))
    first 2 of 16 iterations of i.outer
    """

    loop: For
    kept: int
    """Simulated iterations; [1]."""
    extent: int
    """All iterations; [1]."""

    def __str__(self) -> str:
        return f"first {self.kept:,} of {self.extent:,} iterations of {self.loop.var.name}"


def count_accesses(func: PrimFunc, inputs: Inputs = NONE) -> int:
    """Return the accesses that a program makes if all its conditions hold; [1]."""
    return _Sampler(func, inputs).count(func.body)


def sampled(
    func: PrimFunc, most_accesses: int, inputs: Inputs = NONE
) -> tuple[PrimFunc, tuple[Sample, ...]]:
    """Return a program that makes at most so many accesses, and the loops that were cut.

    Notes
    -----
    Outer loops are cut before inner ones. Nests that follow each other share the accesses: one
    that needs less than its share leaves the rest to the others. A statement is never cut, so a
    program with many statements may exceed the limit.
    """
    sampler = _Sampler(func, inputs)
    body = sampler.cut(func.body, most_accesses)
    return func.with_body(body), tuple(sampler.samples)


@dataclass
class _Sampler:
    func: PrimFunc
    inputs: Inputs
    samples: list[Sample] = field(default_factory=list)
    ranges: dict[Var, Interval] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The accesses of each statement follow from the trace; here only their number matters.
        self.placements = placements_of(buffers_of(self.func))

    def count(self, stmt: Stmt) -> int:
        """Return an upper bound of the accesses of a statement in one execution."""
        if id(stmt) not in self.counts:
            self.counts[id(stmt)] = self._count(stmt)
        return self.counts[id(stmt)]

    def _count(self, stmt: Stmt) -> int:
        match stmt:
            case For(var, _, _, body):
                extent = self.extent(stmt)
                self.ranges[var] = Interval(0, max(extent - 1, 0))
                return extent * self.count(body)
            case Seq(statements):
                return sum(map(self.count, statements))
            case Allocate(_, body) | IntrinsicCall(body=body):
                return self.count(body)
        own = self._tracer().stmt(_without_bodies(stmt))
        return _calls(own) + sum(map(self.count, _bodies(stmt)))

    def _tracer(self) -> Tracer:
        return Tracer(self.func.name, self.placements, 1, self.inputs)

    def extent(self, loop: For) -> int:
        """Return the largest number of iterations of a loop."""
        if isinstance(loop.extent, Const):
            return max(int(loop.extent.value), 0)
        most = Analyzer(self.ranges, {}).interval(loop.extent).high
        if math.isinf(most):
            raise extent_refusal(self.func.name, loop)
        return max(int(most), 0)

    def cut(self, stmt: Stmt, most: int) -> Stmt:
        """Return a statement that makes at most `most` accesses, if that can be done."""
        if self.count(stmt) <= most:
            return stmt
        match stmt:
            case For():
                return self._cut_loop(stmt, most)
            case Seq(statements):
                shares = _shares([self.count(each) for each in statements], most)
                cut = (self.cut(*each) for each in zip(statements, shares, strict=True))
                return Seq(tuple(cut))
            case If(condition, then, otherwise):
                other = None if otherwise is None else self.cut(otherwise, most)
                return If(condition, self.cut(then, most), other)
            case Allocate() | IntrinsicCall() | Let():
                return replace(stmt, body=self.cut(stmt.body, most))
        return stmt

    def _cut_loop(self, loop: For, most: int) -> Stmt:
        extent, each = self.extent(loop), self.count(loop.body)
        kept = max(min(most // each, extent), 1)
        if kept < extent:
            self.samples.append(Sample(loop, kept, extent))
        body = self.cut(loop.body, most)
        limit = index_const(kept)
        is_fixed = isinstance(loop.extent, Const)
        cut = limit if is_fixed else binary("min", loop.extent, limit)
        return replace(loop, extent=cut, body=body)


def _bodies(stmt: Stmt) -> list[Stmt]:
    return [child for child in children(stmt) if isinstance(child, Stmt)]


def _without_bodies(stmt: Stmt) -> Stmt:
    """Return a statement without the statements in it: only its own expressions are left."""
    empty = Seq(())
    match stmt:
        case If(condition):
            return If(condition, empty)
        case Let(var, value):
            return Let(var, value, empty)
    return stmt


def _calls(stmt: Stmt) -> int:
    """Return how many calls a statement of a trace makes if all conditions hold."""
    calls = isinstance(stmt, ExternCall) + sum(map(_calls, _bodies(stmt)))
    if isinstance(stmt, For) and isinstance(stmt.extent, Const):  # over the lanes of a vector
        calls *= int(stmt.extent.value)
    return calls


def _shares(counts: Sequence[int], most: int) -> list[int]:
    """Share a number among statements; one that needs less leaves the rest to the others.

    Examples
    --------
    >>> _shares([10, 1000, 500], 110)
    [10, 50, 50]
    """
    shares = [0] * len(counts)
    for done, n in enumerate(sorted(range(len(counts)), key=lambda n: counts[n])):
        shares[n] = min(counts[n], most // (len(counts) - done))
        most -= shares[n]
    return shares
