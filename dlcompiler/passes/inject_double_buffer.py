"""Fill one half of a buffer for the next iteration while the other half is read.

*Before*::

    def main(A: float32[64], C: float32[64]):
        for i in range(8):
            allocate B: float32[8], twice per i
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

The statements that fill the buffer must be separate from those that read it, and must read nothing
that the loop computes. `partition_loops` then removes the condition, which leaves a prologue, a
steady loop and a last iteration. With `split_loop` the loop is cut into groups of that many
iterations, to be unrolled: in groups of two each half has a constant index. A loop that runs once
needs a single buffer.

Threads that share the buffer need one barrier in each iteration, before they fill the other half.
It stands between filling a half and reading it, an iteration later, and between reading a half and
filling it again::

    allocate T: float32[32] in shared, twice per k      allocate T: float32[2, 32] in shared
    for t in threadIdx.x(32):                           for t in threadIdx.x(32):
        for k in range(4):                                  T[0, t] = A[0*32 + t]
            barrier                                         for k in range(4):
            T[t] = A[k*32 + t]                                  barrier
            barrier                                             if k + 1 < 4:
            C[t] += T[31 - t]                                       T[(k + 1) % 2, t] = ...
                                                                C[t] += T[k % 2, 31 - t]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby

from dlcompiler import dtypes
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    SHARED_SCOPES,
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
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
    is_in_block,
    logical,
    rewrite,
    seq,
    substitute,
    walk,
    walk_statements,
)
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import constant_extent, in_copies, push_origin, statements
from dlcompiler.passes.flatten_storage import elements_spanned


def inject_double_buffer(func: PrimFunc, *, split_loop: int = 1) -> PrimFunc:
    """Give buffers that are allocated twice two halves, and fill one ahead.

    Parameters
    ----------
    func
        Any function without vector operations. A buffer whose loop has gone, since it runs once,
        stays single.
    split_loop
        Iterations of each group of the loop; [1].

    Raises
    ------
    ScheduleError
        If a buffer cannot be filled ahead: the iterations of its loop run at once, or what fills it
        needs what the loop computes.
    """
    injection = _Injection(func.body, split_loop)
    if not injection.wanted:
        return func
    return func.with_body(injection.run(func.body, _Around()))


def _refusal(buffers: Iterable[Buffer], because: str, hint: str | None = None) -> ScheduleError:
    return ScheduleError(
        f"double buffer {_names(buffers)}", "it cannot be filled one iteration ahead",
        because=because, hint=hint or "attach the stage at a serial loop of several iterations",
    )  # fmt: skip


@dataclass(frozen=True)
class _Around:
    """The loops around a statement."""

    loops: frozenset[Var] = frozenset()
    in_block: bool = False
    """Whether the statement is inside loops over the threads of a block."""
    is_repeated: bool = False
    """Whether each of these threads may run it several times."""

    def inside(self, loop: For) -> _Around:
        """Return the description of the loops around the body of `loop`."""
        is_repeated = self.is_repeated or (self.in_block and not is_in_block(loop.kind))
        in_block = self.in_block or is_in_block(loop.kind)
        return _Around(self.loops | {loop.var}, in_block, is_repeated)


@dataclass(frozen=True)
class _Body:
    """The body of a loop: its statements, and the nodes around them, outermost first."""

    around: tuple[Allocate | If | Seq, ...]
    statements: tuple[Stmt, ...]
    beside: tuple[Stmt, ...]
    """The statements that run before or after them in the body."""

    @staticmethod
    def of(loop: For, own: AbstractSet[Buffer]) -> _Body:
        around: list[Allocate | If | Seq] = []
        stmt, beside = loop.body, []
        while (inner := _inside(stmt, own)) is not None:
            assert isinstance(stmt, Allocate | If | Seq)
            around.append(stmt)
            if isinstance(stmt, Seq):
                beside += [item for item in stmt.statements if item is not inner]
            stmt = inner
        stmts = stmt.statements if isinstance(stmt, Seq) else (stmt,)
        near = {outer.buffer for outer in around if isinstance(outer, Allocate)}
        return _Body(tuple(around), _gathered(stmts, own, near), tuple(beside))

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The conditions around the statements."""
        return tuple(stmt.condition for stmt in self.around if isinstance(stmt, If))

    def allocations(self, buffers: AbstractSet[Buffer]) -> list[Allocate]:
        """Return the allocations of some buffers around the statements."""
        return [s for s in self.around if isinstance(s, Allocate) and s.buffer in buffers]

    def around_of(self, body: Stmt, without: AbstractSet[Buffer]) -> Stmt:
        """Put another body into the enclosing statements, except allocations of `without`."""
        for stmt in reversed(self.around):
            if isinstance(stmt, If):
                body = replace(stmt, then=body)
            elif isinstance(stmt, Seq):
                body = seq(body if _touches(item, without) else item for item in stmt.statements)
            elif stmt.buffer not in without:
                body = replace(stmt, body=body)
        return body


