"""Keep what the threads of a warp exchange in registers, which they read from each other.

*Before*, what each of 32 threads does::

    allocate P: float32[32] in warp
    P[x] = A[x]
    barrier
    if x < 16:
        P[x] = P[x] + P[x + 16]
    barrier

*After*, where ``P.lanes[n, …]`` is the element of P that thread n has::

    allocate P: float32[1] in local
    P[0] = A[x]
    P.other = P.lanes[x + 16, 0]
    if x < 16:
        P[0] = P[0] + P.other

In CUDA C and PTX, an access to ``P.lanes`` is a shuffle. All threads of a warp have to execute it,
so it stands before a condition that some of them do not meet.

This is done for memory of a warp, and for reductions that the threads along x share. Each thread
has to write only its own elements of the last dimension, and the threads along x have to be part of
one warp. Barriers are left out where the rest of the memory is proved to need none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.codegen.c.statements import has_assertions
from dlcompiler.codegen.gpu.barriers import without_needless
from dlcompiler.dtypes import is_index
from dlcompiler.ir import (
    PART,
    WARP,
    Allocate,
    Barrier,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Logical,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    free_vars,
    index_const,
    rewrite,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.program import Launch
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.merge_thread_loops import ThreadProgram

WARP_SIZE = 32
"""Threads of a warp; [1]."""


@dataclass(frozen=True)
class Group:
    """Neighbouring threads of one warp, along x."""

    lane: Var
    """The number of a thread in the group."""
    width: int
    """Number of threads of a group, a power of two; [1]."""
    mask: int
    """A bit for each thread of the warp."""


@dataclass(frozen=True)
class Exchange:
    """How threads read the registers of others."""

    own: Buffer
    """The thread's own elements."""
    group: Group


def group_of(thread: ThreadProgram) -> Group | None:
    """Return the groups of threads along x that are parts of warps; None if they need not be."""
    counts = {}
    for tag in thread.axes:
        if tag.startswith("threadIdx"):
            extent = thread.extents[tag]
            counts[tag] = int(extent.value) if isinstance(extent, Const) else 0
    width, total = counts.get("threadIdx.x", 1), 1
    for count in counts.values():
        total *= count
    is_part = 1 < width <= WARP_SIZE and WARP_SIZE % width == 0
    if not is_part or (total > WARP_SIZE and total % WARP_SIZE):
        return None
    return Group(thread.axes["threadIdx.x"], width, (1 << min(total, WARP_SIZE)) - 1)


def with_shuffles(
    launch: Launch, thread: ThreadProgram
) -> tuple[ThreadProgram, Mapping[Buffer, Exchange]]:
    """Move memory of a block into registers where only the threads of a warp exchange it.

    Parameters
    ----------
    launch
        The launch of the kernel.
    thread
        What one of its threads does.

    Returns
    -------
    ThreadProgram
        What one thread does with registers.
    mapping of Buffer to Exchange
        The buffers that stand for the elements of all threads of a group.
    """
    group = group_of(thread)
    if group is None or has_assertions(thread.body):  # a thread whose check fails does no more
        return thread, {}
    candidates = {b for b in thread.shared if _is_candidate(b, thread.body, group)}
    rows: dict[tuple[Buffer, int], Var] = {}
    while candidates:
        moving = _Moving(thread, group, candidates, rows)
        body = moving.statement(thread.body, _Place())
        moving.refuse_shared_rows()
        if not moving.refused and moving.rows == rows:
            return _finished(launch, thread, moving, body)
        candidates -= moving.refused
        rows = moving.rows
    return thread, {}


def _is_candidate(buffer: Buffer, body: Stmt, group: Group) -> bool:
    """Tell whether an array is in memory of a warp, or holds a reduction that threads share."""
    last = buffer.shape[-1] if buffer.shape else None
    if not isinstance(last, int) or not 1 < last <= group.width:
        return False
    stores = (node for node in walk(body) if isinstance(node, Store) and node.buffer is buffer)
    return buffer.scope == WARP or all(
        any(ref.axis == PART for ref in store.origin) for store in stores
    )


