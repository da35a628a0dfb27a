"""A module: functions by name, with the decisions that passes made about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dlcompiler.display import render
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir.nodes import Call, Expr, Function, GlobalVar, Node, Op, Tuple
from dlcompiler.graph.ir.structural import structural_hash, structural_key
from dlcompiler.graph.ir.traverse import (
    check_bindings,
    check_scopes,
    free_vars,
    post_order,
    rewrite,
)

if TYPE_CHECKING:
    from dlcompiler.graph.decisions import Decision, Wish

MAIN = "main"
"""Name of the function that a model runs."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module:
    """Functions by name; ``main`` is the one that a model runs.

    A module does not change: a pass returns another one, with its decisions in `log`.
    """

    functions: Mapping[str, Function]
    log: tuple[Decision, ...] = ()
    """What passes have decided, in their order."""
    wishes: tuple[Wish, ...] = ()
    """Decisions that the user forces or forbids."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", MappingProxyType(dict(self.functions)))
        for name, function in self.functions.items():
            if not isinstance(name, str):
                raise GraphError("module", "the name of a function is no text", got=repr(name))
            if not isinstance(function, Function):
                raise GraphError(
                    "module", f"{name} is not a function", got=type(function).__name__,
                    hint="Module.from_expr(expression) makes a function of an expression",
                )  # fmt: skip
            check_scopes(function, f"function {name}")
            check_bindings(function, f"function {name}")

    @classmethod
    def from_expr(cls, expr: Expr, functions: Mapping[str, Function] | None = None) -> Module:
        """Make a module whose ``main`` computes an expression.

        Parameters
        ----------
        expr : Expr
            A function; or an expression, whose free variables become parameters in order of
            appearance.
        functions : mapping, optional
            Other functions by name.

        Returns
        -------
        Module
            Each call of an operator has a name of its own.
        """
        main = expr if isinstance(expr, Function) else Function(tuple(free_vars(expr)), expr)
        return named(cls({**(functions or {}), MAIN: main}))

    @property
    def main(self) -> Function:
        """The function that a model runs."""
        return self[MAIN]

    def __getitem__(self, name: str | GlobalVar) -> Function:
        key = name.name if isinstance(name, GlobalVar) else name
        if key not in self.functions:
            raise GraphError(
                "module", "no function has this name", got=repr(key),
                expected=", ".join(self.functions) or "none",
            )  # fmt: skip
        return self.functions[key]

    def with_function(self, name: str, function: Function) -> Module:
        """Return a module with one function replaced or added; the same one if nothing changes."""
        if self.functions.get(name) is function:
            return self
        return replace(self, functions={**self.functions, name: function})

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes of all functions, each function in post-order."""
        for function in self.functions.values():
            yield from post_order(function)

    def calls(self) -> dict[str, Call]:
        """Return the calls of operators by their names, in the order in which they are computed."""
        return {n.name: n for n in self.nodes() if isinstance(n, Call) and isinstance(n.op, Op)}

    def decisions(self, about: str | None = None) -> tuple[Decision, ...]:
        """Return what passes decided: everything, or about one call.

        Parameters
        ----------
        about : str, optional
            Name of a call: ``"conv2d_3"``.
        """
        return tuple(d for d in self.log if about is None or about in d.subject)

    def structural_hash(self) -> str:
        """Return a short text that is equal for equal modules, and the same in every process."""
        return structural_hash(_as_node(self))

    def __repr__(self) -> str:
        count = len(self.calls())
        return f"Module({', '.join(self.functions)}; {count} {'call' if count == 1 else 'calls'})"

    def _repr_html_(self) -> str:
        return render("module", self)


def modules_equal(a: Module, b: Module) -> bool:
    """Tell whether two modules have equal functions of the same names.

    Parameters
    ----------
    a, b : Module
        The modules.
    """
    return a.functions.keys() == b.functions.keys() and all(
        structural_key(a[name]) == structural_key(b[name]) for name in a.functions
    )


def _as_node(module: Module) -> Node:
    names = sorted(module.functions)
    return Tuple(tuple(Call(GlobalVar(name), (module[name],)) for name in names))


def named(module: Module) -> Module:
    """Give each call of an operator a name of its own, such as ``conv2d_1``.

    A call keeps the name that it has, unless an earlier call has it already.
    """
    given = Counter(node.name for node in module.nodes() if isinstance(node, Call) and node.name)
    taken: set[str] = set()
    next_number: Counter[str] = Counter()

    def name_for(call: Call) -> str:
        if call.name and call.name not in taken:
            return call.name
        stem = call.name or short_name(call.op)
        while True:
            next_number[stem] += 1
            name = f"{stem}_{next_number[stem]}"
            if name not in taken and name not in given:
                return name

    def rule(node: Node) -> Node:
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            return node
        name = name_for(node)
        taken.add(name)
        return node if name == node.name else replace(node, name=name)

    functions = {name: rewrite(function, rule) for name, function in module.functions.items()}
    if all(functions[name] is module.functions[name] for name in functions):
        return module
    return replace(module, functions=functions)


def short_name(op: Node) -> str:
    """Return the last part of an operator's name: ``conv2d`` of ``nn.conv2d``."""
    return op.name.rpartition(".")[2] if isinstance(op, Op | GlobalVar) else "call"
