"""Write a vector operation as scalar operations on its lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Const,
    Expr,
    IntrinsicCall,
    Load,
    Stmt,
    Store,
    Var,
    index_const,
    rewrite,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.lanes import at_lane
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.flatten_storage import flat_index


class Lanes:
    """The scalar expressions of the lanes of vectors.

    Parameters
    ----------
    variables
        The lanes of each variable that is a vector.
    loaded
        The lanes of loads that the code has made already, by ``id``.
    """

    def __init__(
        self, variables: Mapping[Var, Sequence[Var]], loaded: Mapping[int, Sequence[Var]]
    ) -> None:
        self._loaded = loaded
        self._vectors: dict[Var, Callable[[Expr], Expr]] = {
            var: partial(_nth, lanes) for var, lanes in variables.items()
        }

    def all(self, expr: Expr, count: int) -> list[Expr]:
        """Return the lanes of an expression; a scalar is the same in all."""
        known = rewrite(expr, self._read) if self._loaded else expr
        return [at_lane(known, index_const(number), self._vectors) for number in range(count)]

    def lane(self, expr: Expr, number: int) -> Expr:
        """Return one lane of an expression; a scalar is the same in all."""
        return at_lane(expr, index_const(number), self._vectors)

    def _read(self, node: Node) -> Node:
        """Return a variable in place of a load that has been made."""
        if not isinstance(node, Load) or id(node) not in self._loaded:
            return node
        var = Var(node.buffer.name, node.dtype)
        self._vectors[var] = partial(_nth, self._loaded[id(node)])
        return var


def _nth(lanes: Sequence[Var], lane: Expr) -> Expr:
    assert isinstance(lane, Const)
    return lanes[int(lane.value)]


def aligned_start(buffer: Buffer, indices: tuple[Expr, ...], analyzer: Analyzer) -> Expr | None:
    """Return the position of the first lane, if the lanes are a vector in memory.

    Parameters
    ----------
    buffer
        What is accessed.
    indices
        Its indices, some of which are vectors.
    analyzer
        Knows the variables.

    Returns
    -------
    Expr or None
        A multiple of the number of lanes. None if the lanes are not neighbours, or may begin
        elsewhere, or if an index is a variable that is a vector.
    """
    parts = (node for index in indices for node in walk(index))
    if any(isinstance(part, Var) and lanes_of([part]) > 1 for part in parts):
        return None
    count = lanes_of(indices)
    places = [
        flat_index(buffer, tuple(at_lane(index, index_const(n), {}) for index in indices))
        for n in range(count)
    ]
    start = analyzer.affine(places[0])
    for number, place in enumerate(places):
        distance = analyzer.affine(place).plus(start, -1)
        if not distance.is_constant or distance.constant != number:
            return None
    return simple_position(places[0], analyzer) if _divides(count, start) else None


def simple_position(position: Expr, analyzer: Analyzer) -> Expr:
    """Return a position in memory without the divisions that cancel: ``f//31*31 + f%31`` is ``f``.

    A loop that several dimensions were fused into has such positions where they are contiguous.
    """
    divisions = ("floordiv", "floormod")
    if any(isinstance(node, Binary) and node.op in divisions for node in walk(position)):
        return analyzer.simplify(position)
    return position


def copies_words(store: Store) -> bool:
    """Tell whether a store puts elements into memory as they are elsewhere, or zeros."""
    match store.value:
        case Load(buffer, indices, None):
            is_same = buffer.dtype == store.buffer.dtype
            return (
                is_same and store.predicate is None and lanes_of(indices) == lanes_of(store.indices)
            )
        case Broadcast(Const(0)):
            return store.predicate is None
    return False


def is_multiple(buffer: Buffer, indices: tuple[Expr, ...], count: int, analyzer: Analyzer) -> bool:
    """Tell whether the position of an element is proved to be a multiple of `count`."""
    return _divides(count, analyzer.affine(flat_index(buffer, indices)))


def with_vectors(stmt: Stmt) -> frozenset[Buffer]:
    """Return the buffers in which a statement may access several elements at once."""
    found: set[Buffer] = set()
    for node in walk(stmt):
        if isinstance(node, Load | Store) and lanes_of(node.indices) > 1:
            found.add(node.buffer)
        if isinstance(node, IntrinsicCall):
            found.update(region.buffer for region in node.regions)
    return frozenset(found)


def _divides(count: int, position: Affine) -> bool:
    factors = (position.constant, *(term.factor for term in position.terms.values()))
    return not any(factor % count for factor in factors)
