"""Temporaries: small ones are arrays on the stack, the others come from ``malloc``."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.errors import OutOfMemory
from dlcompiler.ir import Allocate, Buffer, For, Stmt
from dlcompiler.ir.rewrite import children
from dlcompiler.passes.flatten_storage import elements_spanned

STACK_BYTES = 16 * 1024
"""What the temporaries of the function, or of an iteration of a parallel loop, take of the stack;
the others come from ``malloc``."""


def static_elements(buffer: Buffer) -> int | None:
    """Return how many elements a buffer takes, at least one; None where symbols decide."""
    count = elements_spanned(buffer)
    return max(count, 1) if isinstance(count, int) else None


def from_malloc(body: Stmt, *, is_parallel: bool) -> tuple[Buffer, ...]:
    """Return the buffers that come from ``malloc``.

    Parameters
    ----------
    body
        Of the function, whose parallel loops have their own; or of one of these.
    is_parallel
        Whether it is that of a parallel loop, in which others run serially.
    """
    left, found = STACK_BYTES, []
    for buffer in dict.fromkeys(_allocated(body, is_parallel)):
        count = static_elements(buffer)
        size = None if count is None else count * dtypes.bytes_of(buffer.dtype)
        if size is not None and size <= left:
            left -= size
        else:
            found.append(buffer)
    return tuple(found)


def all_from_malloc(body: Stmt) -> tuple[Buffer, ...]:
    """Return the buffers that come from ``malloc`` anywhere in a function of this body."""
    found = [*from_malloc(body, is_parallel=False)]
    for loop in _parallel_loops(body):
        found += from_malloc(loop.body, is_parallel=True)
    return tuple(dict.fromkeys(found))


def no_memory(buffers: tuple[Buffer, ...]) -> str:
    """Return what to say where there is no memory."""
    return f"{OutOfMemory.PROBLEM}: {', '.join(buffer.name for buffer in buffers)}"


def _allocated(stmt: Stmt, is_parallel: bool) -> Iterator[Buffer]:
    if isinstance(stmt, Allocate):
        yield stmt.buffer
    for child in children(stmt):
        is_own = is_parallel or not (isinstance(child, For) and child.kind == "parallel")
        if isinstance(child, Stmt) and is_own:
            yield from _allocated(child, is_parallel)


def _parallel_loops(stmt: Stmt) -> Iterator[For]:
    """Yield the outermost parallel loops."""
    if isinstance(stmt, For) and stmt.kind == "parallel":
        yield stmt
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _parallel_loops(child)
