"""Traversal: `walk` visits, `rewrite` replaces bottom-up, `substitute` replaces variables.

All three treat a program as a graph: a node that is reached twice is visited once.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast, overload

from dlcompiler.ir.expr import Binary, Const, Expr, Reducer, Var
from dlcompiler.ir.stmt import Stmt

Node: TypeAlias = Expr | Stmt
T = TypeVar("T", Expr, Stmt)

# The fields of a node that hold nodes or tuples of nodes; all others are data.
CHILD_FIELDS = frozenset(
    {
        "a", "b", "args", "base", "body", "condition", "extent", "extents", "indices",
        "init", "otherwise", "predicate", "regions", "statements", "stride", "then", "value",
        "values",
    }
)  # fmt: skip


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the constructor fields of a kind of node."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


@cache
def _child_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a kind of node that may hold children."""
    return () if kind is Const else tuple(n for n in _field_names(kind) if n in CHILD_FIELDS)


class _Getters(dict[type, Callable[[Node], tuple[Any, ...]] | None]):
    """For each kind of node, a function that reads all these fields at once; None for a leaf."""

    def __missing__(self, kind: type) -> Callable[[Node], tuple[Any, ...]] | None:
        names = _child_names(kind)
        if len(names) < 2:
            read = (lambda node: (getattr(node, names[0]),)) if names else None
        else:
            read = operator.attrgetter(*names)
        self[kind] = read
        return read


_GETTERS = _Getters()


def children(node: Node) -> list[Node]:
    """Return the nodes directly below `node`."""
    kind: type = type(node)
    read = _GETTERS[kind]
    found: list[Node] = []
    for value in () if read is None else read(node):
        if type(value) is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return found


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it once, parents first."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        key = id(current)
        if key in seen:
            continue
        seen.add(key)
        yield current
        kind: type = type(current)
        read = _GETTERS[kind]
        if read is not None:
            for value in reversed(read(current)):
                if type(value) is tuple:
                    stack += reversed(value)
                elif value is not None:
                    stack.append(value)


def walk_statements(stmt: Stmt) -> Iterator[Stmt]:
    """Yield a statement and all statements below it once, parents first; skip expressions."""
    seen: set[int] = set()
    stack = [stmt]
    while stack:
        current = stack.pop()
        key = id(current)
        if key in seen:
            continue
        seen.add(key)
        yield current
        kind: type = type(current)
        read = _GETTERS[kind]
        for value in () if read is None else reversed(read(current)):
            if type(value) is tuple:
                stack += [item for item in reversed(value) if isinstance(item, Stmt)]
            elif isinstance(value, Stmt):
                stack.append(value)


def walk_up(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it once, children before their parents."""
    seen: set[int] = set()
    stack = [(node, False)]
    while stack:
        current, is_done = stack.pop()
        if id(current) in seen:
            continue
        if is_done:
            seen.add(id(current))
            yield current
            continue
        stack.append((current, True))
        stack.extend((child, False) for child in children(current))


def depth(node: Node) -> int:
    """Return the number of nodes on the longest path from `node` to a leaf."""
    return _measure(node, lambda below: 1 + max(below, default=0))


def tree_size(node: Node) -> int:
    """Return the number of nodes below and including `node`; a shared one counts at each use."""
    return _measure(node, lambda below: 1 + sum(below))


def _measure(node: Node, combine: Callable[[Iterable[int]], int]) -> int:
    """Compute a number for `node` from the numbers of its children, once for each node."""
    measures: dict[int, int] = {}
    for current in walk_up(node):
        measures[id(current)] = combine(measures[id(child)] for child in children(current))
    return measures[id(node)]


@overload
def map_children(node: Expr, visit: Callable[[Node], Node]) -> Expr: ...
@overload
def map_children(node: Stmt, visit: Callable[[Node], Node]) -> Stmt: ...
@overload
def map_children(node: Node, visit: Callable[[Node], Node]) -> Node: ...
def map_children(node: Node, visit: Callable[[Node], Node]) -> Node:
    """Apply `visit` to the children of `node`; return the same object if none changed."""
    kind: type = type(node)
    if kind is Binary:  # every second node is one
        a, b = visit(node.a), visit(node.b)  # type: ignore[union-attr]
        is_same = a is node.a and b is node.b  # type: ignore[union-attr]
        return node if is_same else Binary(node.op, a, b)  # type: ignore[union-attr, arg-type]
    read = _GETTERS[kind]
    if read is None:
        return node
    changed: dict[str, object] = {}
    for place, old in enumerate(read(node)):
        if type(old) is tuple:
            items = tuple([visit(item) for item in old])
            if any(map(operator.is_not, items, old)):
                changed[_child_names(kind)[place]] = items
        elif old is not None:
            new = visit(old)
            if new is not old:
                changed[_child_names(kind)[place]] = new
    if not changed:
        return node
    values = [changed[n] if n in changed else getattr(node, n) for n in _field_names(kind)]
    rebuilt: Node = kind(*values)
    return rebuilt


def rewrite(node: T, rule: Callable[[Node], Node]) -> T:
    """Apply `rule` to every node, children first, and return the new program.

    Parameters
    ----------
    node
        An expression or a statement.
    rule
        Gets a node whose children are rewritten already; returns it or its replacement.

    Returns
    -------
    The rewritten node; the same object if nothing changed.
    """
    memo: dict[int, Node] = {}

    def visit(current: Node) -> Node:
        key = id(current)
        result = memo.get(key)
        if result is None:
            result = memo[key] = rule(map_children(current, visit))
        return result

    return cast(T, visit(node))


def substitute(node: T, values: Mapping[Var, Expr]) -> T:
    """Replace variables by expressions."""
    if not values:
        return node
    memo: dict[int, Node] = {}

    def visit(current: Node) -> Node:
        if type(current) is Const:
            return current
        if isinstance(current, Var):
            return values.get(current, current)
        key = id(current)
        result = memo.get(key)
        if result is None:
            result = memo[key] = map_children(current, visit)
        return result

    return cast(T, visit(node))


def combine(reducer: Reducer, a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the expressions that merge two partial results."""
    if reducer.op is not None:
        return tuple(Binary(reducer.op, x, y) for x, y in zip(a, b, strict=True))
    values = dict(zip((*reducer.lhs, *reducer.rhs), (*a, *b), strict=True))
    return tuple(substitute(result, values) for result in reducer.results)


def free_vars(node: Node) -> set[Var]:
    """Return the variables in `node`, including those that a statement itself binds."""
    return {n for n in walk(node) if type(n) is Var}
