"""The pieces of loop nests: guards, allocations, variables of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    StepRef,
    Stmt,
    Var,
    Window,
    free_vars,
    logical,
    rewrite,
    substitute,
)
from dlcompiler.ir.rewrite import Node

INIT = "(init)"
"""Marks the part of a stage that sets its elements to what a reduction starts from."""


@dataclass(frozen=True)
class Inside:
    """What runs inside the loops: the initialisation of a reduction, and its update."""

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
    """Return a statement with buffers that live while it runs, the first one outermost."""
    for pending in reversed(list(allocations)):
        origin = (StepRef("", pending.stage),)
        body = Allocate(pending.buffer, body, origin, pending.double, pending.window)
    return body


def under(guards: Sequence[Expr], body: Stmt) -> Stmt:
    """Return a statement that runs where all guards hold."""
    return If(logical("and", *guards), body) if guards else body


def loop_vars_of(guard: Expr) -> set[Var]:
    """Return the loop variables that a guard depends on: symbols are known everywhere."""
    return {var for var in free_vars(guard) if not var.is_symbol}


def rename(body: Stmt, fresh: dict[Var, Expr]) -> Stmt:
    """Give the loops of an initialisation their own variables."""
    body = substitute(body, fresh)

    def rule(node: Node) -> Node:
        if isinstance(node, For) and isinstance(new := fresh.get(node.var), Var):
            return replace(node, var=new)
        return node

    return rewrite(body, rule)
