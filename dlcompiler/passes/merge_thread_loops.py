"""Make one loop of each thread axis of a kernel: then all statements are those of one thread.

*Before*::

    def main(A: float32[64], C: float32[64]):
        for i.outer in blockIdx.x(4):
            allocate B: float32[16] in shared
            for i in threadIdx.x(12):
                B[i] = A[i.outer*16 + i]
            B[15] = 0.0
            for i.inner in threadIdx.x(16):
                C[i.outer*16 + i.inner] = B[i.inner] + B[15]

*After*::

    def main(A: float32[64], C: float32[64]):
        for i.outer in blockIdx.x(4):
            allocate B: float32[16] in shared
            for i in threadIdx.x(16):
                if i < 12:
                    B[i] = A[i.outer*16 + i]
                barrier
                if i == 0:
                    B[15] = 0.0
                barrier
                i.inner = i
                C[i.outer*16 + i.inner] = B[i.inner] + B[15]

The first loop of an axis gives it its variable. Conditions select the threads that run a statement,
and barriers keep the order that the loops had. Each thread reaches each barrier: a condition that
would keep some away is moved to the statements between the barriers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from dlcompiler.errors import TargetError
from dlcompiler.ir import (
    SHARED,
    WARP,
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Not,
    Prefetch,
    Region,
    Seq,
    Stmt,
    Store,
    ThreadTag,
    Var,
    index_const,
    is_thread,
    seq,
    structural_equal,
    walk,
)
from dlcompiler.ir.program import Launch
from dlcompiler.passes.base import in_copies, statements
from dlcompiler.passes.fragments import fragments_in, is_of_warp
from dlcompiler.passes.thread_conflicts import Conflicts

FALSE = Const(False, "bool")


@dataclass(frozen=True, eq=False)
class ThreadProgram:
    """What one thread of a launch does."""

    axes: Mapping[ThreadTag, Var]
    """The variable of each axis of the launch, blocks before threads, z before y before x."""
    extents: Mapping[str, Expr]
    """The extent of each axis."""
    shared: tuple[Buffer, ...]
    """Memory of the block."""
    body: Stmt
    """Statements of one thread; each thread reaches each barrier."""
    origins: Mapping[int, Stmt]
    """By `id` of a statement in `body` that was made from another, that statement."""

    def as_loops(self) -> Stmt:
        """Return the launch as one nest of loops, which the interpreter can run."""
        body = self.body
        for tag, var in reversed(list(self.axes.items())):
            if not _is_block(tag):
                body = For(var, self.extents[tag], tag, body)
        for buffer in reversed(self.shared):
            body = Allocate(buffer, body)
        for tag, var in reversed(list(self.axes.items())):
            if _is_block(tag):
                body = For(var, self.extents[tag], tag, body)
        return body


def axis_lines(launch: Launch, line_of: Mapping[int, int]) -> dict[Var, int]:
    """Return the line of the first loop of each thread axis, by its variable.

    Parameters
    ----------
    launch
        The kernel.
    line_of
        The line of each statement of the launch in the printed loop IR, by ``id``.
    """
    nest = launch.kernel.body if launch.nest is None else launch.nest
    return {
        node.var: line_of.get(id(node), 0) for node in statements(nest) if isinstance(node, For)
    }


def merge_thread_loops(launch: Launch) -> ThreadProgram:
    """Return what one thread of a launch does.

    Parameters
    ----------
    launch
        A kernel without virtual threads. The statements are those of `Launch.nest`, in which the
        variables of the host's loops are free.

    Raises
    ------
    TargetError
        A statement is outside the loop of one of the block axes, so that all its blocks would
        repeat it.
    """
    nest = launch.kernel.body if launch.nest is None else launch.nest
    merging = _Merging(launch.kernel.name, nest, launch.threads)
    body = merging.statement(nest, frozenset())
    return ThreadProgram(
        {cast(ThreadTag, tag): merging.loops[tag].var for tag in merging.order},
        launch.threads,
        tuple(merging.shared),
        body,
        merging.origins.within(body),
    )


def skip_after_failure(stmt: Stmt, holds: Expr) -> tuple[Stmt, Mapping[int, Stmt]]:
    """Return a statement that does nothing but wait at barriers once a check has failed.

    Parameters
    ----------
    stmt
        A statement of one thread.
    holds
        Becomes false, in this thread, when an assertion fails.

    Returns
    -------
    The statement, and by `id` of each one inside it that is new, that of which it was made.
    """
    origins = _Origins(stmt)
    made = _skipping(stmt, holds, origins)
    return made, origins.within(made)


def _skipping(stmt: Stmt, holds: Expr, origins: _Origins) -> Stmt:
    match stmt:
        case Seq(items):
            done: list[Stmt] = []
            for number, item in enumerate(items, 1):
                done.append(_skipping(item, holds, origins))
                if _has_check(item) and number < len(items):
                    rest = _skipping(seq(items[number:]), holds, origins)
                    return seq((*done, _selected(holds, rest, origins)))
            return seq(done)
        case For() if _has_check(stmt):
            body = _selected(holds, _skipping(stmt.body, holds, origins), origins)
            return origins.note(replace(stmt, body=body), stmt)
        case If(condition, then, otherwise):
            other = None if otherwise is None else _skipping(otherwise, holds, origins)
            return origins.note(If(condition, _skipping(then, holds, origins), other), stmt)
        case Allocate() | Let():
            return origins.note(replace(stmt, body=_skipping(stmt.body, holds, origins)), stmt)
    return stmt


class _Origins:
    """From which statement of a nest each new one was made."""

    def __init__(self, nest: Stmt) -> None:
        self._given = {id(stmt) for stmt in statements(nest)}
        self._of: dict[int, Stmt] = {}
        self._made: list[Stmt] = []  # keeps them, so that no other statement gets the id of one

    def note(self, made: Stmt, of: Stmt) -> Stmt:
        """Return a new statement, after noting its origin; the first one that is noted counts."""
        while isinstance(of, Seq) and of.statements:
            of = of.statements[0]
        if id(made) not in self._given:
            self._of.setdefault(id(made), self._of.get(id(of), of))
            self._made.append(made)
        return made

    def within(self, stmt: Stmt) -> dict[int, Stmt]:
        """Return the origin of each new statement inside a statement, by `id`."""
        return {id(s): self._of[id(s)] for s in statements(stmt) if id(s) in self._of}


@dataclass
class _Merging:
    """The state of one launch's conversion."""

    name: str
    nest: Stmt
    threads: Mapping[str, Expr]
    loops: dict[str, For] = field(default_factory=dict)
    """The first loop of each axis; its variable stands for the axis."""
    shared: list[Buffer] = field(default_factory=list)
    origins: _Origins = field(init=False)

    def __post_init__(self) -> None:
        self.origins = _Origins(self.nest)
        for node in statements(self.nest):
            if isinstance(node, For) and node.kind in self.threads:
                self.loops.setdefault(node.kind, node)
        for tag, extent in self.threads.items():  # threads of a warp's intrinsic need no loop
            self.loops.setdefault(tag, For(Var("lane"), extent, cast(ThreadTag, tag), seq(())))
        self.fragments = frozenset(fragments_in(self.nest))
        """Memory that all threads of a warp hold together."""
        axes = (loop.var for tag, loop in self.loops.items() if not _is_block(tag))
        self.conflicts = Conflicts(self.fragments, frozenset(axes))
        self.order = sorted(self.threads, key=lambda tag: (not _is_block(tag), -ord(tag[-1])))
        """The axes, outermost first."""

    def statement(self, stmt: Stmt, bound: frozenset[str]) -> Stmt:
        """Return what each thread does for a statement inside the loops of the axes `bound`."""
        if bound == self.threads.keys() or isinstance(stmt, Barrier):
            return stmt
        made = self._changed(stmt, bound) if _has_threads(stmt) else self._by_one(stmt, bound)
        return self.origins.note(made, stmt)

    def _changed(self, stmt: Stmt, bound: frozenset[str]) -> Stmt:
        match stmt:
            case For() if is_thread(stmt.kind):
                return self._thread_loop(stmt, bound)
            case For():
                body = self.statement(stmt.body, bound)
                is_ordered = _begins_with_barrier(body) or not self.conflicts.in_loop(body)
                return replace(stmt, body=body if is_ordered else seq((body, Barrier())))
            case Seq(items):
                return _in_order([self.statement(item, bound) for item in items], self.conflicts)
            case If(condition, then, otherwise):
                rest = None if otherwise is None else self.statement(otherwise, bound)
                return _only_if(condition, self.statement(then, bound), self.origins, rest)
            case Allocate():
                return self._allocate(stmt, bound)
            case Let(var, value, body):
                return Let(var, value, _after_reading(value, self.statement(body, bound)))
            case IntrinsicCall():
                return self._by_one(stmt, bound)
        raise AssertionError(stmt)

    def _thread_loop(self, loop: For, bound: frozenset[str]) -> Stmt:
        var, extent = self.loops[loop.kind].var, self.threads[loop.kind]
        inner = self.statement(loop.body, bound | {loop.kind})
        if not structural_equal(loop.extent, extent, rename=False):
            inner = _only_if(Compare("lt", loop.var, loop.extent), inner, self.origins)
        return inner if loop.var is var else Let(loop.var, var, inner)

    def _by_one(self, stmt: Stmt, bound: frozenset[str]) -> Stmt:
        """Return a statement that one thread of each other axis runs."""
        if all(isinstance(node, Prefetch | Seq | If | For) for node in statements(stmt)):
            return stmt  # a hint may be repeated
        others = [tag for tag in self.order if tag not in bound]
        if blocks := [tag for tag in others if _is_block(tag)]:
            raise TargetError(
                f"generate code for {self.name}",
                f"a statement is outside the loop of {blocks[0]}",
                got="it writes " + ", ".join(sorted(buffer.name for buffer in _written(stmt))),
                because="each block would repeat it",
                hint=f"attach its stage inside {self.loops[blocks[0]].var.name}",
            )
        for tag in reversed(others):  # x innermost: see `of_warp`
            stmt = _only_if(Compare("eq", self.loops[tag].var, index_const(0)), stmt, self.origins)
        return stmt

    def _allocate(self, stmt: Allocate, bound: frozenset[str]) -> Stmt:
        """Return the body of an allocation. Several threads use the memory, whatever its scope."""
        if stmt.buffer in self.fragments:
            return replace(stmt, body=self.statement(stmt.body, bound))
        body, buffer = stmt.body, stmt.buffer
        for tag in reversed([tag for tag in self.order if tag in bound and not _is_block(tag)]):
            body, buffer = self._copied(body, buffer, tag)
        self.shared.append(buffer)
        return self.statement(body, bound)

    def _copied(self, body: Stmt, buffer: Buffer, tag: str) -> tuple[Stmt, Buffer]:
        """Return a body whose buffer has a copy for each index of an axis."""
        extent = self.threads[tag]
        assert isinstance(extent, Const)
        many = replace(
            buffer,
            shape=(int(extent.value), *buffer.shape),
            strides=(),
            separators=tuple(place + 1 for place in buffer.separators),
            scope=WARP if buffer.scope == WARP else SHARED,
        )
        made = in_copies(body, {buffer: many}, self.loops[tag].var)
        for old, new in zip(statements(body), statements(made), strict=True):
            self.origins.note(new, old)
        return made, many


