"""Find the dependences that loops carry: kind, accesses and distance.

A loop carries a dependence when two of its iterations touch the same element and one of them
writes it, in the same iteration of the outer loops. It is a *flow* dependence when the earlier
iteration writes and the later reads, *anti* when it reads first, *output* when both write.
Dependences are between memory accesses, not values: a third write between the two does not remove
the dependence. Buffers that are allocated inside the loop belong to one iteration.

A dependence between two accesses in the same iteration of all loops around both is carried by no
loop. `dependences_of` returns these, too.

**Source:** R. Allen and K. Kennedy, *Optimizing Compilers for Modern Architectures*, 2001, sections
2.2 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from dlcompiler.analysis.accesses import Access, Loop, collect_accesses
from dlcompiler.analysis.dependence_systems import Doubt, Witness, find_dependence
from dlcompiler.analysis.distance_vectors import (
    Distance,
    DistanceVector,
    common_loops,
    distance_vector,
)
from dlcompiler.analysis.injectivity import is_injective
from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Binary,
    Buffer,
    Expr,
    For,
    Load,
    PrimFunc,
    Stmt,
    Store,
    structural_equal,
    structural_key,
    walk,
)
from dlcompiler.ir.operations import BINARY

DependenceKind: TypeAlias = Literal["flow", "anti", "output"]
MAX_PAIRS = 2000
_REMEMBERED = 16
"""Stages whose dependences are kept: a picture asks for them again for each chosen loop."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """A dependence: two accesses whose iterations must keep their order."""

    kind: DependenceKind
    loop: Loop | None
    """The loop that carries it; None if both accesses are in one iteration of the common loops."""
    source: Access
    """The access that comes first."""
    sink: Access
    witness: Witness | None
    """Two points that touch one element; None where the dependence could not be excluded."""
    doubt: str = ""
    vector: DistanceVector | None = None
    """Its distances over the loops around both accesses, where they were asked for."""

    @property
    def buffer(self) -> Buffer:
        """The buffer that both accesses touch."""
        return self.source.buffer

    @property
    def distance(self) -> Distance:
        """Iterations of the carrying loop from the source to the sink; ``<`` if they vary; [1]."""
        if self.loop is None:
            return 0
        return self.vector.of(self.loop) if self.vector and not self.doubt else "<"

    @property
    def is_reduction(self) -> bool:
        """Tell whether it is between updates ``X[i] = X[i] op value`` that may run in any order.

        Floats count as real numbers.
        """
        update = self.source.statement
        return update is self.sink.statement and self.loop is not None and _is_update(update)

    def __str__(self) -> str:
        where = "in one iteration"
        if self.loop is not None:
            where = f"loop {self.loop.var.name}, distance {self.distance}"
        text = f"{self.kind} {self.buffer.name}, {where}"
        return f"{text}, perhaps: {self.doubt}" if self.doubt else text


def dependences(func: PrimFunc) -> tuple[Dependence, ...]:
    """Return the dependences that the loops of a function carry, whatever the loops' kind.

    Parameters
    ----------
    func
        A lowered function.

    Returns
    -------
    tuple of Dependence
        For each loop, outermost first: one for each kind and pair of accesses.
    """
    accesses = collect_accesses(func)
    return tuple(
        dependence
        for loop in accesses.loops
        if loop.kind != "lanes"
        for group in accesses.shared_in(loop).values()
        for dependence in carried(loop, group, accesses.analyzer, with_vector=True)
    )


@lru_cache(maxsize=_REMEMBERED)
def dependences_of(func: PrimFunc, stage: str) -> tuple[Dependence, ...]:
    """Return the dependences among the accesses of one stage, and between these and others.

    Parameters
    ----------
    func
        A lowered function.
    stage
        Name of the stage. Its accesses are those of the statements that compute it, also of the
        one that gives a reduction its first value.

    Returns
    -------
    tuple of Dependence
        First those within one iteration, then those carried by each loop, outermost first. Only
        pairs of accesses with at least one common loop are included.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.pipeline import lower
    >>> A = te.placeholder((8, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")
    >>> s = te.create_schedule(C.op)
    >>> found = dependences_of(lower(s, [A, C], simple_mode=True), "C")
    >>> [str(each.vector) for each in found if each.kind == "flow" and each.is_reduction]
    ['(0, <)']
    """
    accesses = collect_accesses(func)
    own = [each for each in accesses.items if _is_of(each.statement, stage)]
    mine = set(own)
    loops = {loop for access in own for loop in access.loops}
    found = [*_in_one_iteration(accesses.items, mine, accesses.analyzer)]
    for loop in accesses.loops:
        if loop not in loops or loop.kind == "lanes":
            continue
        for group in accesses.shared_in(loop).values():
            found += [
                each
                for each in carried(loop, group, accesses.analyzer, with_vector=True)
                if each.source in mine or each.sink in mine
            ]
    return tuple(found)


def _is_of(statement: Stmt, stage: str) -> bool:
    origin = statement.origin if isinstance(statement, Store | For) else ()
    return any(ref.stage == stage for ref in origin)


def _in_one_iteration(
    items: Sequence[Access], mine: set[Access], analyzer: Analyzer
) -> Iterator[Dependence]:
    """Yield the dependences of accesses in `mine` inside one iteration of all common loops."""
    pairs = [
        (first, second)
        for number, second in enumerate(items)
        for first in items[:number]
        if first.buffer is second.buffer
        and (first.is_write or second.is_write)
        and (first in mine or second in mine)
        and common_loops(first, second)
    ]
    if len(pairs) > MAX_PAIRS:
        yield Dependence("output", None, *pairs[-1], None, f"there are {len(pairs)} pairs")
    for source, sink in pairs[:MAX_PAIRS]:
        vector = distance_vector(None, source, sink, analyzer)
        if vector is not None:
            doubt = "" if vector.example else "it depends on data"
            yield Dependence(_kind(source, sink), None, source, sink, None, doubt, vector)


def _is_update(statement: Stmt) -> bool:
    """Tell whether a statement is ``X[i] = X[i] op value``, where the order does not matter."""
    if not isinstance(statement, Store):
        return False
    match statement.value:
        case Binary(op, a, b) if BINARY[op].is_reordered:
            return sum(_reads(part, statement) for part in (a, b)) == 1 and any(
                _is_target(part, statement) for part in (a, b)
            )
    return False


def _is_target(expr: Expr, store: Store) -> bool:
    return (
        isinstance(expr, Load)
        and expr.buffer is store.buffer
        and all(map(structural_equal, expr.indices, store.indices))
    )


def _reads(expr: Expr, store: Store) -> int:
    return sum(isinstance(node, Load) and node.buffer is store.buffer for node in walk(expr))


def _kind(source: Access, sink: Access) -> DependenceKind:
    if not source.is_write:
        return "anti"
    return "output" if sink.is_write else "flow"


def carried(
    loop: Loop, group: Sequence[Access], analyzer: Analyzer, *, with_vector: bool = False
) -> Iterator[Dependence]:
    """Yield the dependences that a loop carries among accesses to one buffer.

    Parameters
    ----------
    loop
        The loop; it encloses all of `group`.
    group
        Accesses to one buffer that the iterations of the loop share.
    analyzer
        Holds the range of each variable.
    with_vector
        Also compute the distance vectors.
    """
    if loop.size is not None and loop.size < 2:
        return
    if not any(access.is_write for access in group):
        return
    if is_injective(loop, group, analyzer):
        return
    distinct = _distinct(group, keep_reads=with_vector)
    pairs = [(a, b) for a in distinct for b in distinct if a.is_write or b.is_write]
    for source, sink in pairs[:MAX_PAIRS]:
        found = find_dependence(loop, source, sink, analyzer)
        if found is None:
            continue
        vector = distance_vector(loop, source, sink, analyzer) if with_vector else None
        kind = _kind(source, sink)
        if isinstance(found, Doubt):
            yield Dependence(kind, loop, source, sink, None, found.reason, vector)
        else:
            yield Dependence(kind, loop, source, sink, found, "", vector)
    if len(pairs) > MAX_PAIRS:
        reason = f"there are {len(pairs)} pairs of accesses"
        yield Dependence("output", loop, distinct[0], distinct[0], None, reason)


def _distinct(group: Sequence[Access], *, keep_reads: bool) -> list[Access]:
    """Keep one of the accesses with equal loops, indices and epoch, a write if possible."""
    kept: dict[object, Access] = {}
    for access in sorted(group, key=lambda access: not access.is_write):
        place = (
            keep_reads and access.is_write,
            tuple(id(loop) for loop in access.loops),
            tuple(structural_key(index) for index in access.indices),
            tuple(structural_key(condition) for condition in access.conditions),
            None if access.epoch is None else structural_key(access.epoch),
        )
        kept.setdefault(place, access)
    return list(kept.values())
