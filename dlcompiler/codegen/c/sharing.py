"""Find the parts of an expression to be named: shared ones and deeply nested ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dlcompiler import dtypes
from dlcompiler.ir import Call, Const, Expr, Load, Var
from dlcompiler.ir.rewrite import Node, children

MOST_NESTED = 24
"""Deepest nesting of operations without a name; C guarantees 63 levels of parentheses."""
SMALL = 8
"""Shared expressions of at most so many nodes are repeated, unless they call a function."""
SMALL_INDEX = 24
"""The same bound for an index, which is easier to read in full."""


class Named(NamedTuple):
    """The parts of a statement's expressions that are stored in named constants."""

    all: set[int]
    """The ``id`` of each part."""
    harmless: list[Expr]
    """Those that may be computed unconditionally: they load nothing and call nothing."""


def named(roots: Sequence[Expr]) -> Named:
    """Return the nodes of a statement's expressions that get a name, children first."""
    order = list(_children_first(roots))
    uses = Counter(id(child) for node in order for child in children(node))
    uses.update(id(root) for root in roots)
    found = Named(set(), [])
    size: dict[int, int] = {}
    height: dict[int, int] = {}
    harmful: set[int] = set()
    for node in order:
        below = [id(child) for child in children(node)]
        size[id(node)] = 1 + sum(size[child] for child in below)
        height[id(node)] = 1 + max((height[child] for child in below), default=0)
        if isinstance(node, Load | Call) or not harmful.isdisjoint(below):
            harmful.add(id(node))
        is_again = uses[id(node)] > 1 and _is_large(node, size[id(node)])
        if isinstance(node, Expr) and (is_again or height[id(node)] > MOST_NESTED):
            found.all.add(id(node))
            if id(node) not in harmful:
                found.harmless.append(node)
            size[id(node)], height[id(node)] = 1, 0
    return found


def _is_large(node: Node, size: int) -> bool:
    if isinstance(node, Const | Var) or not isinstance(node, Expr):
        return False
    return size > (SMALL_INDEX if dtypes.is_index(node.dtype) else SMALL) or isinstance(node, Call)


def _children_first(roots: Sequence[Expr]) -> Iterator[Node]:
    """Yield each node once, children before their parents."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))
