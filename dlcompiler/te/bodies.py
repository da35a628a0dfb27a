"""Rewriting of the bodies of operations: expressions of elements, and statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    Load,
    Prefetch,
    Reduce,
    Region,
    Stmt,
    Store,
    rewrite,
)
from dlcompiler.ir.rewrite import Node


def rewrite_bodies(bodies: tuple[Expr, ...], rule: Callable[[Node], Node]) -> tuple[Expr, ...]:
    """Apply `rule` to the bodies of one operation.

    Results of one reduction must share its values and reducer (`_check_together`), so the reduction
    is rewritten once and the results are copies with other indices.
    """
    head = rewrite(bodies[0], rule)
    if not isinstance(head, Reduce):
        return (head, *(rewrite(body, rule) for body in bodies[1:]))
    return tuple(replace(head, index=n) if n else head for n in range(len(bodies)))


def with_buffers(body: Stmt, known: Mapping[Buffer, Buffer]) -> Stmt:
    """Return statements with buffers replaced by those that `known` maps them to."""

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store | Prefetch | Region | Allocate) and node.buffer in known:
            return replace(node, buffer=known[node.buffer])
        return node

    return rewrite(body, rule)
