"""`IRModule`: functions by name that classic code can change; the base of lowered schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dlcompiler import graph
from dlcompiler.compat.missing import Named
from dlcompiler.compat.relay.expressions import as_expr
from dlcompiler.errors import GraphError


class IRModule(Named):
    """Functions of a graph by name; ``mod["main"]`` is the model.

    Parameters
    ----------
    functions : mapping, optional
        Functions by their names or variables.
    type_definitions : mapping, optional
        Not part of dlcompiler yet: it must be empty.
    """

    classic = "tvm.IRModule"

    def __init__(
        self, functions: Mapping[Any, Any] | None = None, type_definitions: Any = None
    ) -> None:
        if type_definitions:
            raise GraphError("IRModule", "definitions of types are not part of dlcompiler yet")
        self.graph = graph.Module({})
        """The module; it does not change: this object holds another one after an assignment."""
        for name, function in (functions or {}).items():
            self[name] = function

    @classmethod
    def of(cls, module: graph.Module) -> IRModule:
        """Wrap a module of `dlcompiler.graph`."""
        made = IRModule()
        made.graph = module
        return made

    @classmethod
    def from_expr(
        cls, expr: Any, functions: Mapping[Any, Any] | None = None, type_defs: Any = None
    ) -> IRModule:
        """Make a module whose ``main`` is a function, or computes an expression.

        Parameters
        ----------
        expr : Expr
            A function, or an expression whose free variables become parameters.
        functions : mapping, optional
            Other functions by their names or variables.
        type_defs
            As in `IRModule`.
        """
        made = IRModule(functions, type_defs)
        made.graph = graph.Module.from_expr(as_expr(expr), made.graph.functions)
        return made

    @property
    def functions(self) -> dict[Any, Any]:
        """The functions by their variables."""
        return {graph.GlobalVar(name): f for name, f in self.graph.functions.items()}

    def __getitem__(self, name: Any) -> Any:
        return self.graph[name]

    def __setitem__(self, name: Any, function: Any) -> None:
        key = name.name if isinstance(name, graph.GlobalVar) else str(name)
        value = as_expr(function)
        if not isinstance(value, graph.Function):
            value = graph.Function(tuple(graph.Module.from_expr(value).main.params), value)
        self.graph = self.graph.with_function(key, value)

    def update_func(self, var: graph.GlobalVar, func: graph.Function) -> None:
        """Replace or add a function."""
        self[var] = func

    def update(self, other: IRModule) -> None:
        """Replace and add the functions of another module."""
        for name, function in other.graph.functions.items():
            self[name] = function

    def get_global_var(self, name: str) -> graph.GlobalVar:
        """Return the variable of a function.

        Raises
        ------
        GraphError
            If there is no such function.
        """
        self.graph[name]
        return graph.GlobalVar(name)

    def get_global_vars(self) -> list[graph.GlobalVar]:
        """Return the variables of all functions."""
        return list(self.functions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        names = [v.name if isinstance(v, graph.GlobalVar) else v for v in self.functions]
        return (name.name if isinstance(name, graph.GlobalVar) else name) in names

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the module as text.

        Parameters
        ----------
        show_meta_data : bool
            Append the constants; without them the text cannot be read back.
        """
        return graph.module_text(self.graph, metadata=show_meta_data)

    def show(self) -> None:
        """Print the module."""
        print(self)  # noqa: T201  as in TVM

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.graph._repr_html_()


def module_of(value: Any, operation: str) -> graph.Module:
    """Return the graph of an argument that classic code gives as a module or a function.

    Parameters
    ----------
    value
        An IRModule, a module of `dlcompiler.graph`, a function, or an expression.
    operation : str
        For the error.

    Raises
    ------
    GraphError
        If it is none of these, or a lowered schedule.
    """
    if type(value) is IRModule:
        return value.graph
    if isinstance(value, graph.Module):
        return value
    if isinstance(value, IRModule):
        raise GraphError(operation, "a lowered schedule is no graph", hint="tvm.build builds it")
    return graph.Module.from_expr(as_expr(value))
