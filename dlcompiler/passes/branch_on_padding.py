"""Copy elements under a branch, and store the padding in the other one.

*Before*::

    def main(A: float32[60], C: float32[64]):
        for x in threadIdx.x(16):
            allocate T: float32[64] in shared
            for v in vectorized(4):
                T[x*4 + v] = if_then_else(x*4 + v < 60, A[x*4 + v], 0.0)
            for v in vectorized(4):
                if x*4 + v < 60:
                    C[x*4 + v] = T[x*4 + v]

*After*::

    def main(A: float32[60], C: float32[64]):
        for x in threadIdx.x(16):
            allocate T: float32[64] in shared
            for v in vectorized(4):
                if x*4 < 60:
                    T[x*4 + v] = A[x*4 + v]
                else:
                    T[x*4 + v] = 0.0
            for v in vectorized(4):
                if x*4 < 60:
                    C[x*4 + v] = T[x*4 + v]

Under a branch, the copy is a load of a whole vector, and may be asynchronous. So a condition is
needed that is the same in all lanes: that of the first lane, where the end of the array is a
multiple of the lanes. Other conditions in vectorized loops stay: `vectorize_loops` makes masks of
them. Outside of vectorized loops, only copies to memory that threads share are changed, and only
where the pragma ``async_copy`` asks for it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    SHARED_SCOPES,
    Binary,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
    free_vars,
    index_const,
    logical,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import constant_extent
from dlcompiler.passes.lane_guards import conjuncts
from dlcompiler.passes.load_ahead import PRAGMA


def branch_on_padding(func: PrimFunc) -> PrimFunc:
    """Turn choices between a loaded element and a constant into branches.

    Parameters
    ----------
    func
        A function before vectorization.
    """
    return func.with_body(branches(func.body))


def branches(stmt: Stmt, *, is_copied: bool = False) -> Stmt:
    """Return a statement whose choices are branches; see `branch_on_padding`.

    Parameters
    ----------
    stmt
        A statement.
    is_copied
        Whether it is in a loop whose copies are to be asynchronous.
    """
    if isinstance(stmt, For) and stmt.kind == "vectorized":
        lanes = constant_extent(stmt)
        return stmt if lanes is None else replace(stmt, body=_in_lanes(stmt.body, stmt.var, lanes))
    if isinstance(stmt, Store):
        return _branches(stmt) if is_copied and stmt.buffer.scope in SHARED_SCOPES else stmt
    if isinstance(stmt, For) and dict(stmt.annotations).get(PRAGMA):
        is_copied = True
    return map_children(
        stmt, lambda node: branches(node, is_copied=is_copied) if isinstance(node, Stmt) else node
    )


def _in_lanes(body: Stmt, var: Var, lanes: int) -> Stmt:
    def rule(node: Node) -> Node:
        match node:
            case If(condition, then, None):
                same = _in_all_lanes(condition, var, lanes)
                return node if same is None else If(same, then)
            case Store(value=IfThenElse(condition)):
                same = _in_all_lanes(condition, var, lanes)
                return node if same is None else _branches(node, same)
        return node

    return rewrite(body, rule)


def _branches(store: Store, condition: Expr | None = None) -> Stmt:
    """Return a branch for each side of the stored choice, if one of them is a constant."""
    value = store.value
    if not isinstance(value, IfThenElse) or store.predicate is not None:
        return store
    sides = value.a, value.b
    if not any(isinstance(side, Const) for side in sides) or not any(map(_has_load, sides)):
        return store
    then, otherwise = (replace(store, value=side) for side in sides)
    return If(value.condition if condition is None else condition, then, otherwise)


def _has_load(expr: Expr) -> bool:
    return any(isinstance(node, Load) for node in walk(expr))


def _in_all_lanes(condition: Expr, var: Var, lanes: int) -> Expr | None:
    """Return a condition that is the given one in each lane; None if lanes may differ."""
    parts = []
    for part in conjuncts(condition):
        if _has_load(part) or (var in free_vars(part) and not _is_uniform(part, var, lanes)):
            return None
        first = substitute(part, {var: index_const(0)})
        parts.append(part if first is part else Analyzer({}).simplify(first))
    return logical("and", *parts)


def _is_uniform(part: Expr, var: Var, lanes: int) -> bool:
    """Tell whether a comparison has the same answer in all lanes.

    It asks for the sign of ``g*q + c + s*lane``, where g divides all other coefficients. The sign
    is that of ``q + (c + s*lane) // g``.
    """
    match part:
        case Compare("lt" | "le" | "gt" | "ge" as op, a, b) if a.dtype == "index":
            difference = Analyzer({}).affine(Binary("sub", a, b))
        case _:
            return False
    slope, others = 0, []
    for term in difference.terms.values():
        if term.atom is var:
            slope = term.factor
        elif var in free_vars(term.atom):
            return False
        else:
            others.append(term.factor)
    common = math.gcd(*others)
    constant = difference.constant - (op in ("le", "gt"))
    return common > 0 and constant // common == (constant + slope * (lanes - 1)) // common
