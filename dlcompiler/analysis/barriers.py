"""Barriers: how many of them a thread has passed, which orders it against the others of its block.

All threads of a block come to each barrier. So an access can be dated by the barriers before it, a
sum over the loops inside those of the threads::

    for tx in threadIdx.x(32):              date
        for k in range(8):
            barrier
            T[tx] = A[8*tx + k]             2*k + 1
            barrier
            C[tx] += T[31 - tx]             2*k + 2

Of two threads' accesses that of the smaller date comes first, and two of one date in any order.
Without the first barrier, the dates are k and k + 1: the sum meets the next step's copy, a race.

**Source:** phases between barriers are those of A. Betts et al., "GPUVerify: a verifier for GPU
kernels", OOPSLA 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dlcompiler.ir import (
    Allocate,
    Barrier,
    Expr,
    For,
    If,
    IntrinsicCall,
    Let,
    Seq,
    Stmt,
    Var,
    binary,
    free_vars,
    index_const,
    is_in_block,
    is_thread,
)

NONE, ONE = index_const(0), index_const(1)


class Clock:
    """The date, while the statements of a program are visited in the order of its text."""

    def __init__(self, body: Stmt) -> None:
        self.date: Expr | None = NONE
        """None where it depends on conditions. Outside the threads of a block it says nothing."""
        self._inside: dict[int, Expr | None] = {}
        """How many barriers a thread passes in a loop's body, or in a branch, by identity."""
        self._named: set[Var] = set()
        self._stands_still = self._passed(body) is NONE
        self._in_block = False

    def _passed(self, stmt: Stmt) -> Expr | None:
        """Return how many barriers a thread passes in a statement; None if that is not known."""
        match stmt:
            case Barrier():
                return ONE
            case Seq(statements):
                return _sum([self._passed(item) for item in statements])
            case For(_, extent, kind, body):
                inside = self._inside[id(stmt)] = self._passed(body)
                return inside if is_thread(kind) else self._times(inside, extent)
            case If(_, then, otherwise):
                parts = [self._passed(part) for part in (then, otherwise) if part is not None]
                count = NONE if all(part is NONE for part in parts) else None
                self._inside[id(stmt)] = count
                return count
            case Let(var):
                self._named.add(var)
                return self._passed(stmt.body)
            case Allocate() | IntrinsicCall():
                return self._passed(stmt.body)
        return NONE

    def _times(self, inside: Expr | None, extent: Expr) -> Expr | None:
        if inside is None or inside is NONE:
            return inside
        return None if free_vars(extent) & self._named else binary("mul", extent, inside)

    def pass_barrier(self) -> None:
        """Count a barrier."""
        self.date = _sum((self.date, ONE))

    @contextmanager
    def during(self, loop: For) -> Iterator[None]:
        """Visit the body of a loop."""
        if self._stands_still:
            yield
            return
        before, inside = self.date, self._inside[id(loop)]
        is_outermost = is_in_block(loop.kind) and not self._in_block
        if is_outermost:
            self._in_block, self.date = True, NONE if inside is not None else None
        elif not is_thread(loop.kind):
            self.date = _sum((before, self._times(inside, loop.var)))
        yield
        if is_outermost:
            self._in_block, self.date = False, before
        elif not is_thread(loop.kind):
            self.date = _sum((before, self._times(inside, loop.extent)))

    @contextmanager
    def perhaps(self, branch: If) -> Iterator[None]:
        """Visit what runs under a condition."""
        if not self._stands_still and self._inside[id(branch)] is None:
            self.date = None
        yield


def _sum(parts: Iterable[Expr | None]) -> Expr | None:
    total: Expr = NONE
    for part in parts:
        if part is None:
            return None
        if part is not NONE:
            total = part if total is NONE else binary("add", total, part)
    return total