def _inside(stmt: Stmt, own: AbstractSet[Buffer]) -> Stmt | None:
    """Return the only part of a statement that accesses `own`; None if there is none."""
    match stmt:
        case Allocate():
            return stmt.body
        case If(_, then, None):
            return then
        case Seq(items):
            users = [item for item in items if _touches(item, own)]
            is_alone = len(users) == 1 and not isinstance(users[0], For | Store)
            return users[0] if is_alone else None
    return None


class _Injection:
    """State of the pass: the buffers that it must double, and those already doubled."""

    def __init__(self, body: Stmt, split_loop: int) -> None:
        self.split_loop = split_loop
        self.wanted: dict[Var, set[Buffer]] = {}
        """By the variable of the loop that fills them ahead."""
        self.doubled: dict[Buffer, Buffer] = {}
        for stmt in statements(body):
            if isinstance(stmt, Allocate) and stmt.double is not None:
                self.wanted.setdefault(stmt.double, set()).add(stmt.buffer)

    def run(self, stmt: Stmt, around: _Around) -> Stmt:
        """Double the buffers of the inner loops, then those of the statement itself."""
        inner = around.inside(stmt) if isinstance(stmt, For) else around

        def inside(node: Node) -> Node:
            return self.run(node, inner) if isinstance(node, Stmt) else node

        stmt = map_children(stmt, inside)
        match stmt:
            case For() if stmt.var in self.wanted:
                return self.ahead(stmt, self.wanted[stmt.var], around)
            case Allocate(double=Var() as var) if var not in around.loops:
                buffer = self.doubled.get(stmt.buffer, stmt.buffer)
                return replace(stmt, buffer=buffer, double=None)
        return stmt

    def ahead(self, loop: For, own: set[Buffer], around: _Around) -> Stmt:
        """Return the fill for iteration 0, and the loop that fills for the following iteration.

        Buffers allocated in the body of the loop are allocated around both instead.
        """
        if constant_extent(loop) in (0, 1):
            return _single(loop)
        body = _Body.of(loop, own)
        fills = _fills(loop, body, own)
        if not fills:
            return _single(loop)
        copies = {buffer: self.doubled.setdefault(buffer, _doubled(buffer)) for buffer in own}
        is_shared = around.in_block and any(buffer.scope in SHARED_SCOPES for buffer in own)
        conditions = body.conditions

        def filled(group: Iterable[Stmt], value: Expr, half: Expr, *guards: Expr) -> Stmt:
            put, guards = in_copies(seq(group), copies, half), (*guards, *conditions)
            return substitute(
                If(logical("and", *guards), put) if guards else put, {loop.var: value}
            )

        more, half = compare("lt", loop.var, loop.extent), binary("floormod", loop.var, 2)
        zero, following = index_const(0), binary("add", loop.var, 1)
        first = filled(fills, zero, zero, *(() if constant_extent(loop) else (more,)))
        # The barrier lets all threads finish reading before the buffer is filled again.
        barrier = (Barrier(),) if is_shared and around.is_repeated else ()
        parts: list[Stmt] = []
        # The surrounding conditions are about this iteration, so the fill for the next one is
        # placed outside of them.
        front: list[Stmt] = [Barrier()] if conditions and is_shared else []
        if conditions:
            front.append(filled(fills, following, half, more))
        kept = body.statements
        if is_shared and not conditions:
            kept = _with_needed_barriers(kept, fills, own)
        for is_fill, group in groupby(kept, lambda stmt: any(stmt is fill for fill in fills)):
            if not is_fill:
                parts += (in_copies(stmt, copies, half) for stmt in group)
            elif not conditions:
                parts.append(filled(group, following, half, more))
        whole = seq((*front, body.around_of(seq(parts), own)))
        going_on = _split(replace(loop, body=whole), self.split_loop)
        result = seq((*barrier, push_origin(first, loop.origin), going_on))
        for allocate in reversed(body.allocations(own)):
            result = Allocate(copies[allocate.buffer], result, allocate.origin)
        return result


