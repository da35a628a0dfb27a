"""Decide which temporary buffers are on the stack and which in workspaces.

The runtime allocates a workspace by ``ptr dlc_workspace_alloc(i64 bytes)`` and frees it by
``void dlc_workspace_free(ptr)``. If there is no memory, the status becomes the number of that
message, as if an assertion had failed.
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
"""Most bytes of stack for the buffers of one function; further buffers are in workspaces."""

ALIGNMENT = 64
"""Alignment of every buffer that the generated code allocates: a cache line; [byte]."""

ABSURD_ELEMENTS = float(2**46)
"""More elements than any machine can hold, and few enough that their bytes fit an i64."""

NO_MEMORY = 1
"""Number of the message of a failed allocation: the first in a module with workspaces."""

_ALLOCATES = 'nounwind allockind("alloc,uninitialized") allocsize(0)'
_FREES = 'nounwind allockind("free")'
_FAMILY = '"alloc-family"="dlc_workspace"'


def size_bytes(buffer: Buffer) -> int:
    """Return the size to allocate for a buffer of known shape [byte]: at least one element."""
    return max(span(buffer), 1) * dtypes.bytes_of(buffer.dtype)


def in_workspaces(body: Stmt, *, is_outlined: bool = False) -> tuple[Buffer, ...]:
    """Return the buffers that need a workspace.

    If the buffers of a function do not fit on the stack together, all of them are returned,
    although some will be on the stack. The result is empty exactly if no buffer needs a workspace.

    Parameters
    ----------
    body
        Body of a function.
    is_outlined
        Whether it is the body of an outlined parallel loop, in which parallel loops run serially.
    """
    found: list[Buffer] = []
    for scope in [_allocated(_walk(body, None))] if is_outlined else _scopes(body):
        fixed = [buffer for buffer in scope if buffer.is_static]
        fits = sum(size_bytes(buffer) for buffer in fixed) <= STACK_BYTES
        found += [buffer for buffer in scope if not (buffer.is_static and fits)]
    return tuple(dict.fromkeys(found))


def message(buffers: Iterable[Buffer]) -> str:
    """Return the message for a failed allocation."""
    return f"{OutOfMemory.PROBLEM}: {', '.join(_with_size(buffer) for buffer in buffers)}"


def declare(module: Module) -> tuple[str, str]:
    """Declare the functions that allocate and free a workspace; return both as operands."""
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
    """Yield `node` and all nodes below; store loops to outline in `outlined` instead."""
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
