"""Plan for evaluating an operation: nodes whose values are cached, and reads without a mask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.ir import Const, Expr, Reduce, TensorLoad, Var, numeric, walk
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.ir.stmt import static
from dlcompiler.te.tensor import ComputeOp


@dataclass(frozen=True)
class Plan:
    """Sets of node ids: which nodes `Elements` caches, and which need no mask."""

    shared: frozenset[int]
    """Nodes, except leaves, that are used more than once: their values are kept."""
    inside: frozenset[int]
    """Nodes whose reads are inside their tensors at all points: they need no mask."""


NO_PLAN = Plan(frozenset(), frozenset())


def plan_of(op: ComputeOp) -> Plan:
    """Return the plan for the body of an operation."""
    axes = (*op.axis, *op.reduce_axis)
    extents = {axis.var: axis.static_extent for axis in axes}
    inside: dict[int, bool] = {}
    parts = [part for body in op.bodies for part in _parts(body)]
    for part in parts:
        _mark_inside(part, extents, inside)
    return Plan(_shared(parts), frozenset(key for key, value in inside.items() if value))


def _parts(body: Expr) -> tuple[Expr, ...]:
    """Return the expressions of a body that are evaluated element by element."""
    if not isinstance(body, Reduce):
        return (body,)
    return (*body.values, *body.init, *(() if body.condition is None else (body.condition,)))


def _shared(parts: Sequence[Expr]) -> frozenset[int]:
    nodes = {id(node): node for part in parts for node in walk(part)}
    uses = Counter(
        id(child)
        for node in nodes.values()
        for child in children(node)
        if not isinstance(child, Var | Const)
    )
    return frozenset(key for key, count in uses.items() if count > 1)


def _mark_inside(node: Node, extents: Mapping[Var, int], known: dict[int, bool]) -> bool:
    if id(node) not in known:
        # A list, not a generator: `all` would stop at the first false, and leave children unmarked.
        below = [_mark_inside(child, extents, known) for child in children(node)]
        own = not isinstance(node, TensorLoad) or _reads_inside(node, extents)
        known[id(node)] = own and all(below)
    return known[id(node)]


def _reads_inside(load: TensorLoad, extents: Mapping[Var, int]) -> bool:
    for index, extent in zip(
        load.indices, static(load.tensor.shape, load.tensor.name), strict=True
    ):
        form = numeric.linear_form(index)
        if form is None:
            return False
        terms, low = form
        high = low
        for var, factor in terms.items():
            reach = factor * (extents[var] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        if low < 0 or high >= extent:
            return False
    return True
