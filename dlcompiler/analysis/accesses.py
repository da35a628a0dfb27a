"""Collect every load and store of a program with the loops, lanes and conditions around it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dlcompiler import dtypes
from dlcompiler.analysis.barriers import EpochCounter
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    LoopKind,
    Not,
    Prefetch,
    PrimFunc,
    Ramp,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    index_const,
    is_concurrent,
    rewrite,
    substitute,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.rewrite import Node, children

Kind: TypeAlias = LoopKind | Literal["lanes"]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop of the program; the lanes of a vector statement also count as a loop."""

    var: Var
    extent: Expr
    kind: Kind
    statement: Stmt

    @property
    def is_concurrent(self) -> bool:
        """Tell whether its iterations may run in any order, or at the same time."""
        return self.kind == "lanes" or is_concurrent(self.kind)

    @property
    def size(self) -> int | None:
        """Number of iterations if it is constant, else None; [1]."""
        return int(self.extent.value) if isinstance(self.extent, Const) else None


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or a store of one element in each iteration of `loops` in which `conditions` hold."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_write: bool
    loops: tuple[Loop, ...]
    """The loops around the access, outermost first."""
    conditions: tuple[Expr, ...]
    statement: Stmt
    shared_from: int
    """Number of loops around the buffer's allocation: these have a buffer for each iteration."""
    epoch: Expr | None = None
    """How many barriers its thread has passed, over the loops inside those of the block's threads;
    None where that depends on conditions. See `barriers`."""

    @property
    def operation(self) -> str:
        """What the access does, as a verb: "writes" or "reads"."""
        return "writes" if self.is_write else "reads"


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """The accesses of a function, in the order of its text.

    The loads of a statement come before its store.
    """

    func: PrimFunc
    loops: tuple[Loop, ...]
    """The loops, without the lanes of stores whose lanes clearly write different elements."""
    items: tuple[Access, ...]
    shared: Mapping[Loop, Mapping[Buffer, Sequence[Access]]]
    """For each loop, the accesses inside it to buffers that its iterations share."""
    analyzer: Analyzer
    """Holds the range of each variable; if two loops share a variable, a range that covers both."""

    def shared_in(self, loop: Loop) -> Mapping[Buffer, Sequence[Access]]:
        """Return the accesses inside `loop` to buffers that its iterations share."""
        return self.shared.get(loop, {})


def collect_accesses(func: PrimFunc, *, with_inputs: bool = False) -> Accesses:
    """Collect the accesses of a lowered function to the buffers that it writes or allocates.

    Inputs are only read, so they carry no dependence; they are left out unless requested.
    """
    return _Collector(func, with_inputs).run()


def has_concurrent_loops(func: PrimFunc) -> bool:
    """Tell whether any iterations, or lanes of a store, may run in any order."""
    return any(
        is_concurrent(stmt.kind)
        if isinstance(stmt, For)
        else isinstance(stmt, Store) and lanes_of(stmt.indices) > 1
        for stmt in _statements(func.body)
    )


def _statements(body: Stmt) -> Iterator[Stmt]:
    stack = [body]
    while stack:
        stmt = stack.pop()
        yield stmt
        match stmt:
            case For() | Allocate() | Let() | IntrinsicCall():
                stack.append(stmt.body)
            case If(_, then, otherwise):
                stack += [then] if otherwise is None else [then, otherwise]
            case Seq(statements):
                stack += statements


