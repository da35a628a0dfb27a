"""Helpers for loop nests: guards, allocations, assignments, renamed variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Origin,
    Reducer,
    StepRef,
    Stmt,
    Store,
    Var,
    Window,
    combine,
    free_vars,
    logical,
    rewrite,
    seq,
    substitute,
)
from dlcompiler.ir.rewrite import Node

INIT = "(init)"
"""Marks, in an origin, the initialisation of a reduction."""


Place: TypeAlias = tuple[Buffer, tuple[Expr, ...]]
"""An element of a buffer: the buffer and the indices."""


@dataclass(frozen=True)
class Inside:
    """The statements inside the loops: the initialisation of a reduction, and its update."""

    init: Stmt | None
    update: Stmt


@dataclass(frozen=True)
class PendingAllocation:
    """A buffer of a stage that has no `Allocate` yet."""

    buffer: Buffer
    stage: str
    double: Var | None = None
    window: Window | None = None


def with_allocations(allocations: Iterable[PendingAllocation], body: Stmt) -> Stmt:
    """Allocate buffers around a statement, the first one outermost."""
    for pending in reversed(list(allocations)):
        origin = (StepRef("", pending.stage),)
        body = Allocate(pending.buffer, body, origin, pending.double, pending.window)
    return body


def under(guards: Sequence[Expr], body: Stmt) -> Stmt:
    """Return a statement under the conjunction of guards."""
    return If(logical("and", *guards), body) if guards else body


def loop_vars_of(guard: Expr) -> set[Var]:
    """Return the variables of a guard that loops bind: all except symbols."""
    return {var for var in free_vars(guard) if not var.is_symbol}


def rename(body: Stmt, fresh: dict[Var, Expr]) -> Stmt:
    """Give the loops of an initialisation their own variables."""
    body = substitute(body, fresh)

    def rule(node: Node) -> Node:
        if isinstance(node, For) and isinstance(new := fresh.get(node.var), Var):
            return replace(node, var=new)
        return node

    return rewrite(body, rule)


@dataclass(frozen=True)
class Assigner:
    """Builds stores that all have the same origin."""

    origin: Origin

    def __call__(self, place: Place, value: Expr) -> Store:
        """Return the store of a value; a place is a buffer and its indices."""
        return Store(*place, value, self.origin)


def accumulate(
    reducer: Reducer, places: Sequence[Place], values: Sequence[Expr], assign: Assigner
) -> Stmt:
    """Return the stores that combine each partial result with one more value."""
    old = [Load(buffer, indices) for buffer, indices in places]
    new = combine(reducer, old, values)
    if len(new) > 1:  # each new value may read all old ones: compute all before storing any
        fresh = [Var(f"{buffer.name}.next", buffer.dtype) for buffer, _ in places]
    else:
        fresh = []
    pairs = zip(places, fresh or new, strict=True)
    update = seq(assign(place, value) for place, value in pairs)
    for var, value in zip(reversed(fresh), reversed(new), strict=False):
        update = Let(var, value, update)
    return update
