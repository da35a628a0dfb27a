"""Load the next tile into registers before an iteration's work, and store it behind the work.

*Before*::

    def main(A: float32[64], C: float32[8]):
        allocate T: float32[2, 8] in shared
        for x in threadIdx.x(8):
            T[0, x] = A[x] + 1.0
            for k in range(8):  # async_copy = 1
                barrier
                if k + 1 < 8:
                    T[(k + 1) % 2, x] = A[k*8 + x + 8] + 1.0
                C[x] += T[k % 2, -x + 7]

*After*::

    def main(A: float32[64], C: float32[8]):
        allocate T: float32[2, 8] in shared
        for x in threadIdx.x(8):
            T[0, x] = A[x] + 1.0
            for k in range(8):  # async_copy = 1
                barrier
                allocate T.ahead: float32[1] in local
                if k + 1 < 8:
                    T.ahead[0] = A[k*8 + x + 8] + 1.0
                C[x] += T[k % 2, -x + 7]
                if k + 1 < 8:
                    T[(k + 1) % 2, x] = T.ahead[0]

A thread waits for a loaded value where it stores it. Behind the work, memory has had the time of
the work to answer. This is what the pragma ``async_copy`` asks for where the processor has no
copies that go on by themselves, or where the elements are changed or scattered on their way. Other
statements of the iteration must use the other half of the double buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    SHARED,
    Allocate,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    IfThenElse,
    IntrinsicCall,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    index_const,
    is_in_block,
    is_thread,
    seq,
    walk,
    walk_statements,
)
from dlcompiler.ir.rewrite import map_children
from dlcompiler.passes.base import constant_extent
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.thread_conflicts import are_halves
from dlcompiler.target import Target
from dlcompiler.target.gpus import ASYNC_COPIES

PRAGMA = "async_copy"
_COPIED_BYTES = (4, 8, 16)
"""Sizes that a processor copies by itself [byte]."""


def load_ahead(func: PrimFunc, *, target: Target) -> PrimFunc:
    """Put the loads of a double buffer's next half before the work, and its stores behind it.

    Parameters
    ----------
    func
        A function whose double buffers are injected.
    target
        A GPU; with asynchronous copies, it makes plain copies itself.
    """
    return func.with_body(_changed(func.body, ASYNC_COPIES in target.emits, in_block=False))


def _changed(stmt: Stmt, copies_itself: bool, *, in_block: bool) -> Stmt:
    if isinstance(stmt, For):
        in_block = in_block or is_in_block(stmt.kind)
        if in_block and stmt.kind == "serial" and dict(stmt.annotations).get(PRAGMA):
            return replace(stmt, body=_in_loop(stmt.body, copies_itself))
    return map_children(
        stmt,
        lambda part: (
            _changed(part, copies_itself, in_block=in_block) if isinstance(part, Stmt) else part
        ),
    )


def _in_loop(body: Stmt, copies_itself: bool) -> Stmt:
    """Change the body of a loop: a barrier, the fill under its condition, and the work."""
    if isinstance(body, Allocate):
        return replace(body, body=_in_loop(body.body, copies_itself))
    match body:
        case Seq((Barrier() as barrier, If(condition, fill, None), *work)):
            pass
        case _:
            return body
    if any(isinstance(node, Barrier) for stmt in (fill, *work) for node in walk_statements(stmt)):
        return body
    staged: list[_Staged] = []
    front: list[Stmt] = []
    for part in fill.statements if isinstance(fill, Seq) else (fill,):
        made = None if _is_copied(part, copies_itself) else _staged(part, work)
        front.append(part if made is None else made.load)
        staged += [] if made is None else [made]
    if not staged:
        return body
    stores = If(condition, seq(made.store for made in staged))
    inner = seq((If(condition, seq(front)), *work, stores))
    for made in staged:
        inner = Allocate(made.registers, inner)
    return seq((barrier, inner))


# -- what the processor copies by itself --------------------------------------------------------


def _is_copied(part: Stmt, copies_itself: bool) -> bool:
    """Tell whether a fill consists of plain copies that go on by themselves."""
    lanes = {node.var: constant_extent(node) for node in walk(part) if isinstance(node, For)
             and node.kind == "vectorized"}  # fmt: skip
    stores = [node for node in walk_statements(part) if isinstance(node, Store)]
    return copies_itself and all(_is_plain(store, lanes) for store in stores)


def _is_plain(store: Store, lanes: dict[Var, int | None]) -> bool:
    load = store.value
    if isinstance(load, IfThenElse):
        load = load.a if isinstance(load.a, Load) else load.b
    if not isinstance(load, Load) or load.buffer.dtype != store.buffer.dtype:
        return False
    size = dtypes.bytes_of(store.buffer.dtype)
    for var, extent in lanes.items():
        slopes = {_slope(store.buffer, store.indices, var), _slope(load.buffer, load.indices, var)}
        if slopes == {0}:
            continue
        if slopes != {1} or extent is None:
            return False
        size *= extent
    return size in _COPIED_BYTES


def _slope(buffer: Buffer, indices: Sequence[Expr], var: Var) -> int | None:
    """Return the distance in memory between neighbouring lanes; None if it is not known."""
    position = Analyzer({}).affine(flat_index(buffer, tuple(indices)))
    slope = 0
    for term in position.terms.values():
        if term.atom is var:
            slope = term.factor
        elif var in set(walk(term.atom)):
            return None
    return slope


# -- what a thread copies in two steps ----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Staged:
    """A fill in two steps, and the registers between them."""

    load: Stmt
    store: Stmt
    registers: Buffer


def _staged(part: Stmt, work: Sequence[Stmt]) -> _Staged | None:
    """Return a fill in two steps; None if other statements may use the same memory."""
    stores = [node for node in walk_statements(part) if isinstance(node, Store)]
    inner = any(isinstance(n, Allocate | IntrinsicCall) or _is_thread_loop(n) for n in walk(part))
    if len(stores) != 1 or inner or stores[0].buffer.scope != SHARED:
        return None
    (store,) = stores
    loops = list(_loops_around(part, store))
    extents = [constant_extent(loop) for loop in loops]
    if any(extent is None for extent in extents) or not _is_apart(store, work):
        return None
    shape = tuple(extent for extent in extents if extent is not None) or (1,)
    place: tuple[Expr, ...] = tuple(loop.var for loop in loops) or (index_const(0),)
    registers = Buffer(f"{store.buffer.name}.ahead", shape, store.buffer.dtype, "local")
    load = replace(store, buffer=registers, indices=place)
    put = replace(store, value=Load(registers, place))
    return _Staged(_with(part, store, load), _with(part, store, put), registers)


def _is_thread_loop(node: object) -> bool:
    return isinstance(node, For) and is_thread(node.kind)


def _loops_around(stmt: Stmt, store: Store) -> Iterator[For]:
    """Yield the loops around a store, outermost first."""
    while stmt is not store:
        match stmt:
            case For(_, _, _, body):
                yield stmt
                stmt = body
            case If(_, then, None):
                stmt = then
            case Let(_, _, body):
                stmt = body
            case _:
                return


def _with(stmt: Stmt, store: Store, other: Store) -> Stmt:
    if stmt is store:
        return other
    made = map_children(
        stmt, lambda part: _with(part, store, other) if isinstance(part, Stmt) else part
    )
    assert isinstance(made, Stmt)
    return made


def _is_apart(store: Store, work: Sequence[Stmt]) -> bool:
    """Tell whether the work of an iteration uses only the half that the store does not fill."""
    nodes = [node for stmt in work for node in walk(stmt)]
    inner = {node.var for node in nodes if isinstance(node, For | Let)}
    for node in nodes:
        buffer = getattr(node, "buffer", None)
        if buffer is not store.buffer or isinstance(node, Allocate):
            continue
        half = getattr(node, "indices", (None,))[0]
        if half is None or inner & set(walk(half)) or not are_halves(half, store.indices[0]):
            return False
    return True
