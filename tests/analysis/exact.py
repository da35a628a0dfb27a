"""Compute exact dependences of small programs with isl, as an independent reference.

Nothing of the analysis is used, not even what collects the accesses. Only programs whose indices
and conditions are quasi-affine in the loop variables can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import islpy as isl

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    index_const,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.rewrite import children, map_children
from dlcompiler.ir.stmt import extent_expr

INFIX = {"add": "+", "sub": "-"}
COMPARISON = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True, eq=False)
class Point:
    """An access: under which loops and conditions it touches which element."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_write: bool
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    allocated_in: int
    symbols: tuple[Var, ...]

    def relation(self, depth: int) -> isl.Map:
        """Return {values of the first `depth` loops -> elements touched}."""
        names = {loop.var: f"x{n}" for n, loop in enumerate(self.loops)}
        names.update((symbol, f"p_{symbol.name}") for symbol in self.symbols)
        given = [names[symbol] for symbol in self.symbols]
        inside = [names[loop.var] for loop in self.loops[depth:]]
        domain = [f"0 <= {names[loop.var]} < {text(loop.extent, names)}" for loop in self.loops] + [
            text(condition, names) for condition in self.conditions
        ]
        elements = [f"e{n}" for n in range(len(self.indices))]
        domain += [f"{e} = {text(i, names)}" for e, i in zip(elements, self.indices, strict=True)]
        exists = f"exists {', '.join(inside)}: " if inside else ""
        outside = ", ".join(names[loop.var] for loop in self.loops[:depth])
        body = " and ".join([f"({part})" for part in domain] + [f"0 <= {name}" for name in given])
        return isl.Map(
            f"[{', '.join(given)}] -> {{ [{outside}] -> [{', '.join(elements)}] : {exists}{body} }}"
        )


def text(expr: Expr, names: dict[Var, str]) -> str:
    """Return an expression in isl's notation."""
    match expr:
        case Const(bool(value), _):
            return "1 = 1" if value else "1 = 0"
        case Const(value, _):
            return f"({value})"
        case Var() if expr in names:
            return names[expr]
        case Binary("add" | "sub" as op, a, b):
            return f"({text(a, names)} {INFIX[op]} {text(b, names)})"
        case Binary("mul", Const() as a, b) | Binary("mul", b, Const() as a):
            return f"({a.value} * {text(b, names)})"
        case Binary("floordiv", a, Const(c, _)):
            return f"floor({text(a, names)} / {c})"
        case Binary("floormod", a, Const(c, _)):
            return f"({text(a, names)} mod {c})"
        case Binary("min" | "max" as op, a, b):
            return f"{op}({text(a, names)}, {text(b, names)})"
        case Compare(op, a, b):
            return f"{text(a, names)} {COMPARISON[op]} {text(b, names)}"
        case Logical(op, a, b):
            return f"(({text(a, names)}) {op} ({text(b, names)}))"
        case Call("likely", (value,), _):
            return text(value, names)
        case Not(value):
            return f"not ({text(value, names)})"
    raise NotImplementedError(str(expr))


@dataclass
class Points:
    """The accesses of a program."""

    found: list[Point] = field(default_factory=list)
    loops: list[tuple[For, ...]] = field(default_factory=list)
    depths: dict[Buffer, int] = field(default_factory=dict)
    inputs: frozenset[Buffer] = frozenset()
    symbols: tuple[Var, ...] = ()
    lanes: dict[Store, For] = field(default_factory=dict)
    """For each vector store, the loop over its lanes that it stands for."""

    def stmt(self, stmt: Stmt, loops: tuple[For, ...], conditions: tuple[Expr, ...]) -> None:
        match stmt:
            case For():
                self.loops.append((*loops, stmt))
                self.stmt(stmt.body, (*loops, stmt), conditions)
            case Store(buffer, indices, value, _, predicate):
                if (lanes := lanes_of(indices)) > 1:
                    loop = For(Var("lane"), index_const(lanes), "vectorized", stmt)
                    self.lanes[stmt] = loop
                    loops = (*loops, loop)
                    self.loops.append(loops)
                for expr in (*indices, value):
                    self.expr(expr, loops, conditions)
                self.add(buffer, indices, True, loops, _under(conditions, predicate))
            case If(condition, then, otherwise):
                self.expr(condition, loops, conditions)
                self.stmt(then, loops, (*conditions, condition))
                if otherwise is not None:
                    self.stmt(otherwise, loops, (*conditions, Not(condition)))
            case Seq(statements):
                for item in statements:
                    self.stmt(item, loops, conditions)
            case Allocate(buffer, body, _):
                self.depths[buffer] = len(loops)
                self.stmt(body, loops, conditions)
            case Let(var, value, body) if var.dtype != "index":
                self.expr(value, loops, conditions)
                self.stmt(body, loops, conditions)
            case _:
                raise NotImplementedError(type(stmt).__name__)

    def expr(self, expr: Expr, loops: tuple[For, ...], conditions: tuple[Expr, ...]) -> None:
        match expr:
            case IfThenElse(condition, a, b):
                self.expr(condition, loops, conditions)
                self.expr(a, loops, (*conditions, condition))
                self.expr(b, loops, (*conditions, Not(condition)))
                return
            case Logical(op, a, b):
                self.expr(a, loops, conditions)
                self.expr(b, loops, (*conditions, a if op == "and" else Not(a)))
                return
            case Load(buffer, indices, predicate):
                self.add(buffer, indices, False, loops, _under(conditions, predicate))
        for child in children(expr):
            self.expr(child, loops, conditions)

    def add(self, buffer, indices, is_write, loops, conditions) -> None:
        depth = self.depths.get(buffer, 0)
        if loops and loops[-1] in self.lanes.values():
            indices = tuple(in_lane(index, loops[-1].var) for index in indices)
            conditions = tuple(in_lane(condition, loops[-1].var) for condition in conditions)
        point = Point(buffer, indices, is_write, loops, conditions, depth, self.symbols)
        self.found.append(point)


