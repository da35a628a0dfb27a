"""Fill one half of a buffer for the next iteration while the other half is read.

*Before*::

    def main(A: float32[64], C: float32[64]):
        for i in range(8):
            allocate B: float32[8], twice
            for j in range(8):
                B[j] = A[i*8 + j]
            for j in range(8):
                C[i*8 + j] = B[7 - j]*2.0

*After*::

    def main(A: float32[64], C: float32[64]):
        allocate B: float32[2, 8]
        for j in range(8):
            B[0, j] = A[0*8 + j]
        for i in range(8):
            if i + 1 < 8:
                for j in range(8):
                    B[(i + 1) % 2, j] = A[(i + 1)*8 + j]
            for j in range(8):
                C[i*8 + j] = B[i % 2, 7 - j]*2.0

What fills the buffer must be a part of its own at the top of the allocation, and must read nothing
that the loop computes. `partition_loops` then takes the condition out: what is left is a prologue,
a steady loop, and a last iteration. With `split_loop` the loop is cut in groups of that many
iterations, to be unrolled: in groups of two the halves have fixed places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dlcompiler import dtypes
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    compare,
    index_const,
    is_concurrent,
    logical,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import constant_extent, in_copies, push_origin, statements
from dlcompiler.passes.flatten_storage import elements_spanned


def inject_double_buffer(func: PrimFunc, *, split_loop: int = 1) -> PrimFunc:
    """Give buffers that are allocated twice two halves, and fill one ahead.

    Parameters
    ----------
    func
        Any function without vector operations.
    split_loop
        Iterations of each group of the loop around; [1].

    Raises
    ------
    ScheduleError
        If a buffer cannot be filled ahead: it is in no loop, in one that runs once or whose
        iterations run at once, or what fills it needs what the loop computes.
    """
    if not any(isinstance(node, Allocate) and node.is_double for node in statements(func.body)):
        return func
    body = _visit(func.body, split_loop)
    for wanted in _wanted(body):
        raise _refusal(wanted.allocate.buffer, "it is in no loop")
    return func.with_body(body)


def _refusal(buffer: Buffer, because: str, hint: str | None = None) -> ScheduleError:
    return ScheduleError(
        f"double buffer {buffer.name}", "it cannot be filled one iteration ahead",
        because=because, hint=hint or "attach the stage at a serial loop of several iterations",
    )  # fmt: skip


@dataclass(frozen=True)
class _Wanted:
    """A buffer to double, and the conditions between it and the loop around."""

    allocate: Allocate
    conditions: tuple[Expr, ...]


def _wanted(stmt: Stmt, conditions: tuple[Expr, ...] = ()) -> Iterator[_Wanted]:
    """Yield the buffers to double in a statement, but not those in its loops."""
    match stmt:
        case Allocate():
            if stmt.is_double:
                yield _Wanted(stmt, conditions)
            yield from _wanted(stmt.body, conditions)
        case Seq(statements):
            for statement in statements:
                yield from _wanted(statement, conditions)
        case If(condition, then, otherwise):
            yield from _wanted(then, (*conditions, condition))
            if otherwise is not None:
                for wanted in _wanted(otherwise):
                    raise _refusal(wanted.allocate.buffer, "it is filled in an else")
        case Let():
            for wanted in _wanted(stmt.body):
                raise _refusal(wanted.allocate.buffer, f"it depends on {stmt.var.name}")


def _visit(stmt: Stmt, split_loop: int) -> Stmt:
    """Double the buffers of the inner loops, then those of the statement itself."""

    def inside(node: Node) -> Node:
        return _visit(node, split_loop) if isinstance(node, Stmt) else node

    stmt = map_children(stmt, inside)
    if not isinstance(stmt, For):
        return stmt
    loop, around = stmt, []
    while wanted := next(_wanted(loop.body), None):
        doubled, prologue, loop = _ahead(loop, wanted)
        around.append((doubled, wanted.allocate.origin, prologue))
    if not around:
        return stmt
    result: Stmt = _split(loop, split_loop)
    for doubled, origin, prologue in reversed(around):
        result = Allocate(doubled, seq((prologue, result)), origin)
    return result


def _ahead(loop: For, wanted: _Wanted) -> tuple[Buffer, Stmt, For]:
    """Return the doubled buffer, what fills it for the first iteration, and the new loop."""
    allocate, conditions = wanted.allocate, wanted.conditions
    buffer = allocate.buffer
    _check_loop(loop, buffer)
    fill, rest = _parted(allocate.body, buffer)
    rest = _replaced(loop.body, allocate, rest)
    _check_independent(loop, (fill, *conditions), rest, buffer)
    doubled = _doubled(buffer)

    def filled(value: Expr, half: Expr, *guards: Expr) -> Stmt:
        put, guards = in_copies(fill, {buffer: doubled}, half), (*guards, *conditions)
        body = If(logical("and", *guards), put) if guards else put
        return substitute(body, {loop.var: value})

    more = compare("lt", loop.var, loop.extent)
    runs = () if constant_extent(loop) else (more,)
    zero, following = index_const(0), binary("add", loop.var, 1)
    prologue = push_origin(filled(zero, zero, *runs), loop.origin)
    # At the top of the body: the conditions around the allocation are those of this iteration.
    half = binary("floormod", loop.var, 2)
    body = seq((filled(following, half, more), in_copies(rest, {buffer: doubled}, half)))
    return doubled, prologue, replace(loop, body=body)


def _check_loop(loop: For, buffer: Buffer) -> None:
    if is_concurrent(loop.kind):
        raise _refusal(buffer, f"the iterations of {loop.var.name} run at once")
    if constant_extent(loop) in (0, 1):
        raise _refusal(buffer, f"the loop {loop.var.name} runs once")


def _parted(body: Stmt, buffer: Buffer) -> tuple[Stmt, Stmt]:
    """Return what fills a buffer, and an allocation's body without it."""
    if isinstance(body, Allocate):
        fill, rest = _parted(body.body, buffer)
        return fill, replace(body, body=rest)
    statements = body.statements if isinstance(body, Seq) else (body,)
    writers = [n for n, statement in enumerate(statements) if buffer in _written(statement)]
    if not writers or len(writers) == len(statements):
        raise _refusal(buffer, "what fills it is not apart from what reads it")
    first, end = writers[0], writers[-1] + 1
    if end - first != len(writers):
        raise _refusal(buffer, "something else happens while it is filled")
    return seq(statements[first:end]), seq((*statements[:first], *statements[end:]))


