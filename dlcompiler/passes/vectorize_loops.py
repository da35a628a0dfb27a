"""Turn vectorized loops into vector operations.

*Before*::

    def main(A: float32[4, 30], s: float32[4], C: float32[4, 30]):
        for i in range(4):
            for j in range(4):
                for l in vectorized(8):
                    if j*8 + l < 30:
                        C[i, j*8 + l] = A[i, j*8 + l]*s[i]

*After*::

    def main(A: float32[4, 30], s: float32[4], C: float32[4, 30]):
        for i in range(4):
            for j in range(4):
                if j*8 + 7 < 30:
                    C[i, j*8 : +8] = A[i, j*8 : +8]*broadcast(s[i], 8)
                else:
                    l.on = (j*8 : +8) < broadcast(30, 8)
                    C[i, j*8 : +8] = (A[i, j*8 : +8] where l.on)*broadcast(s[i], 8) where l.on

Lanes are independent, so statements are vectorized one by one. A statement is cut into vectors of
2, 4, … `max_lanes` lanes, and a longer loop into rounds of them. If the extent is only known when
the program runs, the remainder after the last full round runs under a mask.

A guard that differs between lanes runs the vector when it holds for all of them, and a vector under
a mask when it holds for some, as above. A choice that guards a load becomes a load under a mask.
A buffer allocated inside the loop gets a copy for each lane. A statement that has no vector form
(all lanes store to one element, a loop whose extent differs between lanes, an assertion about a
lane) keeps a serial loop around it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Cast,
    Compare,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Not,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    extent_binary,
    free_vars,
    index_const,
    rewrite,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.base import constant_extent, push_origin, statements
from dlcompiler.passes.lane_guards import has_loads, lane_test
from dlcompiler.passes.lane_vectors import LaneVectors, Mask, ScalarOnlyError

MAX_LANES = 64
VECTOR_BYTES = 256
"""Largest vector: eight or sixteen registers of most machines; [byte]."""
TAIL_BYTES = 64
"""Size of a vector of a loop with a symbolic extent; [byte]."""
LANE_COPIES_BYTES = 16 * 1024
"""Largest total size of the copies of a buffer for the lanes of a loop; [byte]."""
NOTHING = Seq(())


def vectorize_loops(func: PrimFunc, *, max_lanes: int = MAX_LANES) -> PrimFunc:
    """Replace vectorized loops by vector operations.

    Parameters
    ----------
    func
        A function whose vectorized loops have independent iterations, which the schedule ensures.
    max_lanes
        The most lanes of a vector; a power of two.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "vectorized":
            if any(isinstance(inside, ExternCall) for inside in statements(node.body)):
                return replace(node, kind="serial")  # it has no lanes
            return vectorized(node, max_lanes)
        return node

    return func.with_body(rewrite(func.body, rule))


# -- rounds ---------------------------------------------------------------------------------------


