"""Assert before each access that its indices are inside the buffer.

*Before*::

    def main(A: float32[10], C: float32[8]):
        for i in range(8):
            C[i] = if_then_else(i >= 1, A[i - 1], 0.0)
        C[0 : +8] = A[2 : +8]

*After*::

    def main(A: float32[10], C: float32[8]):
        for i in range(8):
            assert not i >= 1 or i - 1 >= 0 and i - 1 < 10, 'A[i - 1] is outside A[10]'
            assert i >= 0 and i < 8, 'C[i] is outside C[8]'
            C[i] = if_then_else(i >= 1, A[i - 1], 0.0)
        assert 2 >= 0 and 2 < 10 and 9 >= 0 and 9 < 10, 'A[2 : +8] is outside A[10]'
        assert 0 >= 0 and 0 < 8 and 7 >= 0 and 7 < 8, 'C[0 : +8] is outside C[8]'
        C[0 : +8] = A[2 : +8]

No check is omitted because it can be proved: the pass also finds mistakes of other passes. A load
on one side of a choice is checked only if that side is chosen, and lanes of a masked access only if
they are active. The pass runs last, so that it checks the program that becomes machine code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Logical,
    Not,
    Prefetch,
    PrimFunc,
    Ramp,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    compare,
    const,
    extent_expr,
    format_expr,
    index_const,
    logical,
    seq,
    structural_key,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.guards import corners, operands
from dlcompiler.ir.operations import fold_index
from dlcompiler.ir.rewrite import Node, children, map_children

LANES_AT_ONCE = 8
"""Checked by one assertion: a longer condition would be too deep; [lanes]."""


def instrument_bounds(func: PrimFunc) -> PrimFunc:
    """Put an assertion before each statement for everything that it loads or stores.

    Parameters
    ----------
    func
        Any function without vectorized loops: vector operations are checked as such.
    """
    return func.with_body(_instrumented(func.body, {}))


LaneVars: TypeAlias = Mapping[Var, Sequence[Var]]
"""For each vector variable, the scalar variables of its lanes."""


def _instrumented(stmt: Stmt, known: LaneVars) -> Stmt:
    match stmt:
        case Let(var) if dtypes.lanes(var.dtype) > 1:
            return _with_checks(stmt, _by_lanes(stmt, known), known)
        case For() | Let() | Allocate():
            stmt = _with_checks(stmt, replace(stmt, body=_instrumented(stmt.body, known)), known)
        case If(condition, then, otherwise):
            rest = None if otherwise is None else _instrumented(otherwise, known)
            stmt = _with_checks(stmt, If(condition, _instrumented(then, known), rest), known)
        case Seq(statements):
            return seq(_instrumented(statement, known) for statement in statements)
        case Store() | Assert() | ExternCall():
            return _with_checks(stmt, stmt, known)
        case Prefetch() | Barrier():
            return stmt  # it reads nothing
        case IntrinsicCall():
            corners = [corner for region in stmt.regions for corner in _corners(region)]
            return seq((*(check for corner in corners for check in corner.checks({})), stmt))
    return stmt


def _by_lanes(let: Let, known: LaneVars) -> Let:
    """Add a variable for each lane of a vector, for the assertions that test one lane."""
    element = dtypes.element(let.var.dtype)
    lanes = [Var(f"{let.var.name}.{n}", element) for n in range(dtypes.lanes(let.var.dtype))]
    body = _instrumented(let.body, {**known, let.var: lanes})
    for number, var in reversed(list(enumerate(lanes))):
        body = Let(var, _Lane(number, known).of(let.value), body)
    return replace(let, body=body)


def _with_checks(old: Stmt, new: Stmt, known: LaneVars) -> Stmt:
    checks = list(_checks(old, known))
    return seq((*checks, new)) if checks else new


def _checks(stmt: Stmt, known: LaneVars) -> Iterator[Assert]:
    """Yield an assertion for each different access of a statement, in order of execution."""
    search, done = _Search(), set()
    for child in children(stmt):
        if isinstance(child, Expr):
            search.visit(child, ())
    if isinstance(stmt, Store):
        search.found.append(_Access(stmt.buffer, stmt.indices, stmt.predicate, ()))
    for access in search.found:
        if not access.indices:
            continue
        # Indices are short; what guards them may be too deep for a key.
        indices = tuple(structural_key(index) for index in access.indices)
        guards = (*access.guards, access.predicate)
        key = (access.buffer, indices, tuple(map(id, guards)))
        if key not in done:
            done.add(key)
            yield from access.checks(known)


@dataclass(frozen=True)
class _Access:
    """An access under `guards`; each guard is evaluated only if the guards before it hold."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None
    guards: tuple[Expr, ...]

    def checks(self, known: LaneVars) -> Iterator[Assert]:
        """Yield assertions that the indices of all active lanes are in bounds."""
        for condition in self.conditions(known):
            yield Assert(condition, self.message())

    def message(self) -> str:
        shape = ", ".join(str(extent) for extent in self.buffer.shape)
        indices = ", ".join(format_expr(index) for index in self.indices)
        name = self.buffer.name
        return f"{name}[{indices}] is outside {name}[{shape}]"

    def conditions(self, known: LaneVars) -> Iterator[Expr]:
        """Yield conditions that all hold if the indices of all active lanes are in bounds."""
        lanes = lanes_of(self.indices)
        guards = self.guards if self.predicate is None else (*self.guards, self.predicate)
        if not guards and all(_is_monotone(index) for index in self.indices):
            numbers: Sequence[int] = sorted({0, lanes - 1})  # the other lanes lie between these
        else:
            numbers = range(lanes)
        for first in range(0, len(numbers), LANES_AT_ONCE):
            group = numbers[first : first + LANES_AT_ONCE]
            yield logical(
                "and", *(c for n in group for c in self.lane_conditions(_Lane(n, known), guards))
            )

    def lane_conditions(self, lane: _Lane, guards: tuple[Expr, ...]) -> list[Expr]:
        bounds: list[Expr] = []
        for index, extent in zip(self.indices, self.buffer.shape, strict=True):
            value = lane.of(index)
            bounds += [compare("ge", value, 0), compare("lt", value, extent_expr(extent))]
        if not guards:
            return bounds
        inside = logical("and", *bounds)
        for guard in reversed(guards):
            inside = Logical("or", Not(lane.of(guard)), inside)
        return [inside]


