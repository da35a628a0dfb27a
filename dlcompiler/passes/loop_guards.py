"""Guards of loops: conditions and clamps of indices that `partition_loops` decides."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Logical,
    Select,
    Stmt,
    rewrite,
    walk,
)
from dlcompiler.ir.rewrite import Node, children

TRUE = Const(True, "bool")
FALSE = Const(False, "bool")

Guard: TypeAlias = Compare | Binary
"""A comparison, or a clamp: ``max(a, b)`` is a where ``a >= b`` holds, and ``min`` likewise."""


@dataclass(frozen=True)
class Bound:
    """The bound that a guard puts on the loop variable: ``low <= v`` or ``v < high``.

    `loss` is the number of iterations in which the guard may hold for some inner iterations only.
    From iteration `fails` on, or before it for a `low`, it holds for none; None if that is unknown.
    """

    guard: Guard
    low: Expr | None
    high: Expr | None
    loss: int
    fails: int | None = None

    def outcome(self, first: int, last: int) -> bool | None:
        """Tell whether the guard holds in the iterations from `first` to `last` - 1."""
        end = self.low if self.high is None else self.high
        if not isinstance(end, Const) or self.fails is None:
            return None
        if self.low is None:
            return True if last <= end.value else False if first >= self.fails else None
        return True if first >= end.value else False if last <= self.fails else None


def not_negative(guard: Guard, analyzer: Analyzer) -> Affine | None:
    """Return a form that is >= 0 if and only if a guard holds; None for other operators."""
    a, b = analyzer.affine(guard.a), analyzer.affine(guard.b)
    match guard.op:
        case "lt" | "le" | "min":
            form = b.plus(a, -1)
        case "gt" | "ge" | "max":
            form = a.plus(b, -1)
        case _:
            return None
    return form.plus(Affine.of_constant(-1)) if guard.op in ("lt", "gt") else form


def _conjuncts(condition: Expr) -> Iterator[Compare]:
    """Yield the comparisons of indices in a conjunction."""
    match condition:
        case Logical("and", a, b):
            yield from _conjuncts(a)
            yield from _conjuncts(b)
        case Compare() if condition.a.dtype == "index":
            yield condition


def guards_in(
    stmt: Stmt, inner: tuple[For, ...], *, with_choices: bool
) -> Iterator[tuple[Guard, tuple[For, ...]]]:
    """Yield the guards in a statement, each with the loops around it."""
    match stmt:
        case If(condition, _, _):
            yield from ((guard, inner) for guard in _conjuncts(condition))
        case For():
            inner = (*inner, stmt)
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from guards_in(child, inner, with_choices=with_choices)
        elif with_choices:
            for node in walk(child):
                if _is_clamp(node):
                    yield node, inner
                elif isinstance(node, IfThenElse | Select):
                    yield from ((guard, inner) for guard in _conjuncts(node.condition))


def _is_clamp(node: Node) -> TypeGuard[Binary]:
    """Tell whether a node is the smaller or the larger of two indices."""
    return isinstance(node, Binary) and node.op in ("min", "max") and node.dtype == "index"


def outermost_guards(body: Stmt) -> Iterator[Compare]:
    """Yield the guards that enclose the whole body of a loop."""
    while isinstance(body, If) and body.otherwise is None:
        yield from _conjuncts(body.condition)
        body = body.then


def settled(body: Stmt, bounds: list[Bound], first: int, last: int) -> Stmt:
    """Return a body without the choices that are the same from `first` to `last` - 1."""
    outcomes: dict[int, list[bool | None]] = {}
    for bound in bounds:
        outcomes.setdefault(id(bound.guard), []).append(bound.outcome(first, last))
    held = {guard for guard, several in outcomes.items() if all(several)}
    failed = {guard for guard, several in outcomes.items() if all(o is False for o in several)}
    return _with_values(body, held, failed)


def without(body: Stmt, bounds: list[Bound]) -> Stmt:
    """Return a body without the guards of `bounds`, which hold there."""
    return _with_values(body, {id(bound.guard) for bound in bounds}, set())


def _with_values(body: Stmt, held: Set[int], failed: Set[int]) -> Stmt:
    """Return a body in which some guards, given by their ids, hold, and others fail."""
    known = held | failed

    def rule(node: Node) -> Node:
        match node:
            case Compare() if id(node) in known:
                return TRUE if id(node) in held else FALSE
            case Binary() if id(node) in known:
                return node.a if id(node) in held else node.b
            case Logical("and", a, b):
                return _both(node, a, b)
            case If() | IfThenElse() | Select() if _is_known(node.condition):
                return _branch(node)
        return node

    return rewrite(body, rule)


def _is_known(condition: Expr) -> bool:
    return condition is TRUE or condition is FALSE


def _both(node: Expr, a: Expr, b: Expr) -> Expr:
    """Return a conjunction without operands that hold."""
    if a is FALSE or b is FALSE:
        return FALSE
    return b if a is TRUE else a if b is TRUE else node


def _branch(node: If | IfThenElse | Select) -> Node:
    """Return the branch that a constant condition chooses."""
    if not isinstance(node, If):
        return node.a if node.condition is TRUE else node.b
    if node.condition is TRUE:
        return node.then
    return node if node.otherwise is None else node.otherwise