@dataclass(slots=True)
class _Place:
    """The context of a statement: the loops, conditions and allocations around it."""

    loops: tuple[Loop, ...] = ()
    conditions: tuple[Expr, ...] = ()
    values: Mapping[Var, Expr] = field(default_factory=dict)

    def inside(self, loop: Loop) -> _Place:
        return _Place((*self.loops, loop), self.conditions, self.values)

    def where(self, var: Var, value: Expr) -> _Place:
        values = {**self.values, var: substitute(value, self.values)}
        return _Place(self.loops, self.conditions, values)

    def under(self, condition: Expr) -> _Place:
        added = tuple(conjuncts(substitute(condition, self.values)))
        return _Place(self.loops, (*self.conditions, *added), self.values)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the parts of a conjunction."""
    match condition:
        case Logical("and", a, b) | Not(Logical("or", Not(a), Not(b))):
            yield from conjuncts(a)
            yield from conjuncts(b)
        case Call("likely", (inner,), _):
            yield from conjuncts(inner)
        case Not(Call("likely", (inner,), _)):
            yield from conjuncts(Not(inner))
        case Not(Logical("or", a, b)):
            yield from conjuncts(Not(a))
            yield from conjuncts(Not(b))
        case _:
            yield condition


class _Collector:
    def __init__(self, func: PrimFunc, with_inputs: bool) -> None:
        self.func = func
        self.wanted = set(func.buffers if with_inputs else ())
        for stmt in _statements(func.body):
            if isinstance(stmt, Store | Allocate):
                self.wanted.add(stmt.buffer)
            elif isinstance(stmt, ExternCall):
                self.wanted |= {region.buffer for region in stmt.regions if region.is_written}
        self.epochs = EpochCounter(func.body)
        self.depths: dict[Buffer, int] = {}
        self.loops: list[Loop] = []
        self.items: list[Access] = []
        self.ranges = {symbol: Interval(0, math.inf) for symbol in func.symbols}
        self.extents: dict[Var, Expr] = {}

    def run(self) -> Accesses:
        self.stmt(self.func.body, _Place())
        analyzer = Analyzer(self.ranges, self.extents)
        return Accesses(self.func, tuple(self.loops), tuple(self.items), self.shared(), analyzer)

    def shared(self) -> dict[Loop, dict[Buffer, list[Access]]]:
        groups: dict[Loop, dict[Buffer, list[Access]]] = {}
        for access in self.items:
            for loop in access.loops[access.shared_from :]:
                groups.setdefault(loop, {}).setdefault(access.buffer, []).append(access)
        return groups

    def stmt(self, stmt: Stmt, place: _Place) -> None:  # noqa: C901 - one case per node
        match stmt:
            case For(var, extent, kind, body):
                self.reads(extent, stmt, place)
                loop = Loop(var, substitute(extent, place.values), kind, stmt)
                with self.epochs.in_loop(stmt):
                    self.stmt(body, self.enter(loop, place))
            case Store():
                self.store(stmt, place)
            case If(condition, then, otherwise):
                self.reads(condition, stmt, place)
                with self.epochs.in_branch(stmt):
                    self.stmt(then, place.under(condition))
                    if otherwise is not None:
                        self.stmt(otherwise, place.under(Not(condition)))
            case Seq(statements):
                for statement in statements:
                    self.stmt(statement, place)
            case Allocate(buffer, body):
                self.depths[buffer] = len(place.loops)
                self.stmt(body, place)
            case Let(var, value, body):
                lanes = dtypes.lanes(value.dtype)
                self.reads(value, stmt, self.in_lanes(stmt, lanes, place)[1])
                self.stmt(body, place.where(var, value))
            case Assert(condition, _, values):
                for expr in (condition, *values):
                    self.reads(expr, stmt, place)
            case ExternCall():
                for arg in stmt.args:
                    self.argument(arg, stmt, place)
            case IntrinsicCall(body=body):  # it touches what its body, the declaration, touches
                self.stmt(body, place)
            case Barrier():
                self.epochs.pass_barrier()
            case Prefetch():
                pass  # it reads nothing
            case _:
                raise InternalError(
                    f"accesses of {self.func.name}", f"no meaning for {type(stmt).__name__}"
                )

    def enter(self, loop: Loop, place: _Place) -> _Place:
        self.loops.append(loop)
        old = self.ranges.get(loop.var)
        if loop.size is not None:
            last = max(loop.size - 1, 0, old.high if old else 0)
            self.ranges[loop.var] = Interval(0, last)
            if self.extents.pop(loop.var, None) is not None:
                self.ranges[loop.var] = Interval(0, math.inf)
        elif old is not None or loop.var in self.extents:
            self.extents.pop(loop.var, None)
            self.ranges[loop.var] = Interval(0, math.inf)
        else:
            self.extents[loop.var] = loop.extent
        return place.inside(loop)

    def store(self, store: Store, place: _Place) -> None:
        loop, place = self.in_lanes(store, lanes_of(store.indices), place)
        if loop is not None and not any(_differs_by_lane(index) for index in store.indices):
            self.loops.append(loop)
        for expr in (*store.indices, store.value):
            self.reads(expr, store, place)
        if store.predicate is not None:
            self.reads(store.predicate, store, place)
            place = place.under(_in_lane(store.predicate, place))
        if store.buffer in self.wanted:
            self.add(store.buffer, store.indices, True, store, place)

    def argument(self, arg: Expr, call: ExternCall, place: _Place) -> None:
        """Add the accesses of a call argument; a region counts as loops over its box."""
        if not isinstance(arg, Region):
            self.reads(arg, call, place)
            return
        for part in (*arg.indices, *arg.extents):
            self.reads(part, call, place)
        if arg.buffer not in self.wanted:
            return
        indices, inside = [], place
        for number, (index, extent) in enumerate(zip(arg.indices, arg.extents, strict=True)):
            count = substitute(extent, place.values)
            loop = Loop(Var(f"element{number}"), count, "serial", call)
            inside = self.enter(loop, inside)
            indices.append(binary("add", index, loop.var))
        for is_write in ([False] if arg.is_read else []) + ([True] if arg.is_written else []):
            self.add(arg.buffer, tuple(indices), is_write, call, inside)

    def in_lanes(self, stmt: Stmt, lanes: int, place: _Place) -> tuple[Loop | None, _Place]:
        """Return the lanes of a vector statement as a loop, and the context inside this loop."""
        if lanes == 1:
            return None, place
        loop = Loop(Var("lane"), index_const(lanes), "lanes", stmt)
        self.ranges[loop.var] = Interval(0, lanes - 1)
        return loop, place.inside(loop)

    def add(
        self,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        is_write: bool,
        statement: Stmt,
        place: _Place,
    ) -> None:
        plain = tuple(substitute(_in_lane(index, place), place.values) for index in indices)
        depth = self.depths.get(buffer, 0)
        epoch = self.epochs.epoch
        self.items.append(
            Access(buffer, plain, is_write, place.loops, place.conditions, statement, depth, epoch)
        )

    def reads(self, expr: Expr, statement: Stmt, place: _Place) -> None:
        """Add the loads in an expression; those in a branch get its condition."""
        stack = [(expr, place)]
        seen: dict[tuple[int, int], _Place] = {}
        while stack:
            current, here = stack.pop()
            if isinstance(current, Const | Var) or (id(current), id(here)) in seen:
                continue
            seen[id(current), id(here)] = here
            match current:
                case Load(buffer, indices, predicate):
                    stack.extend((child, here) for child in _operands(current))
                    if buffer in self.wanted:
                        if predicate is not None:
                            here = here.under(_in_lane(predicate, here))
                        self.add(buffer, indices, False, statement, here)
                case IfThenElse(condition, a, b) if dtypes.lanes(condition.dtype) == 1:
                    stack.append((condition, here))
                    stack.append((a, here.under(condition)))
                    stack.append((b, here.under(Not(condition))))
                case Logical(op, a, b) if dtypes.lanes(a.dtype) == 1:
                    stack.append((a, here))
                    stack.append((b, here.under(a if op == "and" else Not(a))))
                case _:
                    stack.extend((child, here) for child in _operands(current))


def _differs_by_lane(index: Expr) -> bool:
    match index:
        case Ramp(_, Const(stride, _), _):
            return bool(stride)
    return False


def _operands(expr: Expr) -> Iterable[Expr]:
    match expr:
        case Binary() | Compare() | Logical():
            return (expr.a, expr.b)
        case Load(_, indices, None):
            return indices
        case Cast(value) | Not(value) | Broadcast(value):
            return (value,)
    return (child for child in children(expr) if isinstance(child, Expr))


def _in_lane(expr: Expr, place: _Place) -> Expr:
    """Return the scalar value of a vector expression in the lane of the innermost loop."""
    if dtypes.lanes(expr.dtype) == 1:
        return expr
    lane = place.loops[-1].var
    expr = substitute(expr, place.values)

    def rule(node: Node) -> Node:
        match node:
            case Ramp(base, stride, _):
                return binary("add", base, binary("mul", stride, lane))
            case Broadcast(value, _):
                return value
            case Cast(value, dtype) if dtypes.lanes(dtype) > dtypes.lanes(value.dtype):
                return Cast(value, dtypes.element(dtype))
        return node

    return rewrite(expr, rule)