def _check_independent(loop: For, ahead: Sequence[Stmt | Expr], rest: Stmt, buffer: Buffer) -> None:
    """Refuse what cannot run before the rest of the iteration before."""
    nodes = [node for part in ahead for node in walk(part)]
    own = {node.buffer for node in nodes if isinstance(node, Allocate)} | {buffer}
    if others := {node.buffer for node in nodes if isinstance(node, Store)} - own:
        raise _refusal(buffer, f"{_names(others)} would be written ahead, too")
    read = {node.buffer for node in nodes if isinstance(node, Load)}
    if needed := (read - own) & _written(rest):
        raise _refusal(
            buffer, f"it needs {_names(needed)}, which the loop {loop.var.name} computes",
            hint="attach what it needs outside the loop",
        )  # fmt: skip


def _names(buffers: set[Buffer]) -> str:
    return ", ".join(sorted(buffer.name for buffer in buffers))


def _written(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in walk(stmt) if isinstance(node, Store)}


def _doubled(buffer: Buffer) -> Buffer:
    """Return two of a buffer, one behind the other, both aligned."""
    size = elements_spanned(buffer)
    if isinstance(size, int):
        unit = max(buffer.alignment // dtypes.bytes_of(buffer.dtype), 1)
        if size * dtypes.bytes_of(buffer.dtype) >= buffer.alignment:
            size = -(-size // unit) * unit
    separators = tuple(place + 1 for place in buffer.separators)
    shape, strides = (2, *buffer.shape), (size, *buffer.strides)
    return replace(buffer, shape=shape, strides=strides, separators=separators)


def _replaced(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """Return a statement with one statement in it replaced."""
    if stmt is old:
        return new

    def inside(node: Node) -> Node:
        return _replaced(node, old, new) if isinstance(node, Stmt) else node

    return map_children(stmt, inside)


def _split(loop: For, group: int) -> For:
    """Return a loop over groups of iterations, which are to be unrolled."""
    extent = constant_extent(loop)
    if group < 2 or extent is None or extent <= group:
        return loop
    outer, inner = Var(f"{loop.var.name}.outer"), Var(f"{loop.var.name}.inner")
    value = binary("add", binary("mul", outer, group), inner)
    body = substitute(loop.body, {loop.var: value})
    if extent % group:
        body = If(compare("lt", value, extent), body)
    inside = For(inner, index_const(group), "unrolled", body, loop.origin)
    groups = index_const(-(-extent // group))
    return replace(loop, var=outer, extent=groups, body=inside)
