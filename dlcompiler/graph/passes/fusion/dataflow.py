"""The data flow of a function as fusion sees it, and its post-dominators.

**Source:** T. Chen and others, OSDI 2018, section 3; the rules are those of Relay's ``FuseOps``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Function,
    If,
    Let,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    children,
    post_order,
)
from dlcompiler.graph.operators import REGISTRY, Pattern

STOP = "annotation.stop_fusion"
"""Operator that returns its argument, and past which nothing is fused."""


@dataclass(eq=False, slots=True)
class Flow:
    """A node with the nodes that use it."""

    node: Node
    index: int
    """Place in post-order."""
    pattern: Pattern
    uses: list[tuple[Flow, Pattern]] = field(default_factory=list)
    """The users, each with the pattern of the edge to it."""
    leaves_because: str = ""
    """Why the value is needed outside of the data flow; "" if it is not."""
    dominator: Flow | None = None
    """The first node that all paths from this one go through."""
    dominated_by: Pattern = Pattern.OPAQUE
    """The greatest pattern of the edges on these paths."""
    depth: int = 1
    """Number of post-dominators, with itself; [1]."""


def flows_of(function: Function, types: Types) -> dict[Node, Flow]:
    """Return the flow of each node in a function, in post-order, with post-dominators.

    Parameters
    ----------
    function : Function
        A function without unknown types.
    types : Types
        Types of its nodes.
    """
    nodes = [n for n in post_order(function.body, _below) if not isinstance(n, Op)]
    used = set(nodes)
    params = [p for p in function.params if p not in used]
    flows: dict[Node, Flow] = {
        node: Flow(node, i, _pattern(node, types)) for i, node in enumerate([*params, *nodes])
    }
    for node in nodes:
        _note_uses(flows, node, types)
    flows[function.body].leaves_because = "it is a result of the function"
    for flow in reversed(list(flows.values())):
        _dominate(flow)
    return flows


def _below(node: Node) -> tuple[Node, ...]:
    return () if isinstance(node, Function) and node.is_kernel else children(node)


def _pattern(node: Node, types: Types) -> Pattern:
    match node:
        case Constant():
            return Pattern.ELEMENTWISE if node.value.ndim == 0 else Pattern.OPAQUE
        case Call(Op(name)):
            if name == STOP:
                return Pattern.OPAQUE
            operator = REGISTRY[name]
            is_dynamic = not all(_is_static(types[n]) for n in (node, *node.args))
            if operator.notes.get("is_data_dependent") and is_dynamic:
                return Pattern.OPAQUE
            return operator.pattern
        case Tuple():
            return Pattern.TUPLE
        case TupleGetItem(value):
            return Pattern.INJECTIVE if _is_flat(types[value]) else Pattern.OPAQUE
    return Pattern.OPAQUE


def _is_static(kind: Type) -> bool:
    match kind:
        case TensorType():
            return kind.is_static
        case TupleType(fields):
            return all(map(_is_static, fields))
    return False


def _is_flat(kind: Type) -> bool:
    """Tell whether a type is a tuple of tensors."""
    return isinstance(kind, TupleType) and all(isinstance(f, TensorType) for f in kind.fields)


def _note_uses(  # noqa: C901 - by node
    flows: dict[Node, Flow], node: Node, types: Types
) -> None:
    """Link a node to what it uses."""

    def link(child: Node, pattern: Pattern) -> None:
        flows[child].uses.append((flows[node], pattern))

    def leave(child: Node, because: str) -> None:
        flows[child].leaves_because = because

    match node:
        case Call(Op(), args):
            for arg in args:
                link(arg, _edge_pattern(flows[node].pattern, arg, node, types))
        case Call(callee, args):
            for child in (callee, *args):
                leave(child, "it is an argument of a function")
        case Tuple(fields):
            for child in fields:
                if isinstance(types[child], TensorType):
                    link(child, Pattern.INJECTIVE)
                else:
                    leave(child, "it is in a tuple with other tuples")
        case TupleGetItem(value):
            if _is_flat(types[value]):
                link(value, Pattern.INJECTIVE)
            else:
                leave(value, "it is in a tuple with other tuples")
        case Let(var, value, body):
            for child in (var, value, body):
                leave(child, "a let binds it, or returns it")
        case If(condition, then, otherwise):
            for child in (condition, then, otherwise):
                leave(child, "it decides a branch, or is the result of one")
        case Function(body=body, is_kernel=False):
            leave(body, "it is a result of a function")


def _edge_pattern(pattern: Pattern, arg: Node, call: Call, types: Types) -> Pattern:
    """Return the pattern of an edge: broadcasting a full shape is elementwise."""
    given, made = types[arg], types[call]
    if (
        pattern is Pattern.BROADCAST
        and isinstance(given, TensorType)
        and isinstance(made, TensorType)
        and given.shape == made.shape
        and given.is_static
    ):
        return Pattern.ELEMENTWISE
    return pattern


# -- post-dominators ------------------------------------------------------------------------------


def _dominate(flow: Flow) -> None:
    """Find the post-dominator of a node whose users have theirs."""
    if flow.leaves_because or not flow.uses:
        return
    flow.dominated_by = Pattern.ELEMENTWISE
    first, pattern = flow.uses[0]
    found: Flow | None = first
    flow.dominated_by = max(flow.dominated_by, pattern)
    for user, pattern in flow.uses[1:]:
        found, between = _meeting(found, user)
        flow.dominated_by = max(flow.dominated_by, between, pattern)
    flow.dominator = found
    flow.depth = 1 if found is None else found.depth + 1


def _meeting(a: Flow | None, b: Flow | None) -> tuple[Flow | None, Pattern]:
    """Return the first common post-dominator, and the greatest pattern on the way to it."""
    pattern = Pattern.ELEMENTWISE
    while a is not b:
        if a is None or b is None:
            return None, pattern
        steps: Sequence[Flow] = (a, b) if a.depth == b.depth else (max(a, b, key=_depth),)
        pattern = max(pattern, *(step.dominated_by for step in steps))
        a = a.dominator if a in steps else a
        b = b.dominator if b in steps else b
    return a, pattern


def _depth(flow: Flow) -> int:
    return flow.depth