def _under(conditions: tuple[Expr, ...], predicate: Expr | None) -> tuple[Expr, ...]:
    return conditions if predicate is None else (*conditions, predicate)


def in_lane(expr: Expr, lane: Var) -> Expr:
    """Return what a vector is in one lane."""
    if dtypes.lanes(expr.dtype) == 1:
        return expr
    match expr:
        case Ramp(base, stride, _):
            return base + stride * lane
        case Broadcast(value, _):
            return value
        case Cast(value, dtype):
            return Cast(in_lane(value, lane), dtypes.element(dtype))
    return map_children(expr, lambda child: in_lane(child, lane))


def points(func: PrimFunc) -> Points:
    """Return the accesses of a program."""
    inputs = frozenset(func.buffers) - frozenset(func.outputs)
    result = Points(inputs=inputs, symbols=func.variables)
    result.stmt(func.body, (), ())
    return result


def conflicts(
    program: Points, loop: For, *, ordered: bool = False
) -> Iterator[tuple[Point, Point, isl.Map]]:
    """Yield the pairs of accesses that meet in two iterations of a loop, with all these.

    The map goes from the values of the loops up to this one, in the iteration of the first access,
    to those of the second. With `ordered` the second is in a later iteration.
    """
    around = next(loops for loops in program.loops if loops[-1] is loop)
    depth = len(around)
    inside = [
        point
        for point in program.found
        if point.loops[:depth] == around and point.allocated_in < depth
    ]
    written = {point.buffer for point in inside if point.is_write}
    inside = [point for point in inside if point.buffer in written]
    relations = {id(point): point.relation(depth) for point in inside}
    for a in inside:
        for b in inside:
            if a.buffer is not b.buffer or not (a.is_write or b.is_write):
                continue
            meet = relations[id(a)].apply_range(relations[id(b)].reverse())
            meet = meet.intersect(_same_outside(depth, "<" if ordered else "!="))
            if not meet.is_empty():
                yield a, b, meet


def _same_outside(depth: int, relation: str) -> isl.Map:
    first, second = ([f"{name}{n}" for n in range(depth)] for name in "ab")
    same = " and ".join(f"{a} = {b}" for a, b in zip(first[:-1], second[:-1], strict=True))
    condition = f"{first[-1]} {relation} {second[-1]}" + (f" and {same}" if same else "")
    return isl.Map(f"{{ [{', '.join(first)}] -> [{', '.join(second)}] : {condition} }}")


def unwritten_reads(program: Points) -> Iterator[tuple[Point, isl.Set]]:
    """Yield the loads that may come before a store to what they read, and from which points."""
    for place, read in enumerate(program.found):
        if read.is_write or read.buffer in program.inputs:
            continue
        depth = len(read.loops)
        points = read.relation(depth)
        missing = points.domain()
        for other, store in enumerate(program.found):
            if not store.is_write or store.buffer is not read.buffer:
                continue
            meet = points.apply_range(store.relation(len(store.loops)).reverse())
            missing -= (meet & _after(read, store, other < place)).domain()
        yield read, missing


def _after(read: Point, store: Point, is_later: bool) -> isl.Map:
    """Return {values of the load's loops -> those of the store's} where the load comes later."""
    first, second = (
        [f"{name}{n}" for n in range(len(point.loops))]
        for name, point in zip("rs", (read, store), strict=True)
    )
    shared = 0
    while shared < min(len(first), len(second)) and read.loops[shared] is store.loops[shared]:
        shared += 1
    own = store.allocated_in
    same = [f"{a} = {b}" for a, b in zip(first, second, strict=False)]
    cases = [" and ".join([*same[:n], f"{second[n]} < {first[n]}"]) for n in range(own, shared)]
    if is_later:
        cases.append(" and ".join(same[:shared]) or "1 = 1")
    condition = " or ".join(f"({case})" for case in cases) or "1 = 0"
    return isl.Map(f"{{ [{', '.join(first)}] -> [{', '.join(second)}] : {condition} }}")


def unwritten_elements(program: Points, output: Buffer) -> isl.Set:
    """Return the elements of an output that nothing writes."""
    given = {symbol: f"p_{symbol.name}" for symbol in program.symbols}
    extents = [text(extent_expr(extent), given) for extent in output.shape]
    bounds = [f"0 <= e{n} < {extent}" for n, extent in enumerate(extents)]
    bounds += [f"0 <= {name}" for name in given.values()]
    names = ", ".join(f"e{n}" for n in range(len(output.shape)))
    missing = isl.Set(
        f"[{', '.join(given.values())}] -> {{ [{names}] : {' and '.join(bounds) or '1 = 1'} }}"
    )
    for point in program.found:
        if point.is_write and point.buffer is output:
            missing -= point.relation(len(point.loops)).range()
    return missing
