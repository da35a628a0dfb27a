"""Turn vectorized loops into serial ones with a pragma, for languages without vectors.

*Before*::

    def main(A: float32[64], C: float32[64]):
        for i in range(8):
            for j in vectorized(8):
                C[i*8 + j] = A[i*8 + j]*2.0

*After*::

    def main(A: float32[64], C: float32[64]):
        for i in range(8):
            for j in range(8):  # vectorized = 1
                C[i*8 + j] = A[i*8 + j]*2.0

The lanes of a vectorized loop may run in any order, also one after another. The compiler of the
generated source may vectorize the loop again.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.ir import For, PrimFunc, rewrite
from dlcompiler.ir.rewrite import Node

PRAGMA = "vectorized"


def serialize_vectorized_loops(func: PrimFunc) -> PrimFunc:
    """Make each vectorized loop a serial one with the pragma ``vectorized = 1``.

    Parameters
    ----------
    func
        Any function.
    """
    return func.with_body(rewrite(func.body, _serial))


def _serial(node: Node) -> Node:
    if isinstance(node, For) and node.kind == "vectorized":
        return replace(node, kind="serial", annotations=(*node.annotations, (PRAGMA, 1)))
    return node
