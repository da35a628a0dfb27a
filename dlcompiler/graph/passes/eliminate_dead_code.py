"""Remove lets that nobody uses, and functions that nobody calls."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from dlcompiler.graph.ir import (
    MAIN,
    Function,
    GlobalVar,
    Let,
    Module,
    Node,
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
    """Remove the lets whose variables no result needs."""
    used = _needed(function)
    return rewrite(function, lambda n: n.body if isinstance(n, Let) and n.var not in used else n)


def _needed(function: Function) -> set[Node]:
    """Return what the result of a function needs; the value of a let if its variable is used."""
    values: dict[Node, list[Node]] = defaultdict(list)
    for node in post_order(function):
        if isinstance(node, Let):
            values[node.var].append(node.value)
    found: set[Node] = {function}
    open_: list[Node] = [function]
    while open_:  # a function that calls itself needs its own variable
        node = open_.pop()
        below = (node.body,) if isinstance(node, Let) else children(node)
        more = [n for n in (*below, *values.get(node, ())) if n not in found]
        found.update(more)
        open_ += more
    return found