def of_warp(stmt: Stmt, lane: Var | None) -> IntrinsicCall | None:
    """Return the call that all threads of a warp carry out, if a statement is one.

    In what one thread does, the call stands under a condition: the first thread along x computes
    what it declares.
    """
    call = of_first_thread(stmt, lane)
    return call if isinstance(call, IntrinsicCall) and is_of_warp(call) else None


def of_first_thread(stmt: Stmt, lane: Var | None) -> Stmt | None:
    """Return what only the first thread along x does, if a statement is of this kind."""
    match stmt:
        case If(Compare("eq", var, Const(0)), inner, None) if var is lane:
            return inner
    return None


def _is_block(tag: str) -> bool:
    return tag.startswith("blockIdx")


def _has_threads(stmt: Stmt) -> bool:
    return any(
        (isinstance(node, For) and is_thread(node.kind)) or is_of_warp(node)
        for node in statements(stmt)
    )


def _has_check(stmt: Stmt) -> bool:
    return any(isinstance(node, Assert) for node in statements(stmt))


def has_barrier(stmt: Stmt) -> bool:
    """Tell whether there is a barrier inside a statement."""
    return any(isinstance(node, Barrier) for node in statements(stmt))


def _begins_with_barrier(stmt: Stmt) -> bool:
    if isinstance(stmt, Seq):
        return bool(stmt.statements) and _begins_with_barrier(stmt.statements[0])
    return isinstance(stmt, Barrier)


