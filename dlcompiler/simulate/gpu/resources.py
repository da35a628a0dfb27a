"""Registers and memory of a kernel: estimated from its program, or as an assembler found them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    walk,
    walk_statements,
)
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.gpu.program import OneThread
from dlcompiler.simulate.gpu.time_values import Body
from dlcompiler.simulate.gpu.unrolling import MOST_COPIES

RESERVED = 8
"""Registers that a kernel has besides the values that are counted here; [1]."""
MOST_REGISTERS = 255
"""Registers of a thread at most: beyond, values are spilled to memory; [1]."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel needs of a multiprocessor."""

    registers: int
    """Registers of a thread; [1]."""
    spill_bytes: int
    """Memory of a thread for values that have no register; [byte]."""
    shared_bytes: int
    """Shared memory of a block; [byte]."""
    local_bytes: int
    """Memory of a thread for arrays, and for what is spilled; [byte]."""
    source: str
    """Where the numbers come from: ``"estimated"``, or the assembler."""
    note: str = ""
    """Why they are estimated; '' if they are not."""

    @property
    def provenance(self) -> str:
        """The source, and why there is no better one."""
        return f"{self.source}: {self.note}" if self.note else self.source

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that ``json`` can write."""
        return asdict(self)


def shared_bytes_of(thread: OneThread) -> int:
    """Return the shared memory of a block; [byte]."""
    return sum(_bytes(buffer) for buffer in thread.shared)


def estimated(thread: OneThread, bodies: Sequence[Body] = ()) -> Resources:
    """Estimate the registers of a thread from its program.

    Each array of a thread is taken to be in registers. To these come two registers for the
    address of each other array, one for each thread axis and each loop around a statement, and
    those in which the value of one statement is computed (the Sethi-Ullman number of its tree).
    Copies to shared memory between two barriers are all loaded before the first one is stored, and
    what a piece of unrolled code loads from global memory before it is used.

    Parameters
    ----------
    thread
        What the thread does.
    bodies
        Its pieces of unrolled code, see `time_values.bodies_of`. One that keeps its order needs
        registers for the values that it uses again.
    """
    needed = _registers(thread.body, 0, set(thread.shared))
    needed = max([needed, *(body.results + body.early for body in bodies)])
    arrays = {node.buffer for node in walk(thread.body) if isinstance(node, Load | Store | Region)}
    own = {s.buffer for s in walk_statements(thread.body) if isinstance(s, Allocate)}
    needed += RESERVED + len(thread.axes) + 2 * len(arrays - own - set(thread.shared))
    spilled = 4 * max(needed - MOST_REGISTERS, 0)
    dense = max((b for b in bodies if b.keeps_its_order), key=lambda body: body.live, default=None)
    if dense is not None and dense.live:
        missing = max(needed + dense.live - MOST_REGISTERS, 0)
        spilled = max(spilled, 4 * math.ceil(dense.kept * min(missing / dense.live, 1)))
        needed += dense.live
    return Resources(
        min(needed, MOST_REGISTERS), spilled, shared_bytes_of(thread), spilled, "estimated"
    )


def _registers(stmt: Stmt, loops: int, shared: set[Buffer]) -> int:
    """Return the most registers that are in use at once inside a statement."""
    match stmt:
        case Allocate(buffer, body):
            return -(-_bytes(buffer) // 4) + _registers(body, loops, shared)
        case For(body=body):
            return max(_registers(body, loops + 1, shared), _in_flight(stmt, shared))
        case Seq(statements):
            parts = [_registers(part, loops, shared) for part in statements]
            return max([*parts, *_copied_together(statements, shared)], default=0)
    parts = [_registers(part, loops, shared) for part in children(stmt) if isinstance(part, Stmt)]
    own = max((_temporaries(value) for value in _values(stmt)), default=0)
    return max([own + loops, *parts])


def _copied_together(statements: Sequence[Stmt], shared: set[Buffer]) -> list[int]:
    """Return the registers of copies that stand between two barriers."""
    sums = [0]
    for stmt in statements:
        if isinstance(stmt, Barrier):
            sums.append(0)
        sums[-1] += _in_flight(stmt, shared)
    return sums


def _in_flight(stmt: Stmt, shared: set[Buffer]) -> int:
    """Return the registers of what a statement copies to shared memory if it loads all first."""
    match stmt:
        case For(body=body):
            extent = getattr(stmt.extent, "value", MOST_COPIES + 1)
            inner = _in_flight(body, shared)
            return inner * int(extent) if inner * extent <= MOST_COPIES else inner
        case If(_, then, None):
            return _in_flight(then, shared)
        case Store(buffer=buffer, value=Load(buffer=source)) if buffer in shared:
            return _words(stmt.value.dtype) if source not in shared else 0
    return 0


def _values(stmt: Stmt) -> Iterator[Expr]:
    return (part for part in children(stmt) if isinstance(part, Expr))


def _temporaries(expr: Expr) -> int:
    """Return how many registers the value of an expression is computed in.

    **Source:** R. Sethi, J. D. Ullman, "The Generation of Optimal Code for Arithmetic
    Expressions", J. ACM 17(4), 1970.
    """
    words = _words(expr.dtype)
    if isinstance(expr, Const | Var):
        return words
    needs = sorted((_temporaries(e) for e in children(expr) if isinstance(e, Expr)), reverse=True)
    return max([words, *(need + place for place, need in enumerate(needs))])


def _words(dtype: str) -> int:
    """Return the registers of a value."""
    return -(-dtypes.bytes_of(dtypes.element(dtype)) // 4) * dtypes.lanes(dtype)


def _bytes(buffer: Buffer) -> int:
    """Return the size of an array; 0 if it depends on symbols."""
    size = buffer.size if not buffer.is_static else math.prod(buffer.static_shape)
    if buffer.is_static and all(buffer.static_shape):
        last = zip(buffer.static_shape, buffer.static_strides, strict=True)
        size = 1 + sum((extent - 1) * stride for extent, stride in last)
    return (size if isinstance(size, int) else 0) * dtypes.bytes_of(buffer.dtype)
