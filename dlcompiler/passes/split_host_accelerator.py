"""Split a program into what an accelerator runs and what its host computes.

*Before*::

    def main(A: int8[64], C: int8[64]):
        allocate P: int8[64]
        allocate T: int32[64] in vta-pynq.acc
        for i in range(64):
            P[i] = A[-i + 63]
        for i in range(64):
            T[i] = int32(P[i])
        for i in range(64):
            C[i] = int8(T[i])

*After*::

    def main_kernel1(P: int8[64], C: int8[64]):
        allocate T: int32[64] in vta-pynq.acc
        for i in range(64):
            T[i] = int32(P[i])
        for i in range(64):
            C[i] = int8(T[i])

The host runs ``main_kernel0``, the loop that stores ``P``, and the accelerator ``main_kernel1``.
Nests that use memory of the accelerator are its own. Neighbours are one program of instructions, so
that the end of one and the beginning of the next overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dlcompiler.ir import (
    Allocate,
    Buffer,
    For,
    Load,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    rewrite,
    seq,
    walk,
)
from dlcompiler.ir.program import Program
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.split_host_device import launch_of

ORDINARY = ("global", "local", "shared", "warp")
"""Memory scopes that a host has."""


def split_host_accelerator(func: PrimFunc) -> Program:
    """Return the parts of a program in order, each a kernel of the host or of the accelerator.

    Parameters
    ----------
    func
        A function some of whose buffers are in memories of an accelerator.
    """
    temporaries: list[Buffer] = []
    parts: list[Stmt] = []
    for stmt in _parts(func.body, temporaries):
        if parts and is_of_accelerator(stmt) and is_of_accelerator(parts[-1]):
            parts[-1] = seq([parts[-1], stmt])
        else:
            parts.append(stmt if is_of_accelerator(stmt) else _of_host(stmt))
    names = (f"{func.name}_kernel{n}" for n in range(len(parts)))
    launches = (launch_of(func, name, (), part) for name, part in zip(names, parts, strict=True))
    return Program(func, tuple(launches), tuple(temporaries))


def is_of_accelerator(stmt: Stmt) -> bool:
    """Tell whether a statement uses memory of an accelerator."""
    return any(buffer.scope not in ORDINARY for buffer in _used(stmt))


def _of_host(stmt: Stmt) -> Stmt:
    """Return a statement for the host, which has no virtual threads: it runs them in turn."""

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "vthread":
            return replace(node, kind="serial")
        return node

    return rewrite(stmt, rule)


def _used(stmt: Stmt) -> Iterator[Buffer]:
    for node in walk(stmt):
        if isinstance(node, Load | Store | Allocate | Region):
            yield node.buffer


def _parts(stmt: Stmt, temporaries: list[Buffer]) -> Iterator[Stmt]:
    """Yield the statements of a program; buffers in DRAM are appended to `temporaries`."""
    match stmt:
        case Allocate(buffer, body) if buffer.scope == "global":
            temporaries.append(buffer)
            yield from _parts(body, temporaries)
        case Allocate(buffer, body) if buffer.scope not in ORDINARY:
            inner = list(_parts(body, temporaries))
            yield from _allocated(stmt, buffer, inner)
        case Seq(items):
            for item in items:
                yield from _parts(item, temporaries)
        case _:
            yield stmt


def _allocated(stmt: Allocate, buffer: Buffer, items: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements, with a buffer allocated around those from its first to its last use."""
    using = [n for n, item in enumerate(items) if buffer in set(_used(item))]
    if not using:
        yield from items
        return
    first, last = using[0], using[-1] + 1
    yield from items[:first]
    yield replace(stmt, body=seq(items[first:last]))
    yield from items[last:]