def _single(loop: For) -> Stmt:
    """Return a loop without double buffering: it runs once, or fills no buffer."""

    def rule(node: Node) -> Node:
        if isinstance(node, Allocate) and node.double is loop.var:
            return replace(node, double=None)
        return node

    return rewrite(loop, rule)


def _gathered(
    stmts: Sequence[Stmt], own: AbstractSet[Buffer], near: AbstractSet[Buffer]
) -> tuple[Stmt, ...]:
    """Return statements with adjacent fills joined to one, including statements only they need.

    A fill includes the checks of the indices that it reads. Two fills may be separate statements
    because a loop of one iteration around them was removed. A buffer in `near` is allocated in the
    body of the loop, so it cannot be computed outside.
    """
    written, read = [_written(stmt) for stmt in stmts], [_read(stmt) for stmt in stmts]
    fills = [not own.isdisjoint(buffers) for buffers in written]
    for n in reversed(range(len(stmts))):
        made = written[n]
        users = [  # all that touch what it makes, but do not only write it
            m for m in range(len(stmts))
            if m != n and (made & read[m] or (made & written[m] and made != written[m]))
        ]  # fmt: skip
        is_for_fills = bool(users) and all(fills[m] and m > n for m in users)
        # Checks stand directly before the fill that they protect, and must run before it.
        is_for_fills |= _is_check(stmts[n]) and n + 1 < len(stmts) and fills[n + 1]
        fills[n] |= is_for_fills and not (own & (made | read[n]) or near & made)
    # A barrier between two fills belongs to them if it orders their use of a common buffer.
    for n in range(1, len(stmts) - 1):
        if isinstance(stmts[n], Barrier) and fills[n - 1] and fills[n + 1]:
            fills[n] = _conflict(stmts[n - 1 : n], stmts[n + 1 : n + 2], frozenset())
    result: list[Stmt] = []
    for is_fill, group in groupby(zip(fills, stmts, strict=True), lambda pair: pair[0]):
        parts = [stmt for _, stmt in group]
        result += [seq(parts)] if is_fill else parts
    return tuple(result)


def _is_check(stmt: Stmt) -> bool:
    """Tell whether a statement contains assertions and writes no buffer used elsewhere."""
    nodes = list(walk(stmt))
    own = {node.buffer for node in nodes if isinstance(node, Allocate)}
    return any(isinstance(node, Assert) for node in nodes) and _written(stmt) <= own


def _fills(loop: For, body: _Body, own: set[Buffer]) -> list[Stmt]:
    """Return the statements that fill buffers; refuse fills that cannot run an iteration ahead.

    The result is empty if no statement reads the buffers: what did was simplified away.
    """
    if is_concurrent(loop.kind):
        raise _refusal(own, f"the iterations of {loop.var.name} run at once")
    fills = [stmt for stmt in body.statements if not own.isdisjoint(_written(stmt))]
    rest = [stmt for stmt in body.statements if not any(stmt is fill for fill in fills)]
    rest += body.beside
    within = {n.buffer for fill in fills for n in walk(fill) if isinstance(n, Allocate)}
    if own & within:
        raise _refusal(
            own, f"each part of the loop {loop.var.name} has one of its own, under a condition",
            hint="leave the loop of the virtual threads serial, or double_buffer out",
        )  # fmt: skip
    if not any(own & _touched(stmt) for stmt in rest):
        touched = {buffer for stmt in rest for buffer in _touched(stmt)}
        # Memory of this iteration only, such as that of a stage inside the fill.
        within |= {stmt.buffer for stmt in body.around if isinstance(stmt, Allocate)} - touched
        if any(_written(fill) - own - within for fill in fills):
            raise _refusal(own, "what fills it is not apart from what reads it")
        return []
    for buffer in sorted(own, key=lambda buffer: buffer.name):
        places = [n for n, stmt in enumerate(body.statements) if buffer in _written(stmt)]
        if not places:  # its fill never runs and was removed by simplification
            continue
        is_apart = places[-1] - places[0] + 1 == len(places)
        if not is_apart or any(buffer in _touched(stmt) for stmt in body.statements[: places[0]]):
            raise _refusal([buffer], "something else happens while it is filled")
    _check_independent(loop, body, fills, rest, own)
    return fills


