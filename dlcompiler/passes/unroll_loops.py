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

from dlcompiler.ir import For, PrimFunc, index_const, rewrite, seq, substitute
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.base import constant_extent, push_origin


def unroll_loops(func: PrimFunc, *, max_extent: int = 4096) -> PrimFunc:
    """Replace each unrolled loop by copies of its body.

    Parameters
    ----------
    func
        Any function.
    max_extent
        A longer loop stays a serial one; [1].
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, For) or node.kind != "unrolled":
            return node
        extent = constant_extent(node)
        if extent is None or extent > max_extent:
            return For(node.var, node.extent, "serial", node.body, node.origin)
        body = push_origin(node.body, node.origin)
        return seq(substitute(body, {node.var: index_const(n)}) for n in range(extent))

    return func.with_body(rewrite(func.body, rule))
