"""Estimate of the steps that a program takes in the interpreter."""

from __future__ import annotations

from dlcompiler.ir import For, PrimFunc, Stmt
from dlcompiler.ir.rewrite import children


def count_steps(func: PrimFunc) -> int:
    """Count the statements and iterations that a run executes if all conditions hold."""

    def count(stmt: Stmt) -> int:
        inner = sum(count(child) for child in children(stmt) if isinstance(child, Stmt))
        if isinstance(stmt, For):
            return int(getattr(stmt.extent, "value", 1)) * (inner + 1)
        return inner + 1

    return count(func.body)
