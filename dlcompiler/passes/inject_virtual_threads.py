"""Interleave virtual threads in one thread, statement by statement.

*Before*::

    def main(A: float32[64], C: float32[64]):
        for v in vthread(2):
            for t in threadIdx.x(32):
                allocate B: float32[1] in local
                B[0] = A[v*32 + t]*2.0
                C[v*32 + t] = B[0] + 1.0

*After*::

    def main(A: float32[64], C: float32[64]):
        for t in threadIdx.x(32):
            allocate B: float32[2, 1] in local
            B[0, 0] = A[0*32 + t]*2.0
            B[1, 0] = A[1*32 + t]*2.0
            C[0*32 + t] = B[0, 0] + 1.0
            C[1*32 + t] = B[1, 0] + 1.0

The loop of the virtual threads moves inward to the statements that depend on it, and is unrolled
there. A buffer of each virtual thread gets one more dimension, loops between are run once for all
of them, and they reach each barrier together. Their loads and arithmetic are then interleaved:
while one waits for memory, another computes. A statement that does not depend on the virtual thread
is executed once. Interleaving is legal because the iterations of a concurrent loop have no order.

**Source:** T. Chen et al., "TVM", OSDI 2018, section 4.4.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    extent_binary,
    index_const,
    rewrite,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.passes.base import constant_extent, in_copies, push_origin, statements


def inject_virtual_threads(
    func: PrimFunc, *, max_unrolled: int = 16, whole_nests: bool = False
) -> PrimFunc:
    """Replace loops of virtual threads by the statements of all of them in one thread.

    Parameters
    ----------
    func
        Any function without vector operations.
    max_unrolled
        With more virtual threads each statement gets a serial loop instead of copies; [1].
    whole_nests
        Whether loops around a single statement stay together, as an accelerator runs them by one
        instruction, and with them neighbours for the same engine: copies in, copies out, or
        computations. The copies of the threads are a loop of virtual threads. Otherwise statements
        alternate between the threads.

    Raises
    ------
    ScheduleError
        If the number of virtual threads is not a constant, or only some of them would reach a
        barrier.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "vthread":
            return _Injection(node, max_unrolled, whole_nests=whole_nests).run(
                push_origin(node.body, node.origin)
            )
        return node

    if not any(isinstance(stmt, For) and stmt.kind == "vthread" for stmt in statements(func.body)):
        return func
    return func.with_body(rewrite(func.body, rule))


class _Injection:
    """Replaces one loop of virtual threads by loops or copies around its statements."""

    def __init__(self, loop: For, max_unrolled: int, *, whole_nests: bool) -> None:
        count = constant_extent(loop)
        if count is None:
            raise ScheduleError(
                f"inject virtual threads {loop.var.name}",
                "the number of virtual threads is not a constant",
                got=str(loop.extent), hint="split the loop by a number, and bind the inner one",
            )  # fmt: skip
        for stmt in statements(loop.body):
            if isinstance(stmt, ExternCall):
                raise ScheduleError(
                    f"inject virtual threads {loop.var.name}",
                    f"they would call {stmt.name}",
                    because="an external function gets a whole buffer, not the copy of one thread",
                    hint="bind the loop to a thread, or leave it serial",
                )  # fmt: skip
        self.var, self.count = loop.var, count
        self.is_unrolled = count <= max_unrolled
        self.whole_nests = whole_nests
        self.own = {buffer: _with_copies(buffer, count) for buffer in own_buffers(loop)}
        """Private buffer of a virtual thread -> the buffer with one copy for each of them."""

    def run(self, stmt: Stmt) -> Stmt:
        """Return a statement that does the work of `stmt` for all virtual threads."""
        if not self.depends(stmt):
            return stmt
        if self.whole_nests and self.direction(stmt) is not None:
            return self.copies(stmt)
        match stmt:
            case Seq(items):
                return seq(map(self.run, self.grouped(items) if self.whole_nests else items))
            case Allocate():
                buffer = self.own.get(stmt.buffer, stmt.buffer)
                return replace(stmt, buffer=buffer, body=self.run(stmt.body))
            case Let() if not self.depends(stmt.value):
                return replace(stmt, body=self.run(stmt.body))
            case For() if not self.depends(stmt.extent):
                return replace(stmt, body=self.run(stmt.body))
            case If(condition, then, otherwise) if not self.depends(condition):
                rest = None if otherwise is None else self.run(otherwise)
                return If(condition, self.run(then), rest)
        if any(isinstance(inner, Barrier) for inner in statements(stmt)):
            raise ScheduleError(
                f"inject virtual threads {self.var.name}",
                "only some of the virtual threads would reach a barrier",
                got=str(stmt.condition if isinstance(stmt, If) else stmt),
                hint="attach what they share outside the condition",
            )
        return self.copies(stmt)

    def grouped(self, items: Iterable[Stmt]) -> Iterator[Stmt]:
        """Yield statements; nests of one direction that differ between the threads are one."""
        for direction, group in itertools.groupby(items, self.direction):
            if direction is None:
                yield from group
            else:
                yield seq(group)

    def direction(self, stmt: Stmt) -> str | None:
        """Return the direction of a nest that has no part which all threads share, else None."""
        leaves = (s for s in statements(stmt) if isinstance(s, Store | IntrinsicCall))
        return _direction(stmt) if all(map(self.depends, leaves)) else None

    def depends(self, node: Node) -> bool:
        """Tell whether an expression or statement differs between the virtual threads."""
        return differs(node, self.var, self.own)

    def copies(self, stmt: Stmt) -> Stmt:
        """Return one copy of a statement for each virtual thread, on its own buffers.

        Buffers allocated inside the statement need no copies.
        """
        inside = {part.buffer for part in statements(stmt) if isinstance(part, Allocate)}
        shared_out = {b: copy for b, copy in self.own.items() if b not in inside}
        own = in_copies(stmt, shared_out, self.var)
        if self.whole_nests:
            return For(self.var, index_const(self.count), "vthread", own)
        if not self.is_unrolled:
            return For(self.var, index_const(self.count), "serial", own)
        return seq(substitute(own, {self.var: index_const(n)}) for n in range(self.count))


