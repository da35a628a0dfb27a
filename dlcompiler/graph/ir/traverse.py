"""Traversal: `post_order` visits, `rewrite` replaces from the leaves up.

All tools are loops: data flow may be longer than Python's stack is deep. A node that is reached
twice is visited once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir.nodes import (
    MAX_SCOPES,
    Call,
    Expr,
    Function,
    If,
    Let,
    Node,
    Op,
    Var,
    children,
    with_children,
)

T = TypeVar("T", bound=Node)

_ORDERS: WeakKeyDictionary[Function, tuple[Node, ...]] = WeakKeyDictionary()
"""What is below a function, in post-order: each pass visits the functions that it got several
times. The function itself is not in it, since it could not be freed then."""


def post_order(
    node: Node,
    below: Callable[[Node], Sequence[Node]] = children,
    done: set[int] | None = None,
) -> Iterator[Node]:
    """Yield a node and everything below it once, children before their parents.

    Parameters
    ----------
    node
        Where to begin; it comes last.
    below
        Returns the children to visit, in order; by default all.
    done
        Identities of nodes that are not visited; those that are visited are added.
    """
    if done is None and below is children and isinstance(node, Function):
        known = _ORDERS.get(node)
        if known is None:
            *rest, _ = _visited(node, below, set())
            known = _ORDERS[node] = tuple(rest)
        return chain(known, (node,))
    return _visited(node, below, set() if done is None else done)


def _visited(node: Node, below: Callable[[Node], Sequence[Node]], done: set[int]) -> Iterator[Node]:
    # None says that the node before it comes next: what is below it has been visited.
    stack: list[Node | None] = [node]
    while stack:
        current = stack.pop()
        if current is None:
            current = stack.pop()
            assert current is not None
        elif id(current) in done:
            continue
        elif missing := [child for child in below(current) if id(child) not in done]:
            stack += (current, None)
            stack += reversed(missing)
            continue
        done.add(id(current))
        yield current


def calls(node: Node) -> list[Call]:
    """Return all calls in a node, in post-order."""
    return [each for each in post_order(node) if isinstance(each, Call)]


def operands(node: Node) -> tuple[Node, ...]:
    """Return the children that belong to the scope of a node: what it needs before it is computed.

    The body of a function or a let, and the branches of an `If`, are scopes of their own.
    """
    match node:
        case Function():
            return ()
        case If(condition):
            return (condition,)
        case Let(_, value):
            return (value,)
    return children(node)


def rewrite(node: T, rule: Callable[[Node], Node]) -> T:
    """Apply a rule to every node, children first, and return the new expression.

    Parameters
    ----------
    node
        An expression.
    rule
        Gets a node whose children are rewritten already; returns it or its replacement. In the
        place of a variable that is bound it must return a variable.

    Returns
    -------
    The rewritten node; the same object if nothing changed.
    """
    return rewrite_from(node, lambda _, rebuilt: rule(rebuilt))


def rewrite_from(node: T, rule: Callable[[Node, Node], Node]) -> T:
    """As `rewrite`, with a rule that also gets the node as it was, for which facts are known.

    Parameters
    ----------
    node
        An expression.
    rule
        Gets a node of the given expression, and the same node with rewritten children.
    """
    made: dict[int, Node] = {}
    for current in post_order(node):
        below = children(current)
        new = [made[id(child)] for child in below]
        is_same = all(map(operator.is_, new, below))
        made[id(current)] = rule(current, current if is_same else with_children(current, new))
    return cast(T, made[id(node)])


def substitute(node: T, values: Mapping[Var, Expr]) -> T:
    """Replace variables that are free in a node by expressions."""
    if not values:
        return node
    return rewrite(node, lambda n: values.get(n, n) if isinstance(n, Var) else n)


def bound_vars(node: Node) -> set[Var]:
    """Return the variables that functions and lets inside a node bind."""
    bound: set[Var] = set()
    for each in post_order(node):
        match each:
            case Function(params):
                bound.update(params)
            case Let(var):
                bound.add(var)
    return bound


def free_vars(node: Node) -> list[Var]:
    """Return the variables that nothing inside a node binds, in order of appearance."""
    bound = bound_vars(node)
    return [n for n in post_order(node) if isinstance(n, Var) and n not in bound]


def users_of(node: Node) -> dict[Node, list[Node]]:
    """Return for each node below `node` the nodes that use it, in post-order; no operators."""
    users: dict[Node, list[Node]] = {node: []}
    for parent in post_order(node):
        for child in children(parent):
            if not isinstance(child, Op):
                users.setdefault(child, []).append(parent)
    return users


def check_scopes(node: Node, operation: str) -> None:
    """Refuse scopes that are nested too deeply for tools that are recursive over scopes.

    Raises
    ------
    GraphError
        If more than `MAX_SCOPES` functions, branches, and lets that are operands stand inside each
        other.
    """
    nodes = list(post_order(node))
    if sum(isinstance(each, Let | If | Function) for each in nodes) <= MAX_SCOPES:
        return  # they are not deeper than there are
    depth: dict[int, int] = {}
    for current in nodes:
        match current:
            case Let(_, value, body):
                depth[id(current)] = max(depth[id(value)] + 1, depth[id(body)])
            case If(condition, then, otherwise):
                inner = max(depth[id(then)], depth[id(otherwise)]) + 1
                depth[id(current)] = max(depth[id(condition)], inner)
            case Function(_, body):
                depth[id(current)] = depth[id(body)] + 1
            case _:
                depth[id(current)] = max((depth[id(c)] for c in children(current)), default=0)
        if depth[id(current)] > MAX_SCOPES:
            raise GraphError(
                operation, f"scopes are nested more than {MAX_SCOPES} deep",
                hint="bind inner functions and branches to names of the module",
            )  # fmt: skip


def check_bindings(node: Node, operation: str) -> None:
    """Refuse a variable that is bound twice: its uses would be ambiguous.

    Functions beside each other may have the same parameters, as copies of a function do.

    Raises
    ------
    GraphError
        If a let binds a variable that is bound elsewhere, or a function binds one twice, or one of
        a function around it.
    """
    binders: dict[Var, list[Node]] = {}
    for each in post_order(node):
        for var in _binds(each):
            binders.setdefault(var, []).append(each)
    for var, found in binders.items():
        if len(found) < 2:
            continue
        if any(isinstance(n, Let) for n in found) or _is_nested(found):
            raise GraphError(
                operation, f"variable {var.name} is bound twice",
                hint="make a variable of the same name for each function and let",
            )  # fmt: skip


def _is_nested(found: Sequence[Node]) -> bool:
    """Tell whether a node stands twice in a list, or inside another one of it."""
    others = set(found)
    return len(others) < len(found) or any(
        inner in others for outer in found for inner in post_order(outer) if inner is not outer
    )


def _binds(node: Node) -> tuple[Var, ...]:
    match node:
        case Function(params):
            return params
        case Let(var):
            return (var,)
    return ()
