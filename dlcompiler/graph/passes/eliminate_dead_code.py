"""Remove lets that nobody uses, and functions that nobody calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dlcompiler.graph.ir import (
    MAIN,
    Function,
    GlobalVar,
    Let,
    Module,
    Node,
    Var,
    children,
    post_order,
    rewrite,
)


def eliminate_dead_code(module: Module, entry: str = MAIN) -> Module:
    """Remove lets whose variables are not used, and functions that `entry` does not reach.

    *Before*::

        let %v = exp(%x);
        let %w = negative(%x);
        add(%w, 1f)

    *After*::

        let %w = negative(%x);
        add(%w, 1.0f)

    Data flow without a use is no part of a module anyway. Nothing that is removed could end the
    program or change a state: operators have no other effect than their values.

    Parameters
    ----------
    module : Module
        The module.
    entry : str
        The function that is run.
    """
    functions = {name: _without_lets(module[name]) for name in _reached(module, entry)}
    if functions.keys() == module.functions.keys() and all(
        functions[name] is module.functions[name] for name in functions
    ):
        return module
    return replace(module, functions=functions)


def _reached(module: Module, entry: str) -> list[str]:
    """Return the functions that are called from one, in the order of the module."""
    found, open_ = {entry}, [entry]
    while open_:
        for node in post_order(module[open_.pop()]):
            if isinstance(node, GlobalVar) and node.name not in found:
                found.add(node.name)
                open_.append(node.name)
    return [name for name in module.functions if name in found]


def _without_lets(function: Function) -> Function:
    """Remove unused lets until there are none."""
    while True:
        uses: Counter[Node] = Counter(
            child
            for node in post_order(function)
            for place, child in enumerate(children(node))
            if isinstance(child, Var) and not (isinstance(node, Let) and place == 0)
        )

        def rule(node: Node, uses: Counter[Node] = uses) -> Node:
            return node.body if isinstance(node, Let) and not uses[node.var] else node

        after = rewrite(function, rule)
        if after is function:
            return function
        function = after
