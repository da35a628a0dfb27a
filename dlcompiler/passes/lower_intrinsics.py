"""Replace calls of intrinsics by their statements.

*Before*::

    def main(A: float32[64, 2], C: float32[64]):
        for i.outer in range(16):
            C[i.outer*4 : +4] = row_sums(A[i.outer*4 : +4, 0 : +2])

*After*::

    def main(A: float32[64, 2], C: float32[64]):
        for i.outer in range(16):
            for r in range(4):
                C[i.outer*4 + r] = A[i.outer*4 + r, 0] + A[i.outer*4 + r, 1]

Only intrinsics that are defined by statements are replaced; calls of those with an emitter stay for
the code generator. The declaration of an intrinsic is not used.
"""

from __future__ import annotations

from dlcompiler.ir import IntrinsicCall, PrimFunc, Routine, Stmt, rewrite, routine_statement
from dlcompiler.ir.rewrite import Node


def lower_intrinsics(func: PrimFunc) -> PrimFunc:
    """Replace calls of intrinsics by their statements.

    Parameters
    ----------
    func
        Any function.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, IntrinsicCall) and isinstance(node.part, Routine):
            return routine_statement(node.part, node)
        return node

    return func.with_body(rewrite(func.body, rule))


def declared_loops(stmt: Stmt) -> Stmt:
    """Replace calls of intrinsics by the loops of their declarations.

    Parameters
    ----------
    stmt
        Any statement.
    """

    def rule(node: Node) -> Node:
        return node.body if isinstance(node, IntrinsicCall) else node

    return rewrite(stmt, rule)
