"""Temporary buffers: which go on the stack, and which into the call's workspace.

A workspace is a block that the runtime lends: ``ptr dlc_workspace_alloc(i64 bytes)`` and
``void dlc_workspace_free(ptr)``. Where there is no memory, the status gets the number of the
message that says so, as if an assertion had failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.addresses import span
from dlcompiler.codegen.llvm.writer import Module
from dlcompiler.errors import OutOfMemory
from dlcompiler.ir import Allocate, Buffer, Const, For, Stmt
from dlcompiler.ir.rewrite import Node, children

STACK_BYTES = 16 * 1024
"""What the buffers of one function may take of the stack; the others are in workspaces."""

ALIGNMENT = 64
"""Of every buffer that the generated code allocates [byte]."""

ABSURD_ELEMENTS = float(2**46)
"""More than any machine has room for, and few enough that their bytes do not overflow."""

NO_MEMORY = 1
"""Number of the message that says so: the first of a module that needs workspaces."""

_ALLOCATES = 'nounwind allockind("alloc,uninitialized") allocsize(0)'
_FREES = 'nounwind allockind("free")'
_FAMILY = '"alloc-family"="dlc_workspace"'


def size_bytes(buffer: Buffer) -> int:
    """Return what a buffer of fixed size takes [byte]; at least one element."""
    return max(span(buffer), 1) * dtypes.bytes_of(buffer.dtype)


def in_workspaces(body: Stmt, *, is_outlined: bool = False) -> tuple[Buffer, ...]:
    """Return the buffers that need a workspace.

    More may be named than there are, but none where there are none.

    Parameters
    ----------
    body
        Of a function.
    is_outlined
        Whether it is that of a parallel loop; else its parallel loops are functions of their own.
    """
    found: list[Buffer] = []
    for scope in [_allocated(_walk(body, None))] if is_outlined else _scopes(body):
        fixed = [buffer for buffer in scope if buffer.is_static]
        fits = sum(size_bytes(buffer) for buffer in fixed) <= STACK_BYTES
        found += [buffer for buffer in scope if not (buffer.is_static and fits)]
    return tuple(dict.fromkeys(found))


def message(buffers: Iterable[Buffer]) -> str:
    """Return what to say where there is no memory."""
    return f"{OutOfMemory.PROBLEM}: {', '.join(_with_size(buffer) for buffer in buffers)}"


def declare(module: Module) -> tuple[str, str]:
    """Declare what lends a workspace and what takes it back, and return both as operands."""
    lend = module.declare("dlc_workspace_alloc", "noalias ptr", "i64", f"{_ALLOCATES} {_FAMILY}")
    take = module.declare("dlc_workspace_free", "void", "ptr allocptr", f"{_FREES} {_FAMILY}")
    return lend, take


def is_outlined(loop: For) -> bool:
    """Tell whether a loop outside all parallel ones becomes a function of its own."""
    return loop.kind == "parallel" and not (
        isinstance(loop.extent, Const) and loop.extent.value <= 1
    )


def _scopes(body: Stmt) -> Iterator[Sequence[Buffer]]:
    """Yield the buffers that each function allocates: the main one, and one per outlined loop."""
    outlined: dict[int, For] = {}
    yield _allocated(_walk(body, outlined))
    for loop in outlined.values():
        yield _allocated(_walk(loop.body, None))


def _allocated(nodes: Iterable[Node]) -> Sequence[Buffer]:
    return list(dict.fromkeys(node.buffer for node in nodes if isinstance(node, Allocate)))


def _walk(node: Node, outlined: dict[int, For] | None) -> Iterator[Node]:
    """Yield the nodes from `node` down; loops to outline are put into `outlined` instead."""
    stack, seen = [node], set[int]()
    while stack:
        top = stack.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if outlined is not None and isinstance(top, For) and is_outlined(top):
            outlined[id(top)] = top
            continue
        yield top
        stack.extend(child for child in children(top) if isinstance(child, Stmt))


def _with_size(buffer: Buffer) -> str:
    if buffer.is_static:
        return f"{buffer.name} ({size_bytes(buffer)} bytes)"
    return f"{buffer.name} ({' × '.join(map(str, buffer.shape))} elements)"