def _direction(stmt: Stmt) -> str | None:
    """Return what a nest does: it moves data ``in`` or ``out``, or computes ``inside``.

    None if a statement is no nest: one store or call with loops and conditions around it, or
    several nests of the same direction one after another.
    """
    while isinstance(stmt, For) or (isinstance(stmt, If) and stmt.otherwise is None):
        stmt = stmt.body if isinstance(stmt, For) else stmt.then
    match stmt:
        case Seq(items):
            directions = {_direction(item) for item in items}
            return directions.pop() if len(directions) == 1 else None
        case IntrinsicCall():
            return "inside"
        case Store(buffer):
            if buffer.scope == "global":
                return "out"
            loads = (node for node in walk(stmt.value) if isinstance(node, Load))
            return "in" if any(load.buffer.scope == "global" for load in loads) else "inside"
    return None


def differs(node: Node, var: Var, own: Container[Buffer]) -> bool:
    """Tell whether an expression or statement differs between virtual threads.

    Parameters
    ----------
    node
        The expression or statement.
    var
        The variable of the virtual threads' loop.
    own
        The `own_buffers` of that loop.
    """
    return any(
        node is var
        or (isinstance(node, Load | Store | Prefetch) and node.buffer in own)
        or (isinstance(node, Allocate) and node.buffer in own)
        for node in walk(node)
    )


def own_buffers(loop: For) -> set[Buffer]:
    """Return the buffers inside a loop of virtual threads of which each of them needs a copy."""
    inside = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Allocate)}
    differing = _Differing(loop.var)
    before = -1
    while before != len(
        differing.buffers
    ):  # repeat until nothing changes: a buffer that differs makes others differ
        before = len(differing.buffers)
        differing.note(loop.body)
    return inside & differing.buffers


class _Differing:
    """The variables and buffers whose values differ between virtual threads."""

    def __init__(self, var: Var) -> None:
        self.vars = {var}
        self.buffers: set[Buffer] = set()

    def __contains__(self, node: Node) -> bool:
        return any(
            part in self.vars
            if isinstance(part, Var)
            else isinstance(part, Load) and part.buffer in self.buffers
            for part in walk(node)
        )

    def note(self, stmt: Stmt, *, is_under: bool = False) -> None:
        """Add what differs in a statement; `is_under`: perhaps not all virtual threads run it."""
        match stmt:
            case Store(buffer) if is_under or stmt in self:
                self.buffers.add(buffer)
            case Let(var, value) if value in self:
                self.vars.add(var)
            case For(_, decides) | If(decides):
                is_under = is_under or decides in self
        for part in children(stmt):
            if isinstance(part, Stmt):
                self.note(part, is_under=is_under)


def _with_copies(buffer: Buffer, count: int) -> Buffer:
    """Return a buffer with a new first dimension: the number of the virtual thread."""
    span = extent_binary("mul", buffer.shape[0], buffer.strides[0]) if buffer.shape else 1
    separators = tuple(place + 1 for place in buffer.separators)
    shape, strides = (count, *buffer.shape), (span, *buffer.strides)
    return replace(buffer, shape=shape, strides=strides, separators=separators)
