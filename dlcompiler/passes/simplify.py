"""Simplify index arithmetic, decide conditions, and remove loops that run once or never.

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

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Allocate,
    Const,
    Expr,
    For,
    If,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    index_const,
    seq,
    substitute,
)
from dlcompiler.passes.base import constant_extent, push_origin

NOTHING = Seq(())


def simplify(func: PrimFunc) -> PrimFunc:
    """Simplify all expressions of a function under the ranges of its loops.

    Parameters
    ----------
    func
        Any function.

    Returns
    -------
    PrimFunc
        An equal function; the same object if nothing got simpler.
    """
    return func.with_body(_Simplifier().stmt(func.body))


class _Simplifier:
    def __init__(self) -> None:
        self.ranges: dict[Var, Interval] = {}
        self.analyzer = Analyzer(self.ranges)

    def expr(self, expr: Expr) -> Expr:
        return self.analyzer.simplify(expr)

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store(buffer, indices, value, origin):
                new_indices = tuple(self.expr(index) for index in indices)
                new_value = self.expr(value)
                if new_value is value and all(
                    a is b for a, b in zip(new_indices, indices, strict=True)
                ):
                    return stmt
                return Store(buffer, new_indices, new_value, origin)
            case For():
                return self.loop(stmt)
            case If():
                return self.conditional(stmt)
            case Seq(statements):
                changed = [self.stmt(statement) for statement in statements]
                if all(a is b for a, b in zip(changed, statements, strict=True)):
                    return stmt
                return seq(item for item in changed if not is_nothing(item))
            case Allocate(buffer, body, origin):
                new = self.stmt(body)
                return stmt if new is body else Allocate(buffer, new, origin)
        raise AssertionError(stmt)

    def loop(self, loop: For) -> Stmt:
        extent = constant_extent(loop)
        if extent == 0:
            return NOTHING
        if extent == 1:
            body = substitute(loop.body, {loop.var: index_const(0)})
            return self.stmt(push_origin(body, loop.origin))
        if extent is not None:
            self.declare(loop.var, Interval(0, extent - 1))
        body = self.stmt(loop.body)
        if is_nothing(body):
            return NOTHING
        if body is loop.body:
            return loop
        return For(loop.var, loop.extent, loop.kind, body, loop.origin)

    def declare(self, var: Var, interval: Interval) -> None:
        """Set the range of a variable; a variable of two loops keeps what holds in both."""
        if self.ranges.get(var, interval) != interval:
            self.analyzer = Analyzer(self.ranges)
        self.ranges[var] = interval

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
    """Tell whether a statement is empty."""
    return isinstance(stmt, Seq) and not stmt.statements
