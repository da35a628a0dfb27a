"""Insert assertions before accesses in a user's statements that are not proved to be inside.

*Before*::

    for i in range(8):
        b[ix[i]] = a[i]

*After*::

    for i in range(8):
        assert ix[i] >= 0 and ix[i] < 8, 'b[ix[i]] is outside b: …'
        b[ix[i]] = a[i]

A proof uses the ranges of the loops around a statement, the conditions around it, and the
assertions before it. A condition on elements of a buffer is used only until the buffer is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.arith.implication import implies
from dlcompiler.arith.overflow import is_limited, limits_of_data
from dlcompiler.errors import MAX_VALUES
from dlcompiler.ir import (
    Allocate,
    Assert,
    Buffer,
    Compare,
    Const,
    Expr,
    Extent,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Not,
    Prefetch,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    compare,
    extent_expr,
    format_expr,
    index_const,
    logical,
    seq,
    walk,
)
from dlcompiler.ir.guards import Guards, corners, guarded
from dlcompiler.ir.rewrite import children
from dlcompiler.te.access import is_assumed

SIZE = Interval(0, math.inf)
"""The range of a symbol that is an extent."""


def with_checks(body: Stmt, buffers: Sequence[Buffer]) -> Stmt:
    """Return statements with an assertion before each access that may leave its buffer.

    Parameters
    ----------
    body
        Statements on `buffers`, and on what they allocate themselves.
    buffers
        The buffers of the inputs and outputs. An extent that is a symbol by itself counts as not
        negative.
    """
    sizes = [extent for buffer in buffers for extent in buffer.shape if isinstance(extent, Var)]
    ranges: dict[Var, Interval] = dict.fromkeys(sizes, SIZE)
    return _Place(ranges, {}, (), ()).checked(body)


@dataclass(frozen=True)
class _Place:
    """The facts that hold at a statement."""

    ranges: dict[Var, Interval]
    """Ranges of all variables seen so far; shared by all places, since variables are unique."""
    extents: dict[Var, Expr]
    """Extents of loops whose extent is not a number, by the loop's variable."""
    facts: tuple[Expr, ...]
    """Conditions that hold."""
    loops: tuple[Var, ...]
    """Variables of the loops around it, outermost first."""

    def under(self, *facts: Expr) -> _Place:
        return replace(self, facts=(*self.facts, *facts))

    def forgetting(self, *parts: Stmt) -> _Place:
        """Drop the facts about elements of buffers that statements write."""
        written = frozenset(buffer for part in parts for buffer in _written(part))
        return replace(self, facts=tuple(f for f in self.facts if not _read(f) & written))

    def checked(self, stmt: Stmt) -> Stmt:
        checks = tuple(self.checks(stmt))
        match stmt:
            case Seq(statements):
                return seq(self.in_order(statements))
            case For(var, extent, _, body):
                if isinstance(extent, Const):
                    self.ranges[var] = Interval(0, max(int(extent.value) - 1, 0))
                elif _read(extent).intersection(_written(body)):
                    # The extent is evaluated once, before the loop: inside, its expression may have
                    # another value, so it bounds nothing.
                    self.ranges[var] = SIZE
                else:
                    self.extents[var] = extent
                inside = replace(self.forgetting(body), loops=(*self.loops, var))
                stmt = replace(stmt, body=inside.checked(body))
            case If(condition, then, otherwise):
                rest = otherwise
                if otherwise is not None:
                    rest = self.under(Not(condition)).checked(otherwise)
                stmt = If(condition, self.under(condition).checked(then), rest)
            case Let(var, value, body):
                # The variable keeps its value, but the elements from which it was computed may
                # change, so an equation with elements is not a fact.
                same = () if _read(value) else (Compare("eq", var, value),)
                stmt = replace(stmt, body=self.under(*same).checked(body))
            case Allocate(_, body):
                stmt = replace(stmt, body=self.checked(body))
        return seq((*checks, stmt)) if checks else stmt

    def in_order(self, statements: Sequence[Stmt]) -> Iterator[Stmt]:
        place = self
        for statement in statements:
            yield place.checked(statement)
            place = place.forgetting(statement)
            if isinstance(statement, Assert):
                place = place.under(statement.condition)

    # -- one statement -------------------------------------------------------------------------

    def checks(self, stmt: Stmt) -> Iterator[Stmt]:
        """Yield the assertions for a statement's own loads, stores, and regions of calls."""
        # A prefetch reads no values, and what an intrinsic computes was checked as an expression.
        if isinstance(stmt, Prefetch | IntrinsicCall):
            return
        for child in children(stmt):
            if not isinstance(child, Expr):
                continue
            for node, guards in guarded(child, Load, Region):
                if isinstance(node, Region):
                    yield from self.of_region(node, guards or ())
                elif isinstance(node, Load):
                    yield from self.of_access(node.buffer, node.indices, guards or ())
        if isinstance(stmt, Store):
            yield from self.of_access(stmt.buffer, stmt.indices, ())

    def of_region(self, region: Region, guards: Guards) -> Iterator[Stmt]:
        """Yield the checks of the first and the last element of a region, if it has elements."""
        is_there, ends = corners(region)
        for indices in ends:
            yield from self.of_access(region.buffer, indices, (*guards, *is_there))

    def of_access(self, buffer: Buffer, indices: Sequence[Expr], guards: Guards) -> Iterator[Stmt]:
        analyzer = Analyzer(self.ranges, self.extents)
        known = (*self.facts, *guards)
        facts = [fact for fact in known if is_limited(fact, analyzer.interval)]
        for dimension, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            if is_assumed(index):
                continue
            bounds = (
                Compare("ge", index, index_const(0)),
                Compare("lt", index, extent_expr(extent)),
            )
            may_overflow = bool(limits_of_data(index, analyzer.interval))
            if may_overflow or not all(implies(facts, bound, analyzer) for bound in bounds):
                yield self.assertion(buffer, indices, dimension, guards)

    def assertion(
        self, buffer: Buffer, indices: Sequence[Expr], dimension: int, guards: Guards
    ) -> Stmt:
        text = f"{buffer.name}[{', '.join(map(format_expr, indices))}]"
        bounds = indices[dimension], buffer.shape[dimension]
        place = [(var.name, var) for var in self.loops]
        check = index_assertion(text, buffer.name, dimension, bounds, place)
        return If(logical("and", *guards), check) if guards else check


