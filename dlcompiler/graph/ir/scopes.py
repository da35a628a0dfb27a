"""The scopes of an expression: where each node is computed, and in which order.

A scope is the body of a function, a branch of an `If`, or a let whose value is an operand. The lets
at the end of a scope form a chain: their variables are statements of the scope itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from dlcompiler.graph.ir.nodes import Function, If, Let, Node, Op, Var, children
from dlcompiler.graph.ir.traverse import post_order


@dataclass(eq=False, slots=True)
class Scope:
    """A part of an expression that is entered as a whole."""

    owner: Node | None
    """The node that enters it: a function, an `If`, or the first let of the chain."""
    parent: Scope | None
    lets: tuple[Let, ...]
    """The chain of lets at its end, outermost first."""
    result: Node
    """What follows the last let; its value is that of the scope."""
    needs: dict[Node, list[Node]] = field(default_factory=lambda: defaultdict(list))
    """For nodes of this scope that enter others: the nodes of this scope that are used there."""

    @property
    def depth(self) -> int:
        """Number of scopes around it; [1]."""
        return 0 if self.parent is None else self.parent.depth + 1


class Scopes:
    """The scopes of an expression, which is the root of the outermost one."""

    def __init__(self, root: Node) -> None:
        order = list(post_order(root))
        self.uses = Counter(child for node in order for child in children(node))
        """How often each node is used."""
        self._chained: set[Node] = set()
        self.outermost = self._scope(None, None, root)
        self.of: dict[Node, Scope] = {root: self.outermost}
        """The innermost scope that contains all uses of a node."""
        self.entered: dict[tuple[Node, int], Scope] = {}
        """The scope that contains a child of a node, if it is another than that of the node."""
        for node in reversed(order):  # users come before what they use
            self._place_children(node)
        for node in order:
            self._note_needs(node)

    def _scope(self, owner: Node | None, parent: Scope | None, root: Node) -> Scope:
        # A let with several uses is no part of a chain: it has a scope of its own.
        lets, last = [], root
        while isinstance(last, Let) and (last is owner or self.uses[last] <= 1):
            lets.append(last)
            last = last.body
        self._chained.update(lets)
        return Scope(owner, parent, tuple(lets), last)

    def _place_children(self, node: Node) -> None:
        scope = self.of[node]
        if isinstance(node, Let) and node not in self._chained:
            own = self._scope(node, scope, node)
            self.entered.update({(node, place): own for place in range(3)})
        for place, child in enumerate(children(node)):
            if _enters(node, place):
                self.entered[node, place] = self._scope(node, scope, child)
            used_in = self.entered.get((node, place), scope)
            known = self.of.get(child)
            self.of[child] = used_in if known is None else _common(known, used_in)

    def _note_needs(self, node: Node) -> None:
        for place, child in enumerate(children(node)):
            scope, entered_by = self.entered.get((node, place), self.of[node]), None
            while scope is not self.of[child] and scope.parent is not None:
                entered_by, scope = scope.owner, scope.parent
            if entered_by is not None:
                scope.needs[entered_by].append(child)

    def statements(self, scope: Scope) -> Iterator[Node]:
        """Yield what a scope computes, in order: nodes, and the lets of its chain."""
        done: set[int] = set()
        for let in scope.lets:
            yield from self._missing(let.value, scope, done)
            yield let
        yield from self._missing(scope.result, scope, done)

    def _missing(self, node: Node, scope: Scope, done: set[int]) -> Iterator[Node]:
        """Yield a node and what it uses of this scope, unless that was computed before."""

        def below(parent: Node) -> tuple[Node, ...]:
            used = (*children(parent), *scope.needs.get(parent, ()))
            return tuple(n for n in used if self.of[n] is scope)

        if self.of[node] is scope:
            computed = post_order(node, below, done)
            yield from (n for n in computed if not isinstance(n, Op | Var))


def _enters(node: Node, place: int) -> bool:
    """Tell whether a child of a node is the root of a scope."""
    match node:
        case Function(params):
            return place == len(params)
        case If():
            return place > 0
    return False


def _common(a: Scope, b: Scope) -> Scope:
    """Return the innermost scope that contains two scopes."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        assert a.parent is not None, "scopes of one expression"
        a = a.parent
    return a
