"""Decide which temporary buffers are arrays on the stack and which come from ``malloc``."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.errors import OutOfMemory
from dlcompiler.ir import Allocate, Buffer, For, Stmt
from dlcompiler.ir.rewrite import children
from dlcompiler.passes.flatten_storage import elements_spanned

STACK_BYTES = 16 * 1024
"""Most bytes on the stack for the temporaries of a function or of one iteration of a parallel loop;
further temporaries come from ``malloc``."""


def static_elements(buffer: Buffer) -> int | None:
    """Return the number of elements to allocate, at least 1; None if it depends on symbols."""
    count = elements_spanned(buffer)
    return max(count, 1) if isinstance(count, int) else None


def from_malloc(body: Stmt, *, is_parallel: bool) -> tuple[Buffer, ...]:
    """Return the buffers that come from ``malloc``.

    Parameters
    ----------
    body
        The body of the function, without its parallel loops, or the body of a parallel loop.
    is_parallel
        Whether it is the body of a parallel loop; parallel loops inside it run serially.
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
    """Return all buffers in the body of a function that come from ``malloc``."""
    found = [*from_malloc(body, is_parallel=False)]
    for loop in _parallel_loops(body):
        found += from_malloc(loop.body, is_parallel=True)
    return tuple(dict.fromkeys(found))


def no_memory(buffers: tuple[Buffer, ...]) -> str:
    """Return the message for a failed allocation."""
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
