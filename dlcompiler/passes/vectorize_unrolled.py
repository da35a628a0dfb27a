"""Turn unrolled loops of independent assignments into vector operations.

*Before*::

    def main(A: float32[4], B: float32[4], C: float32[4, 4]):
        for i in unrolled(4):
            for j in unrolled(4):
                C[i, j] += A[i]*B[j]

*After*::

    def main(A: float32[4], B: float32[4], C: float32[4, 4]):
        for i in unrolled(4):
            C[i, 0 : +4] += broadcast(A[i], 4)*B[0 : +4]

It is for the program of a CPU that simulates a GPU, which LLVM does not optimize: such a loop would
compute the addresses of each element anew. Iterations are independent if they store to neighbouring
elements, and if what they read of an array that they store is the element at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Binary,
    Cast,
    Const,
    Expr,
    For,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    free_vars,
    rewrite,
    structural_equal,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.base import constant_extent
from dlcompiler.passes.vectorize_loops import vectorized

_EXTENTS = (2, 4, 8, 16)


def vectorize_unrolled(func: PrimFunc) -> PrimFunc:
    """Replace unrolled loops of independent assignments by vector operations.

    Parameters
    ----------
    func
        A function without vectorized loops; it may have vectors.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "unrolled" and _is_independent(node):
            return vectorized(node, max(_EXTENTS))
        return node

    return func.with_body(rewrite(func.body, rule))


def _is_independent(loop: For) -> bool:
    """Tell whether a loop consists of assignments whose iterations do not depend on each other."""
    stores = [*(loop.body.statements if isinstance(loop.body, Seq) else (loop.body,))]
    if constant_extent(loop) not in _EXTENTS or not all(map(_is_plain, stores)):
        return False
    accesses = [node for stmt in stores for node in walk(stmt) if isinstance(node, Store | Load)]
    written = {access.buffer for access in accesses if isinstance(access, Store)}
    moving: dict[object, list[tuple[int, Expr] | None]] = {}
    for access in accesses:
        place = _moving(access, loop.var)
        if access.buffer in written:
            moving.setdefault(access.buffer, []).append(place)
        elif place is None and _depends(access.indices, loop.var):
            return False
    return all(_are_same(places) for places in moving.values())


def _is_plain(stmt: Stmt) -> bool:
    """Tell whether a statement assigns scalar arithmetic to an element, without a condition."""
    known = Store | Load | Binary | Const | Var | Cast
    return isinstance(stmt, Store) and all(
        isinstance(node, known) and getattr(node, "predicate", None) is None
        for node in walk(stmt)
    )  # fmt: skip


def _moving(access: Store | Load, var: Var) -> tuple[int, Expr] | None:
    """Return the only index in which a variable occurs, with its dimension.

    It must be a variable's own plus what does not depend on it, along neighbouring elements; else
    the result is None.
    """
    found = [(n, index) for n, index in enumerate(access.indices) if _depends((index,), var)]
    if len(found) != 1:
        return None
    dimension, index = found[0]
    is_last = access.buffer.strides[dimension] == 1
    form = Analyzer({}).affine(index)
    terms = [term for term in form.terms.values() if _depends(term.parts, var)]
    is_step = len(terms) == 1 and terms[0].atom is var and terms[0].factor == 1
    return found[0] if is_last and is_step else None


def _are_same(places: list[tuple[int, Expr] | None]) -> bool:
    """Tell whether accesses of an array that is stored move along it together."""
    first = places[0]
    return first is not None and all(
        place is not None
        and place[0] == first[0]
        and structural_equal(place[1], first[1], rename=False)
        for place in places
    )


def _depends(indices: Iterable[Expr], var: Var) -> bool:
    return any(var in free_vars(index) for index in indices)
