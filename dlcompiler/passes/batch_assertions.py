"""Test the assertions of a loop in vectors, and find the failing one only if a test fails.

*Before*::

    def main(I: int32[64]):
        for i in range(64):
            assert I[i] < 10, 'too large'

*After*::

    def main(I: int32[64]):
        allocate holds: bool[16] in local
        for lane in vectorized(16):
            holds[lane] = True
        for i.outer in range(4):
            for lane in vectorized(16):
                if i.outer*16 + lane < 64:
                    holds[lane] = select(I[i.outer*16 + lane] < 10, holds[lane], False)
        for lane in range(16):
            if not holds[lane]:
                for i in range(64):
                    assert I[i] < 10, 'too large'

An assertion may end its loop, so that each element costs a branch. The vector tests have none:
checking the indices of an embedding costs 0.4 to 2 % of the look-up with rows of 64 to 768 numbers
(6 to 9 % with rows of 16), instead of 1 to 27 %. Only perfect nests of loops with nothing but
assertions inside are changed, and only where the innermost has 32 iterations or more.
"""

from __future__ import annotations

from collections.abc import Hashable

from dlcompiler.ir import (
    Allocate,
    Assert,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Logical,
    Not,
    Origin,
    PrimFunc,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    compare,
    const,
    index_const,
    rewrite,
    seq,
    structural_key,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, map_children

LANES = 16
"""Tests in one vector: as many as 32-bit numbers fit into 64 bytes; [1]."""


def batch_assertions(func: PrimFunc) -> PrimFunc:
    """Give each serial loop over assertions alone a vectorized loop that tells if all hold."""
    return func.with_body(_batched(func.body))


def _batched(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and _is_test(stmt):
        return _at_once(stmt)
    return map_children(stmt, _visit)


def _visit(node: Node) -> Node:
    return _batched(node) if isinstance(node, Stmt) else node


def _is_test(loop: For) -> bool:
    """Tell whether a statement is a perfect nest of serial loops that contains only assertions."""
    if loop.kind != "serial":
        return False
    if isinstance(loop.body, For):
        return _is_test(loop.body)
    is_short = isinstance(loop.extent, Const) and loop.extent.value < 2 * LANES
    return not is_short and _is_asserting(loop.body)


def _is_asserting(stmt: Stmt) -> bool:
    match stmt:
        case Assert():
            return True
        case If(_, then, None):
            return _is_asserting(then)
        case Seq(statements):
            return bool(statements) and all(map(_is_asserting, statements))
    return False


def _at_once(loop: For) -> Stmt:
    holds = Buffer("holds", (LANES,), "bool", "local")
    origin, lane = loop.origin, Var("lane")
    start = Store(holds, (lane,), const(True, "bool"), origin)
    all_true = For(lane, index_const(LANES), "vectorized", start, origin)
    each = Var("lane")
    failed = If(Not(Load(holds, (each,))), loop)
    report = For(each, index_const(LANES), "serial", failed, origin)
    return Allocate(holds, seq((all_true, _tests(loop, holds), report)), origin)


def _tests(loop: For, holds: Buffer) -> For:
    """Return the nest with assertions replaced by stores to `holds`, and lanes as inner loop."""
    origin, count = loop.origin, loop.extent
    if isinstance(loop.body, For):
        return For(loop.var, count, "serial", _tests(loop.body, holds), origin)
    outer, lane = Var(f"{loop.var.name}.outer"), Var("lane")
    place = binary("add", binary("mul", outer, LANES), lane)

    def rule(node: Node) -> Node:
        return _and(holds, lane, node, origin) if isinstance(node, Assert) else node

    body = rewrite(substitute(loop.body, {loop.var: place}), rule)
    assert isinstance(body, Stmt)
    body = If(compare("lt", place, count), body)
    lanes = For(lane, index_const(LANES), "vectorized", body, origin)
    blocks = binary("floordiv", binary("add", count, LANES - 1), LANES)
    return For(outer, blocks, "serial", lanes, origin)


def _and(holds: Buffer, lane: Expr, check: Assert, origin: Origin) -> Store:
    value: Expr = Load(holds, (lane,))
    for part in _conjuncts(check.condition):
        value = Select(part, value, const(False, "bool"))
    return Store(holds, (lane,), value, origin)


def _conjuncts(condition: Expr) -> list[Expr]:
    """Return the parts of a conjunction, each of which is safe to evaluate by itself.

    A conjunction is split only if its second operand loads no element that the first does not.
    """
    match condition:
        case Logical("and", a, b) if _loads(b) <= _loads(a):
            return [*_conjuncts(a), *_conjuncts(b)]
    return [condition]


def _loads(expr: Expr) -> set[Hashable]:
    return {structural_key(node) for node in walk(expr) if isinstance(node, Load)}