@dataclass
class _Place:
    """Where a statement stands."""

    named: dict[Var, Expr] = field(default_factory=dict)
    """Names of indices around it, with their values."""
    lane: int | None = None
    """The only thread of its group that runs it, if it is known."""
    before: list[tuple[Var, Load]] | None = None
    """What is read before it from other threads, if not all threads of the warp run it."""
    written: set[Buffer] = field(default_factory=set)
    """The arrays that have been written since the place of `before`."""
    inner: set[Var] = field(default_factory=set)
    """Variables that have no value at the place of `before`."""
    repeats: bool = False
    """Whether a loop stands between it and the place of `before`."""


class _Moving:
    """Replaces accesses to memory of a block by accesses to registers.

    Parameters
    ----------
    thread, group
        What a thread does, and the threads that exchange values.
    candidates
        The arrays to move.
    rows
        The thread axis that indexes a dimension of an array, where a first attempt found one: the
        registers have no such dimension.
    """

    def __init__(
        self,
        thread: ThreadProgram,
        group: Group,
        candidates: set[Buffer],
        rows: Mapping[tuple[Buffer, int], Var],
    ) -> None:
        self.group = group
        self.candidates = candidates
        self.refused: set[Buffer] = set()
        """The candidates that cannot be moved."""
        self.origins: dict[int, Stmt] = dict(thread.origins)
        self.barriers: list[Barrier] = []
        """Barriers beside statements that accessed candidates."""
        self._others = {
            var
            for tag, var in thread.axes.items()
            if tag in ("threadIdx.y", "threadIdx.z") and str(thread.extents[tag]) != "1"
        }
        """The thread axes across which warps differ."""
        self._varying = {var for tag, var in thread.axes.items() if tag.startswith("threadIdx")}
        """Variables with different values in the threads of a warp."""
        self._ranges: dict[Var, Interval] = {}
        """The values of the variables of loops whose extents are known."""
        self.rows: dict[tuple[Buffer, int], Var] = {}
        """The thread axis that indexes a dimension of a candidate, where one does."""
        self.own: dict[Buffer, Buffer] = {}
        self.lanes: dict[Buffer, Buffer] = {}
        for buffer in candidates:
            self._declare(buffer, rows)

    def _declare(self, buffer: Buffer, rows: Mapping[tuple[Buffer, int], Var]) -> None:
        """Make the buffers of a candidate: a thread's own elements, and those of all."""
        extents = enumerate(buffer.shape[:-1])
        shape = tuple(1 if (buffer, dim) in rows else n for dim, n in extents) or (1,)
        name, dtype = buffer.name, buffer.dtype
        self.own[buffer] = Buffer(name, shape, dtype, "local")
        self.lanes[buffer] = Buffer(f"{name}.lanes", (self.group.width, *shape), dtype, "warp")

    # -- statements -------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, place: _Place) -> Stmt:
        """Return what takes the place of a statement."""
        made = self._changed(stmt, place)
        if made is not stmt:
            self.origins.setdefault(id(made), self.origins.get(id(stmt), stmt))
        return made

    def _changed(self, stmt: Stmt, place: _Place) -> Stmt:
        if not isinstance(stmt, Seq) and not self._uses(stmt):
            return stmt
        match stmt:
            case Seq(items):
                return self._sequence(items, place)
            case Allocate():
                return replace(stmt, body=self.statement(stmt.body, place))
            case For():
                return self._loop(stmt, place)
            case If() | Store() | Let():
                if place.before is None and not self._is_for_all(stmt, place):
                    return self._hoisted(stmt, place)
                return self._inside(stmt, place)
        self.refused |= self._uses(stmt)
        return stmt

    def _sequence(self, items: Sequence[Stmt], place: _Place) -> Stmt:
        done: list[Stmt] = []
        for number, item in enumerate(items):
            if isinstance(item, Barrier):
                around = (*items[max(number - 1, 0) : number], *items[number + 1 : number + 2])
                if any(map(self._uses, around)):
                    item = replace(item)  # a barrier of its own, which may be left out
                    self.barriers.append(item)
            done.append(self.statement(item, place))
        return seq(done)

    def _loop(self, loop: For, place: _Place) -> Stmt:
        self.refused |= self._uses(loop.extent)
        if isinstance(loop.extent, Const):
            self._ranges[loop.var] = Interval(0, max(int(loop.extent.value) - 1, 0))
        if place.before is not None or not self._is_uniform(loop.extent, place):
            inside = replace(place, repeats=True, inner={*place.inner, loop.var})
            if inside.before is None:
                inside.before = []  # nothing is read before: `repeats` refuses it
            self._varying.add(loop.var)
            return replace(loop, body=self.statement(loop.body, inside))
        return replace(loop, body=self.statement(loop.body, place))

    def _is_for_all(self, stmt: Stmt, place: _Place) -> bool:
        """Tell whether all threads of a warp take the same way into a statement's parts."""
        return isinstance(stmt, If) and self._is_uniform(stmt.condition, place)

    def _hoisted(self, stmt: Stmt, place: _Place) -> Stmt:
        """Return a statement with the reads from other threads before it."""
        if isinstance(stmt, Let) and self._is_named(stmt.value, place):
            return self._inside(stmt, place)
        before: list[tuple[Var, Load]] = []
        if isinstance(stmt, Let):  # all threads run what follows
            value = self._value(stmt.value, replace(place, before=before))
            self._varying.add(stmt.var)
            made: Stmt = replace(stmt, value=value, body=self.statement(stmt.body, place))
        else:
            inside = _Place(dict(place.named), place.lane, before)
            made = self._inside(stmt, inside)
        for var, load in reversed(before):
            made = Let(var, load, made)
            self.origins[id(made)] = self.origins.get(id(stmt), stmt)
        return made

    def _inside(self, stmt: Stmt, place: _Place) -> Stmt:
        match stmt:
            case Let(var, value, body) if self._is_named(value, place):
                known = {**place.named, var: substitute(value, place.named)}
                return replace(stmt, body=self.statement(body, replace(place, named=known)))
            case Let(var, value, body):
                self._varying.add(var)
                made = self._value(value, place)
                place.inner.add(var)
                return replace(stmt, value=made, body=self.statement(body, place))
            case If(condition, then, otherwise):
                made = self._value(condition, place)
                chosen = replace(place, lane=self._only_lane(condition, place))
                other = None if otherwise is None else self.statement(otherwise, place)
                return If(made, self.statement(then, chosen), other)
            case Store():
                return self._store(stmt, place)
        raise AssertionError(stmt)

    def _store(self, stmt: Store, place: _Place) -> Stmt:
        value = self._value(stmt.value, place)
        indices = tuple(self._value(index, place) for index in stmt.indices)
        mask = None if stmt.predicate is None else self._value(stmt.predicate, place)
        if stmt.buffer not in self.candidates:
            return replace(stmt, indices=indices, value=value, predicate=mask)
        own = self._own_index(stmt.buffer, indices, place)
        place.written.add(stmt.buffer)
        if own is None or mask is not None:
            self.refused.add(stmt.buffer)
            return stmt
        return replace(stmt, buffer=self.own[stmt.buffer], indices=own, value=value)

    # -- expressions ------------------------------------------------------------------------------

    def _value(self, expr: Expr, place: _Place) -> Expr:
        """Return an expression whose loads are from registers."""

        def rule(node: Node) -> Node:
            if isinstance(node, Load) and node.buffer in self.candidates:
                return self._read(node, place)
            return node

        return rewrite(expr, rule) if self._uses(expr) else expr

    def _read(self, load: Load, place: _Place) -> Expr:
        buffer = load.buffer
        own = self._own_index(buffer, load.indices, place)
        if own is not None and load.predicate is None:
            return Load(self.own[buffer], own)
        index = self._index_of_all(buffer, load.indices, place)
        lane = substitute(load.indices[-1], place.named)
        is_known = not free_vars(lane) & place.inner and not _has_loads(lane)
        is_late = place.repeats or buffer in place.written or place.before is None
        if index is None or load.predicate is not None or is_late or not is_known:
            self.refused.add(buffer)
            return load
        assert place.before is not None
        other = Var(f"{buffer.name}.other", load.dtype)
        inside = (self._clamped(self.own[buffer], dim, each) for dim, each in enumerate(index))
        place.before.append((other, Load(self.lanes[buffer], (lane, *inside))))
        return other

    def _clamped(self, own: Buffer, dim: int, index: Expr) -> Expr:
        """Return an index that is inside an array, also where a condition would not lead to it."""
        last = own.shape[dim]
        bounds = Analyzer(self._ranges).interval(index)
        if not isinstance(last, int) or (bounds.low >= 0 and bounds.high < last):
            return index
        return binary("max", index_const(0), binary("min", index, index_const(last - 1)))

    def _own_index(
        self, buffer: Buffer, indices: Sequence[Expr], place: _Place
    ) -> tuple[Expr, ...] | None:
        """Return the index in the thread's own registers; None for another thread's."""
        lane = substitute(indices[-1], place.named)
        if not _is_equal(lane, self.group.lane):
            known = None if place.lane is None else Const(place.lane, "index")
            if known is None or not _is_equal(lane, known):
                return None
        return self._index_of_all(buffer, indices, place)

    def _index_of_all(
        self, buffer: Buffer, indices: Sequence[Expr], place: _Place
    ) -> tuple[Expr, ...] | None:
        """Return the index in the registers, if it is the same for the threads of a group."""
        found: list[Expr] = []
        for dim, given in enumerate(indices[:-1]):
            index = substitute(given, place.named)
            row = next((var for var in self._varying if _is_equal(index, var)), None)
            if row is not None and row is not self.group.lane:
                if self.rows.setdefault((buffer, dim), row) is not row:
                    return None
                found.append(Const(0, "index"))
                continue
            if (buffer, dim) in self.rows or not self._is_uniform(index, place):
                return None
            found.append(index)
        return tuple(found) or (Const(0, "index"),)

    # -- facts ------------------------------------------------------------------------------------

    def refuse_shared_rows(self) -> None:
        """Refuse the candidates that different groups share: no dimension tells them apart."""
        for buffer in self.candidates:
            rows = {row for (each, _), row in self.rows.items() if each is buffer}
            if self._others - rows:
                self.refused.add(buffer)

    def _uses(self, node: Node) -> set[Buffer]:
        """Return the candidates that a statement or an expression accesses."""
        parts = (part for part in walk(node) if isinstance(part, Load | Store | Region))
        return {part.buffer for part in parts} & self.candidates

    def _is_uniform(self, expr: Expr, place: _Place) -> bool:
        """Tell whether an expression has the same value in all threads of a warp."""
        full = substitute(expr, place.named)
        return not free_vars(full) & self._varying and not _has_loads(full)

    def _is_named(self, value: Expr, place: _Place) -> bool:
        """Tell whether a variable stands for a formula of indices."""
        return is_index(value.dtype) and not _has_loads(value)

    def _only_lane(self, condition: Expr, place: _Place) -> int | None:
        """Return the only thread of a group for which a condition may hold, if that is known."""
        match condition:
            case Logical("and", a, b):
                first = self._only_lane(a, place)
                return self._only_lane(b, place) if first is None else first
            case Compare("eq", a, Const(number)) if _is_equal(
                substitute(a, place.named), self.group.lane
            ):
                return int(number)
        return place.lane


def _has_loads(expr: Expr) -> bool:
    return any(isinstance(node, Load) for node in walk(expr))


def _is_equal(a: Expr, b: Expr) -> bool:
    """Tell whether two indices are proved to be equal."""
    if not is_index(a.dtype) or _has_loads(a):
        return False
    analyzer = Analyzer({})
    difference = analyzer.affine(a).plus(analyzer.affine(b), -1)
    return difference.is_constant and difference.constant == 0


# -- barriers -------------------------------------------------------------------------------------


def _finished(
    launch: Launch, thread: ThreadProgram, moving: _Moving, body: Stmt
) -> tuple[ThreadProgram, Mapping[Buffer, Exchange]]:
    """Return what a thread does, without the barriers that nothing needs any more."""
    for buffer in sorted(moving.candidates, key=lambda each: each.name, reverse=True):
        body = Allocate(moving.own[buffer], body)
    shared = tuple(buffer for buffer in thread.shared if buffer not in moving.candidates)
    exchanges = {
        moving.lanes[buffer]: Exchange(moving.own[buffer], moving.group)
        for buffer in moving.candidates
    }
    made = replace(thread, shared=shared, body=body, origins=moving.origins)
    return without_needless(launch, made, moving.barriers), exchanges
