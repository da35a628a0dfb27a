"""Tell whether threads have to synchronise between two statements of one thread.

They do if one statement writes memory that the other one uses, unless

- both write it, and the same thread, the first one of some axes, runs both;
- they use different halves of a double buffer: ``T[k % 2, …]`` and ``T[(k + 1) % 2, …]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    free_vars,
)
from dlcompiler.ir.rewrite import Node, children


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """An access of a statement to memory."""

    is_read: bool
    is_written: bool
    first_of: frozenset[Var]
    """The axes of which only the first thread runs it."""
    half: Expr | None
    """Which half of a double buffer, on variables from outside the statement; None: any."""


@dataclass(frozen=True, eq=False)
class Conflicts:
    """Finds the memory that statements share, if threads need an order of their accesses."""

    private: frozenset[Buffer]
    """Memory that no other thread uses."""
    axes: frozenset[Var]
    """The variables of the axes of a block."""
    _known: dict[int, tuple[Stmt, dict[Buffer, list[_Use]]]] = field(default_factory=dict)

    def in_order(self, first: Sequence[Stmt], second: Stmt) -> bool:
        """Tell whether some statements conflict with one that follows in the same iteration."""
        return any(self._between(stmt, second, in_one_iteration=True) for stmt in first)

    def in_loop(self, body: Stmt) -> bool:
        """Tell whether the body of a loop conflicts with itself in the next iteration."""
        return self._between(body, body, in_one_iteration=False)

    def _between(self, first: Stmt, second: Stmt, *, in_one_iteration: bool) -> bool:
        ours, theirs = self._uses(first), self._uses(second)
        return any(
            _is_conflict(a, b, in_one_iteration=in_one_iteration)
            for buffer in ours.keys() & theirs.keys() - self.private
            for a in ours[buffer]
            for b in theirs[buffer]
        )

    def _uses(self, stmt: Stmt) -> dict[Buffer, list[_Use]]:
        if id(stmt) not in self._known:
            found: dict[Buffer, list[_Use]] = {}
            own: set[Buffer] = set()
            for buffer, use in self._walk(stmt, own, frozenset(), frozenset()):
                found.setdefault(buffer, []).append(use)
            shared = {buffer: uses for buffer, uses in found.items() if buffer not in own}
            self._known[id(stmt)] = stmt, shared
        return self._known[id(stmt)][1]

    def _walk(
        self, node: Node, own: set[Buffer], inner: frozenset[Var], first_of: frozenset[Var]
    ) -> Iterator[tuple[Buffer, _Use]]:
        match node:
            case If(Compare("eq", Var() as var, Const(0)), _, None) if var in self.axes:
                first_of = first_of | {var}
            case For(var) | Let(var):
                inner = inner | {var}
            case Allocate(buffer):
                own.add(buffer)
            case Load(buffer, indices):
                yield buffer, _Use(True, False, first_of, _half(buffer, indices, inner))
            case Store(buffer, indices):
                yield buffer, _Use(False, True, first_of, _half(buffer, indices, inner))
            case Region(buffer, indices, extents, mode):
                is_one = bool(extents) and str(extents[0]) == "1"
                half = _half(buffer, indices, inner) if is_one else None
                yield buffer, _Use("r" in (mode or "r"), "w" in (mode or "w"), first_of, half)
        for part in children(node):
            yield from self._walk(part, own, inner, first_of)


def _half(buffer: Buffer, indices: Sequence[Expr], inner: frozenset[Var]) -> Expr | None:
    """Return which half of a buffer of two an access uses."""
    if not indices or len(buffer.shape) < 2 or str(buffer.shape[0]) != "2":
        return None
    return None if free_vars(indices[0]) & inner else indices[0]


def _is_conflict(a: _Use, b: _Use, *, in_one_iteration: bool) -> bool:
    if not (a.is_written or b.is_written):
        return False
    is_same_thread = bool(a.first_of) and a.first_of == b.first_of
    if is_same_thread and not (a.is_read or b.is_read):
        return False
    is_apart = a.half is not None and b.half is not None and are_halves(a.half, b.half)
    return not (in_one_iteration and is_apart)


def are_halves(a: Expr, b: Expr) -> bool:
    """Tell whether two indices of a dimension of extent 2 are proved to differ.

    Parameters
    ----------
    a, b
        Indices, such as ``k % 2`` and ``(k + 1) % 2``.
    """
    match a, b:
        case Binary("floormod", x, Const(2)), Binary("floormod", y, Const(2)):
            a, b = x, y
        case Binary("floormod", _, Const(2)), _:
            return False
        case _, Binary("floormod", _, Const(2)):
            return False
    distance = Analyzer({}).affine(Binary("sub", a, b))
    return distance.is_constant and distance.constant % 2 == 1
