"""Repeat the bodies of unrolled loops.

*Before*::

    for i in unrolled(2):
        C[i] = A[i]

*After*::

    C[0] = A[0]
    C[1] = A[1]

It comes late: an unrolled tile makes every later pass pay.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import For, PrimFunc, Stmt, Store, index_const, rewrite, seq, substitute, walk
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.passes.base import constant_extent, push_origin

MAX_STATEMENTS = 8192
MAX_NODES = 250_000
"""Of the copies of one loop: a few seconds of lowering and compiling."""


def unroll_loops(func: PrimFunc, *, max_statements: int = MAX_STATEMENTS) -> PrimFunc:
    """Replace each unrolled loop by copies of its body.

    Parameters
    ----------
    func
        Any function.
    max_statements
        How many assignments the copies of one loop may hold; [1]. LLVM's time grows faster than
        their number.

    Raises
    ------
    ScheduleError
        If a loop would become longer than that, or have more than `MAX_NODES` operations. The
        schedule refuses most such loops when they are unrolled; attaching a stage elsewhere, or
        inlining one, can make a loop longer afterwards.
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, For) or node.kind != "unrolled":
            return node
        extent = constant_extent(node)
        if extent is None:
            return replace(node, kind="serial")
        _check_size(node.var.name, extent * _count_stores(node.body), "statements", max_statements)
        _check_size(node.var.name, extent * _count_nodes(node.body), "operations", MAX_NODES)
        body = push_origin(node.body, node.origin)
        return seq(substitute(body, {node.var: index_const(n)}) for n in range(extent))

    return func.with_body(rewrite(func.body, rule))


def _check_size(loop: str, size: int, unit: str, most: int) -> None:
    if size > most:
        raise ScheduleError(
            f"unroll loop {loop}",
            "the copies of its body are too many",
            got=f"{size} {unit}",
            expected=f"at most {most}",
            hint="unroll a shorter inner loop, or attach the stage at an inner loop",
        )


def _count_nodes(stmt: Stmt) -> int:
    return sum(1 for _ in walk(stmt))


def _count_stores(stmt: Stmt) -> int:
    """Count the assignments in a statement, shared ones as often as they occur."""
    if isinstance(stmt, Store):
        return 1
    return sum(_count_stores(child) for child in children(stmt) if isinstance(child, Stmt))
