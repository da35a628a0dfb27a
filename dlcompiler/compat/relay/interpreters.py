"""`create_executor`: expressions and models evaluated by NumPy, the definition of the operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler import graph
from dlcompiler.compat.arrays import array
from dlcompiler.compat.missing import Named
from dlcompiler.compat.notes import note
from dlcompiler.compat.relay.expressions import as_expr
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.compat.relay.optimizing import Params, bound, plain
from dlcompiler.compat.targets import resolve
from dlcompiler.errors import GraphError


class Executor(Named):
    """Evaluates expressions and models: what `create_executor` returns."""

    classic = "tvm.relay.Executor"

    def __init__(self, mod: Any, params: Params | None) -> None:
        self.mod = IRModule.of(graph.Module({})) if mod is None else mod
        """The module."""
        self._params = params

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """Return a function that computes ``main``, a function, or the value of an expression.

        Parameters
        ----------
        expr : Expr, optional
            None: ``main``. The value of an expression without free variables is returned itself.
        binds : mapping, optional
            Values of free variables of the expression.
        """
        module = module_of(self.mod, "create_executor")
        if expr is None:
            return self._function(bound(module, self._params), graph.ir.MAIN)
        node = graph.ir.substitute(as_expr(expr), {v: as_expr(x) for v, x in (binds or {}).items()})
        if isinstance(node, graph.GlobalVar):
            return self._function(module, node.name)
        whole = graph.Module.from_expr(node, {k: f for k, f in module.functions.items()
                                              if k != graph.ir.MAIN})  # fmt: skip
        if isinstance(node, graph.Function) or whole.main.params:
            return self._function(whole, graph.ir.MAIN)
        return _arrays(graph.evaluate(whole))

    def _function(self, module: graph.Module, name: str) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            values = [_value(arg) for arg in args]
            by_name = {key: _value(value) for key, value in named.items()}
            return _arrays(graph.evaluate(module, *values, function=name, **by_name))

        return run


def create_executor(
    kind: str = "debug", mod: Any = None, device: Any = None, target: Any = None,
    params: Params | None = None, **older: Any,
) -> Executor:  # fmt: skip
    """Return an executor: of every kind, it is the interpreter, which computes by NumPy.

    Parameters
    ----------
    kind : str
        ``"debug"``, ``"graph"``, ``"vm"`` or ``"aot"``.
    mod : IRModule, optional
        The module.
    device, target
        Only checked.
    params : mapping, optional
        Arrays for parameters of ``main``.
    **older
        ``ctx=``, the older name of `device`.
    """
    del device
    if kind not in ("debug", "graph", "vm", "aot") or older.keys() - {"ctx"}:
        raise GraphError(
            "create_executor", "unknown kind of executor", got=kind or sorted(older),
            expected="debug, graph, vm, aot",
        )  # fmt: skip
    resolve(target)
    if kind != "debug":
        note(f"create_executor: {kind!r} is the interpreter here; it computes by NumPy")
    return Executor(mod, params)


def _value(value: Any) -> Any:
    if isinstance(value, graph.Constant):
        return value.value
    return tuple(map(_value, value)) if isinstance(value, list | tuple) else plain(value)


def _arrays(value: Any) -> Any:
    """Return a result as TVM's arrays, and tuples as lists of them."""
    return [_arrays(each) for each in value] if isinstance(value, tuple) else array(value)
