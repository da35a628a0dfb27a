"""Keep values that the next iteration reuses in a circular buffer, and compute only new ones.

*Before*::

    def main(A: float32[17, 16], C: float32[8, 16]):
        for y in range(8):
            allocate P: float32[3, 16], rolling by [2, 0] per y
            for P.y in range(3):
                for x in range(16):
                    P[P.y, x] = A[y*2 + P.y, x]*2.0
            for x in range(16):
                C[y, x] = P[0, x] + P[2, x]

*After*::

    def main(A: float32[17, 16], C: float32[8, 16]):
        allocate P: float32[3, 16]
        for y in range(8):
            if y >= 1:
                for P.y in range(3):
                    if P.y >= 1:
                        for x in range(16):
                            P[(y*2 + P.y) % 3, x] = A[y*2 + P.y, x]*2.0
            else:
                for P.y in range(3):
                    for x in range(16):
                        P[(y*2 + P.y) % 3, x] = A[y*2 + P.y, x]*2.0
            for x in range(16):
                C[y, x] = P[(y*2 + 0) % 3, x] + P[(y*2 + 2) % 3, x]

The schedule has proved that the window moves by that step in each iteration, and that iteration 0
runs first. Loop variables stay relative to the window, the same in each iteration, so that
`partition_loops` can remove the conditions: it leaves a first iteration and a steady loop over the
new elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    Extent,
    For,
    If,
    Let,
    Load,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Window,
    binary,
    compare,
    extent_binary,
    extent_expr,
    free_vars,
    rewrite,
    seq,
    structural_key,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import statements


def inject_rolling_buffer(func: PrimFunc) -> PrimFunc:
    """Move rolling buffers out of their loops, and compute only the new elements in each iteration.

    Parameters
    ----------
    func
        Any function without vector operations. A buffer whose loop has gone, since it runs once,
        is left as it is.
    """
    if not any(isinstance(node, Allocate) and node.window for node in statements(func.body)):
        return func
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    """Transform the rolling buffers of inner loops, then those of the statement itself."""

    def inside(node: Node) -> Node:
        return _visit(node) if isinstance(node, Stmt) else node

    stmt = map_children(stmt, inside)
    if not isinstance(stmt, For):
        return stmt
    result: Stmt = stmt
    for allocate in reversed(list(_allocations(stmt.body))):
        window = allocate.window
        if window is None or window.var is not stmt.var:
            continue
        if result is stmt:
            result = replace(stmt, body=_without(stmt.body, stmt))
        result = _circular(result, allocate.buffer, window)
        result = Allocate(allocate.buffer, result, allocate.origin)
    return result


def _allocations(stmt: Stmt) -> Iterator[Allocate]:
    """Yield the allocations in a statement, but not those in its loops."""
    match stmt:
        case For():
            return
        case Allocate():
            yield stmt
    for child in _parts(stmt):
        yield from _allocations(child)


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements directly inside a statement."""
    match stmt:
        case Seq(items):
            return items
        case For() | Allocate() | Let():
            return (stmt.body,)
        case If(_, then, otherwise):
            return (then,) if otherwise is None else (then, otherwise)
    return ()


def _without(stmt: Stmt, loop: For) -> Stmt:
    """Return the body of a loop that computes only the new elements of its rolling buffers."""
    if isinstance(stmt, For):
        return stmt

    def inside(node: Node) -> Node:
        return _without(node, loop) if isinstance(node, Stmt) else node

    if isinstance(stmt, Allocate) and stmt.window and stmt.window.var is loop.var:
        return _without(_filled(stmt.body, stmt.buffer, stmt.window), loop)
    return map_children(stmt, inside)


def _filled(stmt: Stmt, buffer: Buffer, window: Window) -> Stmt:
    """Return a statement that fills a buffer in iteration 0, and adds new elements afterwards."""
    match stmt:
        case Allocate() | Let():
            return replace(stmt, body=_filled(stmt.body, buffer, window))
        case Seq(items):
            return seq(_filled(item, buffer, window) for item in items)
    if not any(_stores(stmt, buffer)):
        return stmt
    return If(compare("ge", window.var, 1), _added(stmt, buffer, window), stmt)


def _added(stmt: Stmt, buffer: Buffer, window: Window) -> Stmt:
    """Return a statement that computes the elements that one step adds to the window."""
    (n,) = (n for n, step in enumerate(window.steps) if step)
    old = extent_binary("sub", buffer.shape[n], window.steps[n])

    def inside(node: Node) -> Node:
        if not isinstance(node, Stmt):
            return node
        rows = {structural_key(s.indices[n]): s.indices[n] for s in _stores(node, buffer)}
        if not rows:
            return node
        inner = {item.var for item in statements(node) if isinstance(item, For | Let)}
        (row, *others) = rows.values()
        if others or isinstance(node, Seq) or free_vars(row) & inner:
            return map_children(node, inside)
        return If(compare("ge", row, extent_expr(old)), node)

    result = inside(stmt)
    assert isinstance(result, Stmt)
    return result


def _stores(stmt: Stmt, buffer: Buffer) -> Iterator[Store]:
    for node in statements(stmt):
        if isinstance(node, Store) and node.buffer is buffer:
            yield node


def _circular(stmt: Stmt, buffer: Buffer, window: Window) -> Stmt:
    """Make the indices of a buffer circular, so that reused elements keep their place."""

    def place(index: Expr, extent: Extent, step: int) -> Expr:
        if not step:
            return index
        element = binary("add", binary("mul", window.var, step), index)
        return binary("floormod", element, extent_expr(extent))

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store | Prefetch) and node.buffer is buffer:
            dimensions = zip(node.indices, buffer.shape, window.steps, strict=True)
            indices = tuple(place(*dimension) for dimension in dimensions)
            return replace(node, indices=indices)
        return node

    return rewrite(stmt, rule)