def _in_order(parts: Sequence[Stmt], conflicts: Conflicts) -> Stmt:
    """Return statements in order, with barriers where one needs what threads did before it."""
    ordered: list[Stmt] = []
    since: list[Stmt] = []
    for part in parts:
        if conflicts.in_order(since, part):
            ordered.append(Barrier())
            since = []
        ordered.append(part)
        since.append(part)
    return seq(ordered)


def _only_if(condition: Expr, then: Stmt, origins: _Origins, otherwise: Stmt | None = None) -> Stmt:
    """Return a conditional statement; all threads reach the barriers in it."""
    if not has_barrier(then) and (otherwise is None or not has_barrier(otherwise)):
        return If(condition, then, otherwise)
    if isinstance(condition, Var):
        sides = [_selected(condition, then, origins)]
        if otherwise is not None:
            sides.append(_selected(Not(condition), otherwise, origins))
        return _in_order(sides, Conflicts(frozenset(), frozenset()))
    known = Var("is_chosen", "bool")
    body = _after_reading(condition, _only_if(known, then, origins, otherwise))
    return Let(known, condition, body)


def _selected(condition: Expr, stmt: Stmt, origins: _Origins) -> Stmt:
    """Return a statement whose parts between barriers run under a condition."""
    if not has_barrier(stmt):
        return origins.note(If(condition, stmt), stmt)
    match stmt:
        case Barrier():
            return stmt
        case Seq(items):
            return seq(_selected(condition, item, origins) for item in items)
        case For() | Allocate():
            made: Stmt = replace(stmt, body=_selected(condition, stmt.body, origins))
        case If(inner, then, otherwise):
            made = _only_if(IfThenElse(condition, inner, FALSE), then, origins, otherwise)
        case Let(var, value, body):
            zero = Const(0, value.dtype)
            inside = _selected(condition, body, origins)
            made = Let(var, IfThenElse(condition, value, zero), inside)
        case _:
            raise AssertionError(stmt)
    return origins.note(made, stmt)


def _after_reading(value: Expr, body: Stmt) -> Stmt:
    """Return a body before which all threads have read a value, if the body changes its memory."""
    read = {node.buffer for node in walk(value) if isinstance(node, Load)}
    return seq((Barrier(), body)) if read & _written(body) else body


def _written(stmt: Stmt) -> set[Buffer]:
    """Return the buffers that a statement writes, without those that it allocates."""
    nodes = list(walk(stmt))
    own = {node.buffer for node in nodes if isinstance(node, Allocate)}
    stores = {node.buffer for node in nodes if isinstance(node, Store)}
    regions = {n.buffer for n in nodes if isinstance(n, Region) and "w" in (n.mode or "w")}
    return (stores | regions) - own
