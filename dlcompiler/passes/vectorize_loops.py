"""Turn vectorized loops into vector operations.

*Before*::

    for i in range(4):
        for j in vectorized(8):
            C[i, j] = A[i, j]*s[0]

*After*::

    for i in range(4):
        C[i, 0 : +8] = A[i, 0 : +8]*broadcast(s[0], 8)

A loop longer than the widest vector is first cut into equal pieces. Lanes are independent, so
statements may be vectorized one by one. A guard that differs between lanes runs the vector when it
holds for all of them, and a serial loop otherwise::

    for j in vectorized(8):             if i*8 + 7 < 100:
        if i*8 + j < 100:                   C[i*8 : +8] = A[i*8 : +8]
            C[i*8 + j] = A[i*8 + j]     else:
                                            for j in range(8):
                                                if i*8 + j < 100:
                                                    C[i*8 + j] = A[i*8 + j]

A statement that has no vector form (a choice that guards a load) keeps a serial loop around it.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Allocate,
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    free_vars,
    index_const,
    rewrite,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.base import constant_extent

MAX_LANES = 64


class _ScalarOnlyError(Exception):
    """The expression has no vector form."""


def vectorize_loops(func: PrimFunc, *, max_lanes: int = MAX_LANES) -> PrimFunc:
    """Replace vectorized loops by vector operations.

    Parameters
    ----------
    func
        A function; its vectorized loops are independent (the schedule saw to that).
    max_lanes
        Longer loops are cut into pieces of the largest divisor up to this; [lanes].
    """

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "vectorized":
            return _vectorize(node, max_lanes)
        return node

    return func.with_body(rewrite(func.body, rule))


def _vectorize(loop: For, max_lanes: int) -> Stmt:
    extent = constant_extent(loop)
    if extent is None:
        return replace(loop, kind="serial")
    lanes = max(n for n in range(1, max_lanes + 1) if extent % n == 0)
    if lanes == 1:
        return replace(loop, kind="serial")
    if lanes == extent:
        return _LoopVectorizer(loop, lanes).stmt(loop.body)
    chunk, lane = Var(f"{loop.var.name}.chunk"), Var(f"{loop.var.name}.lane")
    index = binary("add", binary("mul", chunk, lanes), lane)
    body = substitute(loop.body, {loop.var: index})
    inner = For(lane, index_const(lanes), "vectorized", body, loop.origin)
    vector = _LoopVectorizer(inner, lanes).stmt(body)
    return For(chunk, index_const(extent // lanes), "serial", vector, loop.origin)


class _LoopVectorizer:
    """Vectorizes the statements inside one loop."""

    def __init__(self, loop: For, lanes: int) -> None:
        self.loop = loop
        self.var = loop.var
        self.lanes = lanes
        self.memo: dict[int, tuple[Expr, Expr]] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        try:
            return self.vector_stmt(stmt)
        except _ScalarOnlyError:
            return For(self.var, self.loop.extent, "serial", stmt, self.loop.origin)

    def vector_stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Seq(statements):
                return seq(self.stmt(statement) for statement in statements)
            case Store(buffer, indices, value, origin):
                vector = self.widen(self.expr(value))
                target = tuple(self.expr(index) for index in indices)
                if all(dtypes.lanes(index.dtype) == 1 for index in target):
                    raise _ScalarOnlyError
                return Store(buffer, target, vector, (*origin, *self.loop.origin))
            case For(_, extent, _, body) if self.var not in free_vars(extent):
                return replace(stmt, body=self.stmt(body))
            case If(condition, then, otherwise) if self.var not in free_vars(condition):
                rest = None if otherwise is None else self.stmt(otherwise)
                return If(condition, self.stmt(then), rest)
            case If(condition, then, None):
                return If(
                    self.holds_in_all_lanes(condition),
                    self.vector_stmt(then),
                    For(self.var, self.loop.extent, "serial", stmt, self.loop.origin),
                )
            case Allocate():
                raise _ScalarOnlyError  # one copy would be shared by all lanes: keep the loop
        raise _ScalarOnlyError

    def holds_in_all_lanes(self, condition: Expr) -> Expr:
        """Return the condition, without the lane, under which `condition` holds in every lane.

        A comparison of sums is monotone in the lane, so the lane at one end decides.
        """
        match condition:
            case Logical("and", a, b):
                return Logical("and", self.holds_in_all_lanes(a), self.holds_in_all_lanes(b))
            case Call("likely", (inner,), dtype):
                return Call("likely", (self.holds_in_all_lanes(inner),), dtype)
            case Compare("lt" | "le" | "gt" | "ge" as op, a, b) if a.dtype == "index":
                difference = Analyzer({}).affine(Binary("sub", a, b))
                slope = 0
                for term in difference.terms.values():
                    if term.atom is self.var:
                        slope = term.factor
                    elif self.var in free_vars(term.atom):
                        raise _ScalarOnlyError
                rises = (slope > 0) == (op in ("lt", "le"))
                worst = self.lanes - 1 if rises else 0
                return substitute(condition, {self.var: index_const(worst)})
            case _ if self.var not in free_vars(condition):
                return condition
        raise _ScalarOnlyError

    def widen(self, expr: Expr) -> Expr:
        return expr if dtypes.lanes(expr.dtype) > 1 else Broadcast(expr, self.lanes)

    def expr(self, expr: Expr) -> Expr:
        """Return the vector of an expression's values in all lanes; a scalar if they agree."""
        known = self.memo.get(id(expr))
        if known is None:
            known = (expr, self.vector(expr))
            self.memo[id(expr)] = known
        return known[1]

    def vector(self, expr: Expr) -> Expr:  # noqa: C901  one case per node
        match expr:
            case Var():
                if expr is not self.var:
                    return expr
                return Ramp(index_const(0), index_const(1), self.lanes)
            case Const():
                return expr
            case Binary(op, a, b):
                return self.binary(expr, op, self.expr(a), self.expr(b))
            case Compare(op, a, b):
                x, y = self.pair(a, b)
                return expr if x is a and y is b else Compare(op, x, y)
            case Logical(op, a, b):
                x, y = self.pair(a, b)
                return expr if x is a and y is b else Logical(op, x, y)
            case Not(value):
                x = self.expr(value)
                return expr if x is value else Not(x)
            case Cast(value, dtype):
                x = self.expr(value)
                lanes = dtypes.lanes(x.dtype)
                return expr if x is value else Cast(x, dtypes.with_lanes(dtype, lanes))
            case Select(condition, a, b):
                return self.select(expr, condition, a, b)
            case IfThenElse(condition, a, b):
                c = self.expr(condition)
                if dtypes.lanes(c.dtype) > 1:
                    if not (_is_safe(a) and _is_safe(b)):
                        raise _ScalarOnlyError
                    return self.select(expr, condition, a, b)
                x, y = self.pair(a, b)
                return expr if x is a and y is b else IfThenElse(c, x, y)
            case Call(name, args, dtype):
                new = tuple(self.expr(arg) for arg in args)
                if all(dtypes.lanes(x.dtype) == 1 for x in new):
                    return expr
                vector = dtypes.with_lanes(dtype, self.lanes)
                return Call(name, tuple(self.widen(x) for x in new), vector)
            case Load(buffer, indices):
                new = tuple(self.expr(index) for index in indices)
                if all(x is y for x, y in zip(new, indices, strict=True)):
                    return expr
                return Load(buffer, new)
        raise _ScalarOnlyError

    def pair(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        x, y = self.expr(a), self.expr(b)
        if dtypes.lanes(x.dtype) == dtypes.lanes(y.dtype):
            return x, y
        return self.widen(x), self.widen(y)

    def select(self, expr: Expr, condition: Expr, a: Expr, b: Expr) -> Expr:
        c, x, y = self.expr(condition), self.expr(a), self.expr(b)
        if all(dtypes.lanes(item.dtype) == 1 for item in (c, x, y)):
            return expr
        return Select(self.widen(c), self.widen(x), self.widen(y))

    def binary(self, expr: Binary, op: str, a: Expr, b: Expr) -> Expr:
        if dtypes.lanes(a.dtype) == 1 and dtypes.lanes(b.dtype) == 1:
            return expr
        match op, a, b:
            case "add", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("add", base, b), stride, lanes)
            case "add", _, Ramp(base, stride, lanes) if dtypes.lanes(a.dtype) == 1:
                return Ramp(binary("add", a, base), stride, lanes)
            case "sub", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("sub", base, b), stride, lanes)
            case "mul", Ramp(base, stride, lanes), _ if dtypes.lanes(b.dtype) == 1:
                return Ramp(binary("mul", base, b), binary("mul", stride, b), lanes)
            case "mul", _, Ramp(base, stride, lanes) if dtypes.lanes(a.dtype) == 1:
                return Ramp(binary("mul", a, base), binary("mul", a, stride), lanes)
        return Binary(expr.op, self.widen(a), self.widen(b))


def _is_safe(expr: Expr) -> bool:
    """Tell whether an expression may be evaluated although it was not chosen."""
    return not any(isinstance(item, Load) for item in walk(expr))
