"""Check a program against the limits of its target: threads, memory, vectors, scopes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from dlcompiler import dtypes
from dlcompiler.errors import TargetError
from dlcompiler.ir import (
    SHARED_SCOPES,
    WARP,
    Allocate,
    Buffer,
    For,
    PrimFunc,
    Stmt,
    Store,
    is_thread,
    walk_statements,
)
from dlcompiler.ir.program import Program
from dlcompiler.ir.rewrite import children
from dlcompiler.passes.base import constant_extent, statements
from dlcompiler.target import Target

AXES = tuple(f"{level}Idx.{axis}" for level in ("block", "thread") for axis in "xyz")


def check_threads(func: PrimFunc, target: Target) -> None:
    """Refuse stores outside all threads, and more blocks, threads or lanes than a GPU has.

    Parameters
    ----------
    func
        A program whose loops are as the schedule names them.
    target
        A target of kind ``"gpu"``.

    Raises
    ------
    TargetError
        The message names the loops that exceed a limit.
    """
    for store in _outside_threads(func.body):
        raise TargetError(
            f"build {func.name} for {target.name}",
            f"{store.buffer.name} is computed outside any thread",
            because="a host cannot write the memory of a device",
            hint=f"bind a loop of its stage: s[{_stage_of(store)}].bind(loop, "
            'te.thread_axis("blockIdx.x"))',
        )
    for loops in _nests(func.body, ()):
        _check_axes(func, target, loops)
        _check_block(func, target, loops)
        _check_virtual(func, target, loops)
    inside = list(walk_statements(func.body))
    shares_warps = any(isinstance(n, Allocate) and n.buffer.scope == WARP for n in inside)
    for loop in inside:
        if isinstance(loop, For) and loop.kind == "vectorized":
            _check_lanes(func, target, loop)
        if isinstance(loop, For) and loop.kind == "threadIdx.x" and shares_warps:
            _check_warp(func, target, loop)


def check_blocks(program: Program, target: Target) -> None:
    """Refuse a kernel whose blocks have more threads than a GPU allows.

    `check_threads` refuses nests. A kernel has as many threads along each axis as the longest of
    its loops: with loops of 1024 threads along x, beside others of 64 along y, these are 65,536.

    Raises
    ------
    TargetError
        The message names the axes.
    """
    for launch in program.launches:
        tags = [tag for tag in launch.threads if tag.startswith("threadIdx")]
        threads = {tag: launch.count(tag) or 1 for tag in tags}
        _check_total(program.func, target, threads)


def check_scopes(func: PrimFunc, target: Target) -> None:
    """Refuse buffers in memory that a target does not have.

    Raises
    ------
    TargetError
        The message names the buffer and its memory scope.
    """
    # On a target without threads, shared and warp memory is ordinary memory. The generators for
    # such targets refuse more than one thread.
    ordinary = () if target.thread_axes else SHARED_SCOPES
    for node in statements(func.body):
        if not isinstance(node, Allocate) or node.buffer.scope in ordinary:
            continue
        if target.scope(node.buffer.scope) is None:
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"{node.buffer.name} is in memory that {target.name} does not have",
                got=repr(node.buffer.scope),
                expected=", ".join(repr(scope.name) for scope in target.scopes),
            )


def check_memory(func: PrimFunc, target: Target) -> None:
    """Refuse more memory for a block, or for a thread, than a GPU has.

    Parameters
    ----------
    func
        A program as code would be generated from it.
    target
        A target of kind ``"gpu"``.

    Raises
    ------
    TargetError
        The message names the buffers whose sum exceeds the limit.
    """
    for scope, limit, owner in (
        ("shared", "max_shared_bytes", "a block"),
        ("local", "max_local_bytes", "a thread"),
    ):
        size, buffers = _most_memory(func.body, scope)
        if size > target.limit(limit):
            names = ", ".join(f"{b.name} {_bytes(b)}" for b in buffers)
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"{owner} would need more {scope} memory than there is",
                got=f"{size} bytes: {names}",
                expected=f"at most {target.limit(limit)} bytes{_source(target)}",
                hint="compute smaller parts: split the loops they are computed for further",
            )


def _outside_threads(stmt: Stmt) -> Iterator[Store]:
    """Yield the stores in a statement that are outside all thread loops."""
    match stmt:
        case For() if is_thread(stmt.kind):
            return
        case Store():
            yield stmt
        case _:
            for part in children(stmt):
                if isinstance(part, Stmt):
                    yield from _outside_threads(part)


def _stage_of(store: Store) -> str:
    return store.origin[0].stage if store.origin else store.buffer.name


def _nests(stmt: Stmt, around: tuple[For, ...]) -> Iterator[tuple[For, ...]]:
    """Yield the loops around each store."""
    if isinstance(stmt, Store):
        yield around
        return
    inside = (*around, stmt) if isinstance(stmt, For) else around
    for part in children(stmt):
        if isinstance(part, Stmt):
            yield from _nests(part, inside)


def _check_axes(func: PrimFunc, target: Target, loops: tuple[For, ...]) -> None:
    for loop in loops:
        if loop.kind not in AXES:
            continue
        count = constant_extent(loop)
        if count is None and loop.kind.startswith("threadIdx"):
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"the number of threads of {loop.var.name} is not known",
                got=f"{loop.kind}: {loop.extent}",
                hint="split the loop by a number, and bind the inner one",
            )
        level, _, axis = loop.kind.partition("Idx.")
        limit = target.limit(f"max_{level}s_{axis}")
        if count is not None and count > limit:
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"{loop.var.name} asks for too many {level}s along {loop.kind}",
                got=str(count),
                expected=f"at most {limit}{_source(target)}",
                hint="split the loop, and bind both parts to axes of their own",
            )


def _check_block(func: PrimFunc, target: Target, loops: tuple[For, ...]) -> None:
    threads: dict[str, int] = {
        loop.kind: constant_extent(loop) or 1 for loop in loops if loop.kind.startswith("threadIdx")
    }
    _check_total(func, target, threads)


def _check_total(func: PrimFunc, target: Target, threads: Mapping[str, int]) -> None:
    total, limit = math.prod(threads.values()), target.limit("max_threads_per_block")
    if total > limit:
        parts = " × ".join(f"{tag} {count}" for tag, count in threads.items())
        raise TargetError(
            f"build {func.name} for {target.name}",
            "a block would have too many threads",
            got=f"{total}: {parts}",
            expected=f"at most {limit}{_source(target)}",
            hint="split the loops that are bound to threadIdx by smaller numbers",
        )


def _check_virtual(func: PrimFunc, target: Target, loops: tuple[For, ...]) -> None:
    virtual = [loop for loop in loops if loop.kind == "vthread"]
    total, limit = (
        math.prod(constant_extent(loop) or 1 for loop in virtual),
        target.limit("max_vthreads"),
    )
    if total > limit:
        raise TargetError(
            f"build {func.name} for {target.name}",
            "a thread would run too many virtual threads",
            got=f"{total}: {', '.join(loop.var.name for loop in virtual)}",
            expected=f"at most {limit}",
            hint="bind fewer iterations to vthread",
        )


def _check_warp(func: PrimFunc, target: Target, loop: For) -> None:
    """Refuse warp memory if the threads along x may belong to several warps."""
    count, size = constant_extent(loop), target.limits.get("warp_size", 1)
    if count is None or (count and size % count):
        raise TargetError(
            f"build {func.name} for {target.name}",
            f"the threads of {loop.var.name} share warp memory, but may belong to several warps",
            got=f"threadIdx.x {loop.extent}",
            expected=f"a number that divides {size}",
            hint='split the loop by such a number, or use "shared"',
        )


def _check_lanes(func: PrimFunc, target: Target, loop: For) -> None:
    count, limit = constant_extent(loop), target.limit("max_vector_bytes")
    for store in walk_statements(loop.body):
        if not isinstance(store, Store) or count is None:
            continue
        size = count * dtypes.bytes_of(store.buffer.dtype)
        if size > limit:
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"the vectorized loop {loop.var.name} stores too much at once",
                got=f"{size} bytes of {store.buffer.name}",
                expected=f"at most {limit} bytes{_source(target)}",
                hint=f"split the loop by {limit // dtypes.bytes_of(store.buffer.dtype)} first",
            )


def _source(target: Target) -> str:
    """Return the document of a target's limits, in parentheses; '' if it names none."""
    return f" ({target.limits_from})" if target.limits_from else ""


def _bytes(buffer: Buffer) -> int:
    size = buffer.size
    return (size if isinstance(size, int) else 0) * dtypes.bytes_of(buffer.dtype)


def _most_memory(stmt: Stmt, scope: str) -> tuple[int, tuple[Buffer, ...]]:
    """Return the peak memory of a scope, and the buffers that are live then."""
    parts = [_most_memory(part, scope) for part in children(stmt) if isinstance(part, Stmt)]
    size, buffers = max(parts, default=(0, ()), key=lambda found: found[0])
    if isinstance(stmt, Allocate) and stmt.buffer.scope == scope:
        size += _bytes(stmt.buffer) * (1 if stmt.double is None else 2)
        buffers = (stmt.buffer, *buffers)
    return size, buffers
