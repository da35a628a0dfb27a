"""Compute equal calls once."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Function, Module, Node, Op, TupleGetItem, rewrite
from dlcompiler.graph.ir.structural import attrs_key
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes.tools import decided, with_log

NAME = "eliminate_common_subexpressions"


def eliminate_common_subexpressions(module: Module) -> Module:
    """Let calls with equal operators, arguments and attributes be one call.

    *Before*::

        %0 = exp(%x);
        %1 = exp(%x);
        add(%0, %1)

    *After*::

        %0 = exp(%x);
        add(%0, %0)

    Parameters
    ----------
    module : Module
        The module.
    """
    log: list[Decision] = []

    def once(function: Function) -> Function:
        known: dict[tuple[object, ...], Node] = {}

        def rule(node: Node) -> Node:
            key = _key(node)
            if key is None:
                return node
            first = known.setdefault(key, node)
            if first is not node and isinstance(node, Call) and isinstance(first, Call):
                log.append(decided(NAME, node, "removed", "equal call",
                                   f"{first.name} computes the same", kernels=1))  # fmt: skip
            return first

        return rewrite(function, rule)

    functions = {name: once(f) for name, f in module.functions.items()}
    if all(functions[name] is module.functions[name] for name in functions):
        return module
    return with_log(replace(module, functions=functions), log)


def _key(node: Node) -> tuple[object, ...] | None:
    """Return a key that is equal for equal nodes with the same operands; None if they differ."""
    match node:
        case Call(Op(name), args, attrs) if not REGISTRY[name].notes.get("is_stateful"):
            return (name, attrs_key(attrs), *map(id, args))
        case TupleGetItem(value, index):
            return ("field", index, id(value))
    return None