def _is_monotone(index: Expr) -> bool:
    """Tell whether all lanes of an index lie between its first and its last lane."""
    return dtypes.lanes(index.dtype) == 1 or isinstance(index, Ramp | Broadcast)


class _Search:
    """Finds the accesses of expressions, operands first."""

    def __init__(self) -> None:
        self.found: list[_Access] = []
        self.seen: set[tuple[int, ...]] = set()

    def visit(self, root: Expr, guards: tuple[Expr, ...]) -> None:
        """Search an expression without recursion: it may be a sum of a thousand terms."""
        stack: list[tuple[Expr, tuple[Expr, ...], bool]] = [(root, guards, False)]
        while stack:
            expr, guards, is_done = stack.pop()
            key = (id(expr), *map(id, guards))
            if is_done:
                if isinstance(expr, Load):
                    access = _Access(expr.buffer, expr.indices, expr.predicate, guards)
                    self.found.append(access)
                elif isinstance(expr, Region):
                    self.found += _corners(expr)
            elif key not in self.seen:
                self.seen.add(key)
                stack.append((expr, guards, True))
                stack.extend((*item, False) for item in reversed(operands(expr, guards)))


def _corners(region: Region) -> Iterator[_Access]:
    """Yield the first and the last element of a region that is not empty."""
    is_there, ends = corners(region)
    for indices in ends:
        yield _Access(region.buffer, indices, None, is_there)


class _Lane:
    """One lane of vector expressions."""

    def __init__(self, number: int, known: LaneVars) -> None:
        self.number = number
        self.known = known
        self.memo: dict[int, tuple[Expr, Expr]] = {}

    def of(self, expr: Expr) -> Expr:
        if dtypes.lanes(expr.dtype) == 1:
            return expr
        known = self.memo.get(id(expr))
        if known is None:
            known = self.memo[id(expr)] = (expr, self.made(expr))
        return known[1]

    def made(self, expr: Expr) -> Expr:
        match expr:
            case Var():
                return self.known[expr][self.number]
            case Broadcast(value, _):
                return value
            case Ramp(base, stride, _):
                return _sum(base, _product(stride, self.number))
            case Cast(value, dtype):
                return Cast(self.of(value), dtypes.element(dtype))
            case Call(name, args, dtype):
                return Call(name, tuple(self.of(arg) for arg in args), dtypes.element(dtype))
        return map_children(expr, self.visit)

    def visit(self, node: Node) -> Node:
        assert isinstance(node, Expr)
        return self.of(node)


def _sum(a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const) and a.dtype == "index":
        return index_const(fold_index("add", int(a.value), int(b.value)))
    return a if isinstance(b, Const) and b.value == 0 else Binary("add", a, b)


def _product(a: Expr, factor: int) -> Expr:
    if isinstance(a, Const) and a.dtype == "index":
        return index_const(int(a.value) * factor)
    return Binary("mul", a, const(factor, a.dtype)) if factor else const(0, a.dtype)
