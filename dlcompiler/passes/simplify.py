"""Simplify index arithmetic, decide conditions, and remove loops that run once or never.

A loop over blocks stays, also of one block: it says which loops a device runs, not its host.

*Before*::

    for i in range(4):
        for j in range(1):
            if i*8 + j < 64:
                C[(i*8 + j) // 8, 0 + j] = A[i*8 + j - i*8]

*After*::

    for i in range(4):
        C[i, 0] = A[0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from dlcompiler.arith import NATURAL, Analyzer, Interval
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Prefetch,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    index_const,
    seq,
    substitute,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import push_origin, push_pragmas

NOTHING = Seq(())


def simplify(func: PrimFunc, *, known: Mapping[Var, Interval] | None = None) -> PrimFunc:
    """Simplify all expressions of a function under the ranges of its loops.

    Parameters
    ----------
    func
        Any function.
    known
        Ranges of symbols.

    Returns
    -------
    PrimFunc
        An equal function; the same object if nothing got simpler.
    """
    return func.with_body(_Simplifier(func, known or {}).stmt(func.body))


class _Simplifier:
    def __init__(self, func: PrimFunc, known: Mapping[Var, Interval]) -> None:
        sizes = (extent for buffer in func.buffers for extent in buffer.shape)
        symbols = (extent for extent in sizes if isinstance(extent, Var))
        self.ranges: dict[Var, Interval] = dict.fromkeys(symbols, NATURAL)
        self.ranges.update(known)
        self.extents: dict[Var, Expr] = {}
        self.analyzer = Analyzer(self.ranges, self.extents)

    def expr(self, expr: Expr) -> Expr:
        return self.analyzer.simplify(expr)

    def stmt(self, stmt: Stmt) -> Stmt:  # noqa: C901 - one case per node
        match stmt:
            case Store() | Prefetch():
                return map_children(stmt, self.operand)
            case For():
                return self.loop(stmt)
            case If():
                return self.conditional(stmt)
            case Seq(statements):
                changed = [self.stmt(statement) for statement in statements]
                if all(a is b for a, b in zip(changed, statements, strict=True)):
                    return stmt
                return seq(item for item in changed if not is_nothing(item))
            case Allocate():
                return self.allocate(stmt)
            case Let():
                return self.let(stmt)
            case Barrier():
                return stmt
            case ExternCall():
                return map_children(stmt, self.argument)
            case IntrinsicCall():
                return map_children(stmt, self.part)
            case Assert():
                condition = self.expr(stmt.condition)
                if isinstance(condition, Const) and condition.value:
                    return NOTHING
                values = tuple(map(self.expr, stmt.values))
                if condition is stmt.condition and all(map(is_, values, stmt.values)):
                    return stmt
                return Assert(condition, stmt.message, values)
        raise AssertionError(stmt)

    def part(self, node: Node) -> Node:
        return self.stmt(node) if isinstance(node, Stmt) else self.operand(node)

    def operand(self, node: Node) -> Node:
        assert isinstance(node, Expr)
        return self.expr(node)

    def argument(self, node: Node) -> Node:
        if isinstance(node, Region):
            return map_children(node, self.operand)
        return self.operand(node)

    def allocate(self, stmt: Allocate) -> Stmt:
        body = self.stmt(stmt.body)
        if is_nothing(body):
            return NOTHING
        return stmt if body is stmt.body else replace(stmt, body=body)

    def let(self, stmt: Let) -> Stmt:
        value = self.expr(stmt.value)
        if isinstance(value, Const | Var):
            return self.stmt(substitute(stmt.body, {stmt.var: value}))
        if stmt.var.dtype == "index":
            self.declare(stmt.var, self.analyzer.interval(value))
        body = self.stmt(stmt.body)
        if is_nothing(body):
            return NOTHING
        return stmt if value is stmt.value and body is stmt.body else Let(stmt.var, value, body)

    def loop(self, loop: For) -> Stmt:
        extent_expr = self.expr(loop.extent)
        extent = int(extent_expr.value) if isinstance(extent_expr, Const) else None
        if extent is not None and extent <= 0:
            return NOTHING
        if extent == 1:
            body = substitute(loop.body, {loop.var: index_const(0)})
            if loop.kind.startswith("blockIdx"):  # says which loops the device runs
                return self.with_body(loop, extent_expr, self.stmt(body))
            return self.stmt(push_origin(push_pragmas(body, loop), loop.origin))
        if extent is not None:
            self.declare(loop.var, Interval(0, extent - 1))
        else:
            self.declare(loop.var, NATURAL, extent_expr)
        return self.with_body(loop, extent_expr, self.stmt(loop.body))

    def with_body(self, loop: For, extent: Expr, body: Stmt) -> Stmt:
        """Return a loop with another extent and body."""
        if is_nothing(body):
            return NOTHING
        if body is loop.body and extent is loop.extent:
            return loop
        return replace(loop, extent=extent, body=body)

    def declare(self, var: Var, interval: Interval, extent: Expr | None = None) -> None:
        """Set the range of a variable; if it had a different range, start a new analysis."""
        is_known = self.ranges.get(var) == interval and self.extents.get(var) is extent
        if var in self.ranges and not is_known:
            self.analyzer = Analyzer(self.ranges, self.extents)
        self.ranges[var] = interval
        if extent is None:
            self.extents.pop(var, None)
        else:
            self.extents[var] = extent

    def conditional(self, stmt: If) -> Stmt:
        condition = self.expr(stmt.condition)
        if isinstance(condition, Const):
            if condition.value:
                return self.stmt(stmt.then)
            return NOTHING if stmt.otherwise is None else self.stmt(stmt.otherwise)
        then = self.stmt(stmt.then)
        otherwise = None if stmt.otherwise is None else self.stmt(stmt.otherwise)
        if is_nothing(then) and (otherwise is None or is_nothing(otherwise)):
            return NOTHING
        if condition is stmt.condition and then is stmt.then and otherwise is stmt.otherwise:
            return stmt
        return If(condition, then, otherwise)


def is_nothing(stmt: Stmt) -> bool:
    """Tell whether a statement does nothing."""
    return isinstance(stmt, Seq) and not stmt.statements
