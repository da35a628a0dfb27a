"""The loops of a kernel, and how many values of one element it needs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.graph.inference import type_of
from dlcompiler.graph.ir import (
    Call,
    Dimension,
    Expr,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    calls,
    children,
    post_order,
)
from dlcompiler.graph.operators import REGISTRY, Pattern
from dlcompiler.graph.operators.relations import chosen_axes
from dlcompiler.graph.passes.fusion.kernels import body_of, is_one_loop, is_static
from dlcompiler.graph.passes.tools import attrs_of, operator_of

ONE_PASS = frozenset(
    {"all", "any", "argmax", "argmin", "max", "mean", "min", "norm", "prod", "sum", "variance"}
)
"""Reductions that read each element once: ``logsumexp`` reads it again after the maximum."""


@dataclass(frozen=True)
class Loops:
    """The loops in which a kernel computes its result."""

    shape: tuple[Dimension, ...]
    """Their extents: the shape of the result, or of what a reduction reads."""
    reduced: tuple[int, ...] | None = None
    """The loops that a reduction combines; None if there is no reduction."""


def loops_of(call: Call) -> Loops | None:
    """Return the loops of a kernel; None if it is not one loop nest that reads elements once."""
    kernel = body_of(call)
    if is_one_loop(call):
        assert isinstance(kernel.result, TensorType)
        return Loops(kernel.result.shape)
    root = kernel.body
    if operator_of(root) not in ONE_PASS or not isinstance(root, Call) or not is_static(call):
        return None
    if any(_pattern(each) > Pattern.INJECTIVE for each in calls(kernel.body) if each is not root):
        return None
    kind = type_of(root.args[0])
    assert isinstance(kind, TensorType)
    return Loops(kind.shape, chosen_axes(attrs_of(root), kind.rank))


def _pattern(call: Call) -> Pattern:
    return REGISTRY[call.op.name].pattern if isinstance(call.op, Op) else Pattern.OPAQUE


# -- live values -----------------------------------------------------------------------------------

Key: TypeAlias = object
Order: TypeAlias = Sequence[tuple[Key, Sequence[Key]]]
"""Values of one element as they are computed, each with those that it is computed from."""


def live_values(body: Expr) -> int:
    """Return how many values of one element are needed at once, if each is computed once; [1]."""
    order = [(n, children(n)) for n in post_order(body) if isinstance(n, Call | Var)]
    results = children(body) if isinstance(body, Tuple) else (body,)
    return _peak(order, set(results), set())


@dataclass(frozen=True)
class Steps:
    """The values of one element in a kernel with one result."""

    order: Order
    result: Key
    is_reduction: bool
    """The result is an accumulator, which is needed from the start."""


def steps_of(call: Call) -> Steps:
    """Return the values of a kernel; two kernels that read one value have it in common."""
    kernel = body_of(call)
    own: dict[Node, Key] = dict(zip(kernel.params, call.args, strict=True))
    order: list[tuple[Key, Sequence[Key]]] = []
    for node in post_order(kernel.body):
        if isinstance(node, Call | Var):
            # A new object: two calls of one function compute values of their own.
            key = own.setdefault(node, object())
            order.append((key, [own.get(child, child) for child in children(node)]))
    result: Node = kernel.body
    while isinstance(result, TupleGetItem):
        result = result.value
    is_reduction = isinstance(kernel.body, Call) and _pattern(kernel.body) is Pattern.REDUCTION
    return Steps(order, own.get(result, result), is_reduction)


def most_live(kernels: Sequence[Steps]) -> int:
    """Return how many values of one element are needed at once; [1].

    Parameters
    ----------
    kernels : sequence of Steps
        Computed one after another in the same loops.
    """
    order: dict[Key, Sequence[Key]] = {}
    for steps in kernels:
        order |= dict(steps.order)  # a parameter keeps its first place
    accumulators = {steps.result for steps in kernels if steps.is_reduction}
    return _peak([*order.items()], {steps.result for steps in kernels}, accumulators)


def _peak(order: Order, results: set[Key], alive: set[Key]) -> int:
    """Return how many values are alive at once, if some are from the start, and results stay."""
    last = {child: n for n, (_, below) in enumerate(order) for child in below}
    most = 0
    for n, (key, _) in enumerate(order):
        alive.add(key)
        most = max(most, len(alive))
        alive -= {each for each in alive if last.get(each, -1) <= n and each not in results}
    return most
