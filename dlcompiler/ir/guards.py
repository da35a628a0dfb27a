"""Find the conditions under which each part of an expression is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from dlcompiler.ir.expr import Const, Expr, IfThenElse, Logical, Not, Reduce, binary, compare
from dlcompiler.ir.rewrite import children
from dlcompiler.ir.stmt import Region

MAX_WAYS = 8
"""Most combinations of conditions that are distinguished for one node; [1]."""
Guards: TypeAlias = tuple[Expr, ...]
"""Conditions that all hold, each evaluated only where those before it do."""
Node = TypeVar("Node", bound=Expr)


def guarded(expr: Expr, *kinds: type[Node]) -> Iterator[tuple[Node, Guards | None]]:
    """Yield each node of some kinds in an expression, with the conditions it is evaluated under.

    Parameters
    ----------
    expr
        An expression. Shared parts are visited once for each combination of conditions.
    kinds
        Node classes.

    Yields
    ------
    node, conditions
        Operands before the nodes that use them, conditions before what they guard. An expression
        with shared parts may lead to a node in exponentially many ways: from `MAX_WAYS` on they are
        one, whose conditions are None.
    """
    seen: dict[int, dict[tuple[int, ...] | None, Guards | None]] = {}
    stack: list[tuple[Expr, Guards | None, bool]] = [(expr, (), False)]
    while stack:
        node, guards, is_after_operands = stack.pop()
        if is_after_operands:
            assert isinstance(node, kinds)
            yield node, guards
            continue
        ways = seen.setdefault(id(node), {})
        if None in ways:
            continue
        if len(ways) == MAX_WAYS:
            guards = None
        way = None if guards is None else tuple(map(id, guards))
        if way in ways:
            continue
        ways[way] = guards  # kept, so that no other condition gets the id of one of them
        if isinstance(node, kinds):
            stack.append((node, guards, True))
        stack.extend((child, inner, False) for child, inner in reversed(_below(node, guards)))


def _below(node: Expr, guards: Guards | None) -> Sequence[tuple[Expr, Guards | None]]:
    if guards is not None:
        return operands(node, guards)
    return [(child, None) for child in children(node) if isinstance(child, Expr)]


def operands(expr: Expr, guards: Guards) -> list[tuple[Expr, Guards]]:
    """Return the operands of an expression, each with the condition it is evaluated under."""
    match expr:
        case IfThenElse(condition, a, b):
            return [(condition, guards), (a, (*guards, condition)), (b, (*guards, Not(condition)))]
        case Logical(op, a, b):
            return [(a, guards), (b, (*guards, a if op == "and" else Not(a)))]
        case Reduce() if expr.condition is not None:
            always, inner = (expr.condition, *expr.init), (*guards, expr.condition)
            return [*((e, guards) for e in always), *((value, inner) for value in expr.values)]
    return [(child, guards) for child in children(expr) if isinstance(child, Expr)]


def corners(region: Region) -> tuple[Guards, tuple[tuple[Expr, ...], tuple[Expr, ...]]]:
    """Return the conditions that a region is not empty, and its first and last indices."""
    pairs = list(zip(region.indices, region.extents, strict=True))
    sizes = (extent for _, extent in pairs if not (isinstance(extent, Const) and extent.value > 0))
    last = tuple(binary("sub", binary("add", index, extent), 1) for index, extent in pairs)
    return tuple(compare("gt", size, 0) for size in sizes), (region.indices, last)
