"""Insert prefetches of the cache lines that a later iteration reads.

*Before*::

    def main(A: float32[64, 64], C: float32[64]):
        for i in range(64):  # prefetch.A = 4
            for k in range(64):
                C[i] += A[i, k]

*After*::

    def main(A: float32[64, 64], C: float32[64]):
        for i in range(64):
            if i + 4 < 64:
                for A.line in range(4):
                    prefetch A[i + 4, A.line*16]
            for k in range(64):
                C[i] += A[i, k]

The pragma ``prefetch.A = n`` at a loop is about the buffer A and the n-th next iteration. What the
loops inside read of A then must be a box that is known: nothing is prefetched for an index that is
read from memory, nor for a box of more than `MAX_LINES` lines, nor at a loop whose iterations run
at once. A hint may be left out; a wrong address would only cost time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval, Span, relax, union
from dlcompiler.arith.interval import INFINITY
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    PrimFunc,
    Stmt,
    Store,
    Var,
    binary,
    compare,
    free_vars,
    index_const,
    is_concurrent,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import statements

PRAGMA = "prefetch."
LINE_BYTES = 64
MAX_LINES = 256
"""Most lines of one buffer per iteration; more would evict lines that are needed sooner; [1]."""


def inject_prefetch(func: PrimFunc) -> PrimFunc:
    """Replace the pragmas ``prefetch.BUFFER = iterations`` by hints in the loops.

    Parameters
    ----------
    func
        A function of simplified indices without vector operations.
    """
    loops = [node for node in statements(func.body) if isinstance(node, For)]
    if not any(_pragmas(loop) for loop in loops):
        return func
    sizes = (extent for buffer in func.buffers for extent in buffer.shape)
    ranges = {size: Interval(0, INFINITY) for size in sizes if isinstance(size, Var)}
    return func.with_body(_visit(func.body, (), ranges))


def _pragmas(loop: For) -> list[tuple[str, int]]:
    return [
        (name.removeprefix(PRAGMA), int(value))
        for name, value in loop.annotations
        if name.startswith(PRAGMA)
    ]


def _visit(stmt: Stmt, around: tuple[For, ...], ranges: dict[Var, Interval]) -> Stmt:
    inside = (*around, stmt) if isinstance(stmt, For) else around

    def visit(node: Node) -> Node:
        return _visit(node, inside, ranges) if isinstance(node, Stmt) else node

    new = map_children(stmt, visit)
    if not isinstance(new, For) or not isinstance(stmt, For) or not (wanted := _pragmas(new)):
        return new
    hints = [hint for name, ahead in wanted if (hint := _hint(stmt, name, ahead, around, ranges))]
    notes = tuple(note for note in new.annotations if not note[0].startswith(PRAGMA))
    return replace(new, annotations=notes, body=seq((*hints, new.body)))


def _hint(
    loop: For, name: str, ahead: int, around: Sequence[For], ranges: dict[Var, Interval]
) -> Stmt | None:
    """Return the prefetch of the elements of a buffer that iteration `ahead` of a loop reads."""
    loads = [
        node for node in walk(loop.body) if isinstance(node, Load) and node.buffer.name == name
    ]
    own = {node.buffer for node in statements(loop.body) if isinstance(node, Allocate | Store)}
    if not loads or loads[0].buffer in own or is_concurrent(loop.kind):
        return None
    inner = [node for node in statements(loop.body) if isinstance(node, For)]
    analyzer = _analyzer((*around, loop, *inner), ranges)
    spans = _box(loads, {node.var for node in inner}, analyzer)
    known = {node.var for node in (*around, loop)} | set(ranges)
    if spans is None or not all(free_vars(span.first.to_expr()) <= known for span in spans):
        return None
    lines = _lines(loads[0].buffer, spans)
    if lines is None:
        return None
    later = binary("add", loop.var, ahead)
    return If(compare("lt", later, loop.extent), substitute(lines, {loop.var: later}))


def _analyzer(loops: Sequence[For], ranges: dict[Var, Interval]) -> Analyzer:
    known, extents = dict(ranges), {}
    for loop in loops:
        if isinstance(loop.extent, Const):
            widest = known.get(loop.var, Interval(0, 0))
            known[loop.var] = widest.hull(Interval(0, max(int(loop.extent.value) - 1, 0)))
        else:
            extents[loop.var] = loop.extent
    return Analyzer(known, extents)


def _box(loads: Sequence[Load], moving: set[Var], analyzer: Analyzer) -> list[Span] | None:
    """Return the range of indices that the loads together read in each dimension."""
    box: list[Span] = []
    for dimension in range(len(loads[0].indices)):
        total: Span | None = None
        for load in loads:
            span = relax(load.indices[dimension], moving, analyzer)
            total = span if total is None or span is None else union(total, span, analyzer)
            if total is None:
                return None
        assert total is not None
        box.append(total)
    return box


def _lines(buffer: Buffer, box: Sequence[Span]) -> Stmt | None:
    """Return loops over the cache lines of a box."""
    step = max(LINE_BYTES // dtypes.bytes_of(buffer.dtype), 1)
    indices: list[Expr] = []
    loops: list[tuple[Var, int]] = []
    count = 1
    for dimension, (span, stride) in enumerate(zip(box, buffer.strides, strict=True)):
        if not isinstance(span.extent, int):
            return None
        is_dense = stride == 1 if isinstance(stride, int) else False
        by = step if is_dense else 1
        extent = -(-span.extent // by)
        index = span.first.to_expr()
        if extent > 1:
            letter = "line" if is_dense else f"d{dimension}"
            var = Var(f"{buffer.name}.{letter}")
            loops.append((var, extent))
            index = binary("add", index, binary("mul", var, by))
        indices.append(index)
        count *= extent
    if not 0 < count <= MAX_LINES:
        return None
    body: Stmt = Prefetch(buffer, tuple(indices))
    for var, extent in reversed(loops):
        body = For(var, index_const(extent), "serial", body)
    return body