def _read(expr: Expr) -> set[Buffer]:
    return {node.buffer for node in walk(expr) if isinstance(node, Load | Region)}


def _written(stmt: Stmt) -> Iterator[Buffer]:
    for node in walk(stmt):
        if isinstance(node, Store) or (isinstance(node, Region) and node.is_written):
            yield node.buffer
        elif isinstance(node, ExternCall):
            yield from (region.buffer for region in node.regions if region.is_written)


def index_assertion(
    access: str,
    name: str,
    dimension: int,
    bounds: tuple[Expr, Extent],
    place: Sequence[tuple[str, Expr]],
) -> Assert:
    """Return the assertion that one index of an access is inside its tensor or buffer.

    Parameters
    ----------
    access
        The access as text: ``T[I[i], j]``.
    name
        Name of the tensor or buffer.
    dimension
        Number of the dimension that the index belongs to.
    bounds
        The index, and the extent of its dimension.
    place
        Names and values of the loops around it, for the message. An assertion reports at most
        `MAX_VALUES` values, so the last ones may be left out.

    Examples
    --------
    >>> from dlcompiler.ir import Var
    >>> i, n = Var("i"), Var("n")
    >>> print(index_assertion("A[i + 1]", "A", 0, (i + 1, n), [("i", i)]).text)
    A[i + 1] is outside A: index i + 1 in dimension 0 of extent n, at i=i
    """
    index, extent = bounds[0], extent_expr(bounds[1])
    is_inside = (compare("ge", index, 0), compare("lt", index, extent))
    holds = logical("and", *limits_of_data(index, Analyzer({}).interval), *is_inside)
    values = [index] if isinstance(extent, Const) else [index, extent]
    size = extent if isinstance(extent, Const) else "{1}"
    first, shown = len(values), place[: MAX_VALUES - len(values)]
    at = ", ".join(f"{axis}={{{number}}}" for number, (axis, _) in enumerate(shown, first))
    values += [value for _, value in shown]
    message = f"{access} is outside {name}: index {{0}} in dimension {dimension} of extent {size}"
    return Assert(holds, f"{message}, at {at}" if at else message, tuple(values))
