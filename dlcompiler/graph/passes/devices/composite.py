"""Put what patterns match into functions of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Expr,
    Function,
    Module,
    Node,
    Var,
    children,
    post_order,
    with_children,
)
from dlcompiler.graph.ir.scopes import Scopes
from dlcompiler.graph.passes.devices.patterns import Match, Pattern, matched
from dlcompiler.graph.passes.tools import operator_of

NAME = "merge_composite"
COMPOSITE = "Composite"
"""Attribute of a function that stands for a pattern: the name of the pattern."""


def merge_composite(module: Module, patterns: Sequence[tuple[str, Pattern]]) -> Module:
    """Put the calls that a pattern matches into a function with the name of the pattern.

    *Before*::

        %0 = nn.conv2d(%x, %w);
        nn.relu(%0)

    *After*::

        %1 = fn (%p0, %p1, Composite="conv_relu") {
          %0 = nn.conv2d(%p0, %p1);
          nn.relu(%0)
        };
        %1(%x, %w)

    Parameters
    ----------
    module : Module
        The module.
    patterns : sequence of (str, Pattern)
        Names and patterns; earlier ones come first, and later calls before the ones they use.

    Notes
    -----
    A value inside a match that something else uses, too, is no match.
    """
    typed = infer_types(module)
    types = types_of(typed)
    log: list[Decision] = []
    functions = {
        name: f if f.is_kernel else _merged(f, types, patterns, log)
        for name, f in typed.functions.items()
    }
    return replace(typed, functions=functions, log=(*typed.log, *log)) if log else module


def _merged(
    function: Function, types: Types, patterns: Sequence[tuple[str, Pattern]], log: list[Decision]
) -> Function:
    hidden = _inside_kernels(function)
    order = [node for node in post_order(function) if node not in hidden]
    uses = Counter(child for node in order for child in children(node))
    scopes = Scopes(function)
    taken: set[Node] = set()
    roots: dict[Node, tuple[str, Match]] = {}
    for node in reversed(order):
        if not operator_of(node) or node in taken:
            continue
        for name, pattern in patterns:
            found = matched(pattern, node)
            if found is not None and _is_closed(found, node, uses, scopes, taken):
                roots[node] = (name, found)
                taken.update(found.calls)
                names = tuple(call.name or operator_of(call) for call in found.calls)
                log.append(Decision(
                    NAME, names, "placed", name, f"the pattern {name} matches",
                    effect=Effect(kernels=len(names) - 1),
                ))  # fmt: skip
                break

    made: dict[Node, Node] = {}
    for node in post_order(function):
        if node in roots:
            made[node] = _composite(node, *roots[node], types, made)
        else:
            made[node] = with_children(node, [made[child] for child in children(node)])
    result = made[function]
    assert isinstance(result, Function)
    return result


def _inside_kernels(function: Function) -> set[Node]:
    """Return the nodes inside functions that are kernels or stand for patterns."""
    inner = [
        node
        for node in post_order(function)
        if isinstance(node, Function) and (node.is_kernel or COMPOSITE in node.attrs)
    ]
    return {below for node in inner for below in post_order(node) if below is not node}


def _is_closed(
    found: Match, root: Node, uses: Counter[Node], scopes: Scopes, taken: set[Node]
) -> bool:
    """Tell whether only the last call of a match is used outside of it."""
    calls = set(found.calls)
    if calls & taken or not calls:
        return False
    inside = Counter(arg for call in found.calls for arg in call.args)
    return all(
        call is root or (inside[call] == uses[call] and scopes.of[call] is scopes.of[root])
        for call in calls
    )


def _composite(
    root: Node, name: str, found: Match, types: Types, made: Mapping[Node, Node]
) -> Call:
    """Return the call of the function that a match becomes."""
    assert isinstance(root, Call)
    own = {*found.calls, *found.constants}
    # A wildcard may stand for a value that another part of the pattern matches.
    inputs = [value for value in found.inputs if value not in own]
    params: dict[Node, Var] = {value: Var(f"p{i}", types[value]) for i, value in enumerate(inputs)}
    inside: dict[Node, Node] = dict(params)
    for call in found.calls:
        inside[call] = with_children(call, [inside.get(child, child) for child in children(call)])
    body: Expr = inside[root]  # type: ignore[assignment]  # a call
    function = Function(tuple(params.values()), body, types[root], {COMPOSITE: name})
    args: list[Expr] = [made[value] for value in inputs]  # type: ignore[misc]  # expressions
    return Call(function, tuple(args), name=root.name, span=root.span)