def _check_independent(
    loop: For, body: _Body, fills: Sequence[Stmt], rest: Sequence[Stmt], own: set[Buffer]
) -> None:
    """Refuse a fill that depends on the rest of the previous iteration."""
    inside = {n.buffer for fill in fills for n in walk(fill) if isinstance(n, Allocate)}
    around = {stmt.buffer for stmt in body.around if isinstance(stmt, Allocate)}
    touched = {buffer for stmt in rest for buffer in _touched(stmt)}
    written = {buffer for fill in fills for buffer in _written(fill)} - own - inside
    if others := written & (touched | around):
        raise _refusal(own, f"{_names(others)} would be written ahead, too")
    changed = {buffer for stmt in rest for buffer in _written(stmt)}
    read = {buffer for fill in fills for buffer in _touched(fill) - _written(fill)}
    read |= {n.buffer for c in body.conditions for n in walk(c) if isinstance(n, Load)}
    if needed := read & (changed | own):
        raise _refusal(
            own, f"it needs {_names(needed)}, which the loop {loop.var.name} computes",
            hint="attach what it needs outside the loop",
        )  # fmt: skip


def _with_needed_barriers(
    stmts: Sequence[Stmt], fills: Sequence[Stmt], own: set[Buffer]
) -> tuple[Stmt, ...]:
    """Return the statements of an iteration with the barriers that double buffering needs.

    A barrier stands before the fill of the other half. Barriers between filling and reading the
    same half are removed, because these now happen in different iterations.
    """
    phases: list[list[Stmt]] = [[]]
    for stmt in stmts:
        if isinstance(stmt, Barrier):
            phases.append([])
        else:
            phases[-1].append(stmt)
    if any(stmt is fill for stmt in phases[0] for fill in fills):
        phases.insert(0, [])
    first, *rest = phases
    kept: list[list[Stmt]] = []
    for n, phase in enumerate(rest):
        is_last = n + 1 == len(rest)  # without a barrier here, the next iteration follows directly
        if (
            kept
            and not _conflict(kept[-1], phase, own)
            and not (is_last and _conflict(kept[-1], first, own))
        ):
            kept[-1] += phase
        else:
            kept.append(phase)
    return (*first, *(stmt for phase in kept for stmt in (Barrier(), *phase)))


def _conflict(a: Sequence[Stmt], b: Sequence[Stmt], own: AbstractSet[Buffer]) -> bool:
    """Tell whether `a` or `b` writes memory, other than `own`, that the other one accesses."""

    def common(buffers: Iterable[Buffer]) -> set[Buffer]:
        return {buffer for buffer in buffers if buffer.scope != "local"} - own

    written = [common(b for stmt in part for b in _written(stmt)) for part in (a, b)]
    touched = [common(b for stmt in part for b in _touched(stmt)) for part in (a, b)]
    return not (written[0].isdisjoint(touched[1]) and written[1].isdisjoint(touched[0]))


def _names(buffers: Iterable[Buffer]) -> str:
    return ", ".join(sorted({buffer.name for buffer in buffers}))


def _written(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in walk_statements(stmt) if isinstance(node, Store)}


def _read(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in walk(stmt) if isinstance(node, Load)}


def _touched(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in walk(stmt) if isinstance(node, Load | Store)}


def _touches(stmt: Stmt, buffers: AbstractSet[Buffer]) -> bool:
    return not buffers.isdisjoint(_touched(stmt))


def _doubled(buffer: Buffer) -> Buffer:
    """Return a buffer that holds two aligned copies of the given one, one after the other."""
    size = elements_spanned(buffer)
    if isinstance(size, int):
        unit = max(buffer.alignment // dtypes.bytes_of(buffer.dtype), 1)
        if size * dtypes.bytes_of(buffer.dtype) >= buffer.alignment:
            size = -(-size // unit) * unit
    separators = tuple(place + 1 for place in buffer.separators)
    shape, strides = (2, *buffer.shape), (size, *buffer.strides)
    return replace(buffer, shape=shape, strides=strides, separators=separators)


def _split(loop: For, group: int) -> For:
    """Return a loop over groups of iterations; the iterations of a group will be unrolled."""
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
