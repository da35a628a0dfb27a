"""Compute barrier epochs: how many barriers a thread passes before an access.

All threads of a block reach each barrier. So the *epoch* of an access, the number of barriers
before it, is a sum over the loops inside those of the threads::

    for tx in threadIdx.x(32):              epoch
        for k in range(8):
            barrier
            T[tx] = A[8*tx + k]             2*k + 1
            barrier
            C[tx] += T[31 - tx]             2*k + 2

Of the accesses of two threads, the one with the smaller epoch comes first. With equal epochs the
order is open. Without the first barrier, the epochs would be k and k + 1: then the sum of one step
and the copy of the next step have one epoch, which is a race.

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


class EpochCounter:
    """Counts the epoch while the statements of a program are visited in the order of its text."""

    def __init__(self, body: Stmt) -> None:
        self.epoch: Expr | None = NONE
        """None where it depends on conditions. Outside the threads of a block it has no meaning."""
        self._inside: dict[int, Expr | None] = {}
        """How many barriers a thread passes in a loop's body, or in a branch, by identity."""
        self._named: set[Var] = set()
        self._has_no_barriers = self._passed(body) is NONE
        self._in_block = False

    def _passed(self, stmt: Stmt) -> Expr | None:
        """Return how many barriers a thread passes in a statement; None if unknown."""
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
        self.epoch = _sum((self.epoch, ONE))

    @contextmanager
    def in_loop(self, loop: For) -> Iterator[None]:
        """Visit the body of a loop."""
        if self._has_no_barriers:
            yield
            return
        before, inside = self.epoch, self._inside[id(loop)]
        is_outermost = is_in_block(loop.kind) and not self._in_block
        if is_outermost:
            self._in_block, self.epoch = True, NONE if inside is not None else None
        elif not is_thread(loop.kind):
            self.epoch = _sum((before, self._times(inside, loop.var)))
        yield
        if is_outermost:
            self._in_block, self.epoch = False, before
        elif not is_thread(loop.kind):
            self.epoch = _sum((before, self._times(inside, loop.extent)))

    @contextmanager
    def in_branch(self, branch: If) -> Iterator[None]:
        """Visit the statements of a branch."""
        if not self._has_no_barriers and self._inside[id(branch)] is None:
            self.epoch = None
        yield


def _sum(parts: Iterable[Expr | None]) -> Expr | None:
    total: Expr = NONE
    for part in parts:
        if part is None:
            return None
        if part is not NONE:
            total = part if total is NONE else binary("add", total, part)
    return total
