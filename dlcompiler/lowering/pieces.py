"""The pieces of loop nests: guards, buffers with their strides, variables of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    Extent,
    For,
    If,
    StepRef,
    Stmt,
    Var,
    Window,
    extent_binary,
    free_vars,
    logical,
    rewrite,
    substitute,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule import StageState


@dataclass(frozen=True)
class Room:
    """A buffer to be allocated, for a stage."""

    buffer: Buffer
    stage: str
    is_double: bool = False
    window: Window | None = None


def with_allocations(rooms: Iterable[Room], body: Stmt) -> Stmt:
    """Return a statement with buffers that live while it runs, the first one outermost."""
    for room in reversed(list(rooms)):
        origin = (StepRef("", room.stage),)
        body = Allocate(room.buffer, body, origin, room.is_double, room.window)
    return body


def under(guards: Sequence[Expr], body: Stmt) -> Stmt:
    """Return a statement that runs where all guards hold."""
    return If(logical("and", *guards), body) if guards else body


def loop_vars_of(guard: Expr) -> set[Var]:
    """Return the loop variables that a guard depends on: symbols are known everywhere."""
    return {var for var in free_vars(guard) if not var.is_symbol}


def aligned_strides(stage: StageState, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides of a buffer of which some dimensions are padded."""
    strides: list[Extent] = []
    step: Extent = 1
    for axis, extent in reversed(list(zip(stage.op.axis, shape, strict=True))):
        if axis in stage.alignments:
            factor, offset = stage.alignments[axis]
            missing = extent_binary("sub", offset, step)
            step = extent_binary("add", step, extent_binary("floormod", missing, factor))
        strides.append(step)
        step = extent_binary("mul", step, extent)
    return tuple(reversed(strides))


def rename(body: Stmt, fresh: dict[Var, Expr]) -> Stmt:
    """Give the loops of an initialisation their own variables."""
    body = substitute(body, fresh)

    def rule(node: Node) -> Node:
        if isinstance(node, For) and isinstance(new := fresh.get(node.var), Var):
            return replace(node, var=new)
        return node

    return rewrite(body, rule)
