"""Zero fill of buffers with elements that may be read or returned before they are written.

A fill is left out if the statements certainly write each element before they read it::

    for i in range(n):
        for j in range(m):
            c[i, j] = 0.0                   # the first use of c: each element, without a condition
            for k in range(l):
                c[i, j] += a[i, k]*b[k, j]  # until the loops end, only the element just written

This is recognised only for stores whose indices are loop variables; with other indices the fill
stays. A buffer that only external calls write is not filled: the calls are expected to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    Expr,
    Extent,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    const,
    extent_expr,
    is_thread,
    rewrite,
    seq,
    structural_equal,
    walk,
    walk_statements,
)
from dlcompiler.ir.rewrite import Node

Indices: TypeAlias = tuple[Expr, ...]


def with_zeros(body: Stmt, outputs: Sequence[Buffer], *, fills_unstored: bool = True) -> Stmt:
    """Insert loops that fill outputs and temporaries with 0, where they may be read unwritten.

    Parameters
    ----------
    body
        The statements.
    outputs
        The buffers that they return.
    fills_unstored
        Whether to fill a temporary to which nothing stores. In loop IR by hand such a temporary is
        a mistake, and a build refuses it; a fill would hide it.

    *Before*::

        for i in range(6):
            if a[i] > 2.0:
                c[i] = a[i]

    *After*::

        for d0 in range(6):
            c[d0] = 0.0
        for i in range(6):
            if a[i] > 2.0:
                c[i] = a[i]
    """
    launches = [
        node for node in walk_statements(body) if isinstance(node, For) and is_thread(node.kind)
    ]
    in_threads = {id(node) for launch in launches for node in walk(launch.body)}

    def rule(node: Node) -> Node:
        if isinstance(node, Allocate) and (fills_unstored or _is_stored(node.buffer, body)):
            is_shared = _has_threads(node.body) and id(node) not in in_threads
            return _fill_temporary(node, "blockIdx.x" if is_shared else "serial")
        return node

    filled = rewrite(body, rule)
    # With launches, no statement may stand outside of one: the fill becomes its own launch.
    kind: LoopKind = "blockIdx.x" if launches else "serial"
    needed = [buffer for buffer in outputs if _needs_fill(buffer, filled)]
    return seq([*(_fill(buffer, kind) for buffer in needed), filled])


def _fill_temporary(node: Allocate, kind: LoopKind) -> Allocate:
    if _needs_fill(node.buffer, node.body):
        return replace(node, body=seq([_fill(node.buffer, kind), node.body]))
    return node


def _has_threads(body: Stmt) -> bool:
    return any(isinstance(node, For) and is_thread(node.kind) for node in walk_statements(body))


def _needs_fill(buffer: Buffer, body: Stmt) -> bool:
    is_called = any(isinstance(node, Region) and node.buffer is buffer for node in walk(body))
    is_left = _is_stored(buffer, body) or not is_called
    return is_left and _first_written(buffer, body) is None


def _is_stored(buffer: Buffer, body: Stmt) -> bool:
    return any(isinstance(node, Store) and node.buffer is buffer for node in walk_statements(body))


def _fill(buffer: Buffer, kind: LoopKind = "serial") -> Stmt:
    """Return loops that write 0 to each element; the outermost loop has the kind `kind`."""
    places = [Var(f"d{n}") for n in range(len(buffer.shape))]
    made: Stmt = Store(buffer, tuple(places), const(0, buffer.dtype))
    loops = list(zip(places, buffer.shape, strict=True)) or [(Var("d0"), 1)]
    for place, extent in reversed(loops):
        is_outermost = place is loops[0][0]
        made = For(place, extent_expr(extent), kind if is_outermost else "serial", made)
    return made


# -- what is certainly written before it is read -----------------------------------------------


def _first_written(buffer: Buffer, body: Stmt, loops: tuple[For, ...] = ()) -> Indices | None:
    """Return the indices of the store that writes a whole buffer before its first other use.

    Parameters
    ----------
    buffer
        The memory.
    body
        Statements; the first one that uses `buffer` is examined.
    loops
        The loops around them.

    Returns
    -------
    tuple of Expr or None
        None if an element may be read before it is written, or is never written.
    """
    find = partial(_first_written, buffer)
    match body:
        case Store(indices=indices, value=value, predicate=None) if body.buffer is buffer:
            is_first = not any(_uses(buffer, part) for part in (*indices, value))
            return indices if is_first and _covers(buffer, indices, loops) else None
        case For(extent=extent):
            return None if _uses(buffer, extent) else find(body.body, (*loops, body))
        case Let(value=value):
            return None if _uses(buffer, value) else find(body.body, loops)
        case Allocate():
            return find(body.body, loops)
        case If(condition=condition, then=then, otherwise=Stmt() as otherwise):
            both = find(then, loops), find(otherwise, loops)
            if _uses(buffer, condition) or both[0] is None or both[1] is None:
                return None
            return both[0] if _same(both[0], both[1]) else None
        case Seq(statements):
            for number, statement in enumerate(statements):
                if _uses(buffer, statement):
                    found = find(statement, loops)
                    rest = seq(statements[number + 1 :])
                    return found if found and _keeps_to(buffer, rest, found, loops) else None
    return None


def _covers(buffer: Buffer, indices: Indices, loops: tuple[For, ...]) -> bool:
    """Tell whether a store in loops writes each element: each index is the variable of a loop."""
    free = list(loops)
    for index, extent in zip(indices, buffer.shape, strict=True):
        if isinstance(index, Const) and index.value == 0 and _equal(extent, 1):
            continue
        own = next((loop for loop in free if loop.var is index), None)
        if own is None or not _equal(own.extent, extent):
            return False
        free.remove(own)
    return all(isinstance(loop.extent, Const) and loop.extent.value > 0 for loop in free)


def _keeps_to(buffer: Buffer, rest: Stmt, indices: Indices, loops: tuple[For, ...]) -> bool:
    """Tell whether the statements after a store read only elements that it has written.

    Inside the loops of the store, this is only the element of the same iteration; after them, all.
    """
    if not any(loop.var is index for loop in loops for index in indices):
        return True
    for node in walk(rest):
        if isinstance(node, Region) and node.buffer is buffer:
            return False
        if isinstance(node, Load) and node.buffer is buffer and not _same(node.indices, indices):
            return False
    return True


def _same(one: Indices, other: Indices) -> bool:
    return all(a is b or _equal(a, b) for a, b in zip(one, other, strict=True))


def _equal(one: Extent, other: Extent) -> bool:
    return structural_equal(extent_expr(one), extent_expr(other), rename=False)


def _uses(buffer: Buffer, node: Expr | Stmt) -> bool:
    return any(getattr(part, "buffer", None) is buffer for part in walk(node))