def vectorized(loop: For, max_lanes: int) -> Stmt:
    """Return the vector operations of one loop; see `vectorize_loops`."""
    extent, widest = constant_extent(loop), _widest(loop.body)
    limit = min(max_lanes, max(VECTOR_BYTES // widest, 2))
    if extent is None:
        return _rounds_and_mask(loop, min(limit, max(TAIL_BYTES // widest, 2)))
    if extent <= max_lanes:
        return _vectors(loop, limit)
    lanes = next((n for n in _powers(limit) if n >= limit // 4 and extent % n == 0), limit)
    rounds = _part(loop, "round", index_const(extent // lanes), lanes, limit)
    rest = extent % lanes
    if rest == 0:
        return rounds
    return seq((rounds, _vectors(_shifted(loop, index_const(extent - rest), rest), limit)))


def _rounds_and_mask(loop: For, lanes: int) -> Stmt:
    """Split a loop of unknown extent into a loop over full vectors and one masked vector."""
    count = binary("floordiv", loop.extent, lanes)
    rounds = _part(loop, "round", count, lanes, lanes)
    start = binary("mul", count, lanes)
    tail = _shifted(loop, start, lanes)
    inside = Compare("lt", binary("add", start, tail.var), loop.extent)
    return seq((rounds, _LoopVectorizer(tail, lanes).in_some(If(inside, tail.body))))


def _part(loop: For, name: str, count: Expr, lanes: int, limit: int) -> For:
    """Return the loop over `count` rounds of `lanes` iterations each."""
    outer = Var(f"{loop.var.name}.{name}")
    inner = _shifted(loop, binary("mul", outer, lanes), lanes)
    return For(outer, count, "serial", _vectors(inner, limit), loop.origin, loop.annotations)


def _shifted(loop: For, start: Expr, extent: int) -> For:
    """Return a loop from 0 that runs the iterations ``[start, start + extent)`` of a loop."""
    lane = Var(f"{loop.var.name}.lane")
    body = substitute(loop.body, {loop.var: binary("add", start, lane)})
    return replace(loop, var=lane, extent=index_const(extent), body=body)


def _vectors(loop: For, limit: int) -> Stmt:
    return _LoopVectorizer(loop, limit).stmt(loop.body)


def _widest(body: Stmt) -> int:
    """Return the size of the largest element type that `body` computes with [byte]."""
    sizes = [1]
    for node in walk(body):
        match node:
            case Load(buffer) | Store(buffer):
                sizes.append(dtypes.bytes_of(buffer.dtype))
            case Cast(_, dtype) if dtypes.element(dtype) != "index":
                sizes.append(dtypes.bytes_of(dtypes.element(dtype)))
    return max(sizes)


def _powers(limit: int) -> Iterator[int]:
    """Yield the powers of two from `limit` downward."""
    while limit:
        yield limit
        limit //= 2


@dataclass(frozen=True, slots=True)
class _Piece:
    """Adjacent lanes that form one vector."""

    first: int
    lanes: int

    @property
    def last(self) -> int:
        return self.first + self.lanes - 1


def _pieces(extent: int, limit: int) -> Sequence[_Piece]:
    """Cut lanes into vectors of powers of two, the longest first: 24 into 16 and 8."""
    pieces, first = [], 0
    for lanes in _powers(limit):
        while extent - first >= lanes:
            pieces.append(_Piece(first, lanes))
            first += lanes
    return pieces


# -- statements -----------------------------------------------------------------------------------


class _LoopVectorizer:
    """Vectorizes the statements inside one loop of known extent."""

    def __init__(self, loop: For, limit: int) -> None:
        extent = constant_extent(loop)
        assert extent is not None
        self.loop = loop
        self.var = loop.var
        self.extent = extent
        self.pieces = _pieces(extent, limit)

    def stmt(self, stmt: Stmt) -> Stmt:
        """Vectorize each statement by itself, or leave it in a loop."""
        match stmt:
            case Seq(statements):
                return seq(self.stmt(statement) for statement in statements)
            case For(_, extent, _, body) if self.is_shared(extent):
                return replace(stmt, body=self.stmt(body))
            case If(condition, then, otherwise) if self.is_shared(condition):
                rest = None if otherwise is None else self.stmt(otherwise)
                return If(condition, self.stmt(then), rest)
            case If(_, _, None):
                return self.guarded(stmt)
            case Let(var, value, body) if self.is_shared(value):
                return Let(var, value, self.stmt(body))
            case Allocate(buffer) if (copies := _lane_copies(buffer, self.extent)) is not None:
                body = _in_copies(stmt.body, buffer, copies, self.var)
                return replace(stmt, buffer=copies, body=self.stmt(body))
        return self.leaf(stmt)

    def guarded(self, stmt: If) -> Stmt:
        """Vectorize a guard: without a mask if it holds in all lanes, otherwise with one."""
        test = lane_test(stmt.condition, self.var, 0, self.extent - 1)
        if test is None:
            return self.leaf(stmt)
        return If(test.in_all, self.stmt(stmt.then), self.in_some(stmt))

    def in_some(self, stmt: If) -> Stmt:
        """Vectorize a guard that may hold in only some lanes, or keep a loop if that is faster."""
        return self.serial(stmt) if _prefers_scalars(stmt.then, self.var) else self.leaf(stmt)

    def leaf(self, stmt: Stmt) -> Stmt:
        """Vectorize a statement as a whole, or leave it in a loop."""
        try:
            return seq(self.piece(stmt, piece) for piece in self.pieces)
        except ScalarOnlyError:
            return self.serial(stmt)

    def piece(self, stmt: Stmt, piece: _Piece) -> Stmt:
        if piece.lanes == 1:
            body = substitute(stmt, {self.var: index_const(piece.first)})
            return push_origin(body, self.loop.origin)
        return _PieceVectorizer(self.loop, piece).stmt(stmt, None)

    def serial(self, stmt: Stmt) -> Stmt:
        return replace(self.loop, kind="serial", body=stmt)

    def is_shared(self, expr: Expr) -> bool:
        return self.var not in free_vars(expr)


@dataclass
class _PieceVectorizer:
    """Vectorizes statements for the lanes of one piece; raises if any part has no vector form."""

    loop: For
    piece: _Piece
    known: dict[Var, Var] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def vectors(self) -> LaneVectors:
        first, lanes = self.piece.first, self.piece.lanes
        return LaneVectors(self.loop.var, first, lanes, self.known, self.numbers)

    def stmt(self, stmt: Stmt, mask: Mask | None) -> Stmt:  # noqa: C901 - one case per node
        match stmt:
            case Seq(statements):
                return seq(self.stmt(statement, mask) for statement in statements)
            case Store():
                return self.store(stmt, mask)
            case For(_, extent, _, body):
                self.require_shared(extent, mask)
                return replace(stmt, body=self.stmt(body, mask))
            case If():
                return self.conditional(stmt, mask)
            case Let():
                return self.let(stmt, mask)
            case Allocate():
                return self.allocate(stmt, mask)
            case Assert(condition, _, values):
                for expr in (condition, *values):
                    self.require_shared(expr, mask)
                return stmt
            case Barrier():
                return stmt
            case IntrinsicCall():  # an intrinsic is already vector code
                raise ScalarOnlyError
            case Prefetch(buffer, indices):
                if any(map(has_loads, indices)):
                    return NOTHING
                return seq(self.prefetches(buffer, indices))
        raise AssertionError(stmt)

    def allocate(self, stmt: Allocate, mask: Mask | None) -> Stmt:
        copies = _lane_copies(stmt.buffer, self.piece.lanes)
        if copies is None:
            raise ScalarOnlyError
        lane = binary("sub", self.loop.var, self.piece.first)
        body = _in_copies(stmt.body, stmt.buffer, copies, lane)
        return replace(stmt, buffer=copies, body=self.stmt(body, mask))

    def store(self, stmt: Store, mask: Mask | None) -> Stmt:
        vectors = self.vectors()
        if stmt.predicate is not None:
            mask = vectors.mask(vectors.whole(stmt.predicate, mask), mask)
        value = vectors.whole(stmt.value, mask)
        target = tuple(vectors.vector(index, mask) for index in stmt.indices)
        if all(dtypes.lanes(index.dtype) == 1 for index in target):
            raise ScalarOnlyError
        origin = (*stmt.origin, *self.loop.origin)
        on = None if mask is None else mask.on
        return _with_masks(vectors, Store(stmt.buffer, target, value, origin, on))

    def conditional(self, stmt: If, mask: Mask | None) -> Stmt:
        """Vectorize a condition; if lanes differ, both sides run, each under its mask."""
        vectors = self.vectors()
        condition = vectors.vector(stmt.condition, mask)
        if dtypes.lanes(condition.dtype) == 1:
            self.require_shared(stmt.condition, mask)
            rest = None if stmt.otherwise is None else self.stmt(stmt.otherwise, mask)
            return If(condition, self.stmt(stmt.then, mask), rest)
        test = lane_test(stmt.condition, self.loop.var, self.piece.first, self.piece.last)
        is_some = test is not None and test.is_exact and mask is None and stmt.otherwise is None
        yes = vectors.mask(condition, mask, is_some=is_some)
        parts = [self.stmt(stmt.then, yes)]
        if stmt.otherwise is not None:
            no = vectors.mask(Not(yes.on), mask)
            parts.append(self.stmt(stmt.otherwise, no))
        body = _with_masks(vectors, seq(parts))
        if test is None or stmt.otherwise is not None:
            return body
        return If(test.in_some, body)

    def let(self, stmt: Let, mask: Mask | None) -> Stmt:
        vectors = self.vectors()
        value = vectors.vector(stmt.value, mask)
        if dtypes.lanes(value.dtype) == 1:
            return _with_masks(vectors, Let(stmt.var, value, self.stmt(stmt.body, mask)))
        var = Var(stmt.var.name, value.dtype)
        self.known[stmt.var] = var
        return _with_masks(vectors, Let(var, value, self.stmt(stmt.body, mask)))

    def prefetches(self, buffer: Buffer, indices: Sequence[Expr]) -> Iterator[Stmt]:
        """Yield a prefetch for each cache line that the lanes may access."""
        step = max(64 // dtypes.bytes_of(buffer.dtype), 1)
        for lane in range(self.piece.first, self.piece.last + 1, step):
            at = {self.loop.var: index_const(lane)}
            yield Prefetch(buffer, tuple(substitute(index, at) for index in indices))

    def require_shared(self, expr: Expr, mask: Mask | None) -> None:
        """Refuse an expression that differs between lanes, or that loads with no lane active."""
        is_shared = not any(
            node is self.loop.var or node in self.known
            for node in walk(expr)
            if isinstance(node, Var)
        )
        if not is_shared or (mask is not None and not mask.is_some and has_loads(expr)):
            raise ScalarOnlyError


def _with_masks(vectors: LaneVectors, body: Stmt) -> Stmt:
    for on, condition in reversed(vectors.masks):
        body = Let(on, condition, body)
    return body


def _prefers_scalars(body: Stmt, var: Var) -> bool:
    """Tell whether scalar code for a few lanes is faster than a vector under a mask.

    Machines have masks for adjacent elements of 32 and 64 bits; others are accessed one at a time.
    """
    return any(
        dtypes.bytes_of(node.buffer.dtype) < 4
        for node in walk(body)
        if isinstance(node, Load | Store) and any(var in free_vars(i) for i in node.indices)
    )


# -- buffers --------------------------------------------------------------------------------------


def _lane_copies(buffer: Buffer, lanes: int) -> Buffer | None:
    """Return a buffer with a last dimension for the lanes; None if that would be too large."""
    if not buffer.is_static or not isinstance(buffer.size, int):
        return None
    if buffer.size * lanes * dtypes.bytes_of(buffer.dtype) > LANE_COPIES_BYTES:
        return None
    strides = (*(extent_binary("mul", stride, lanes) for stride in buffer.strides), 1)
    return replace(buffer, shape=(*buffer.shape, lanes), strides=strides)


def _in_copies(body: Stmt, buffer: Buffer, copies: Buffer, lane: Expr) -> Stmt:
    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store | Prefetch) and node.buffer is buffer:
            return replace(node, buffer=copies, indices=(*node.indices, lane))
        return node

    return rewrite(body, rule)
