"""Replace parameters of a module by constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import MAIN, Constant, Function, Module, Node, Var, rewrite
from dlcompiler.graph.operators.base import Array


def bind(module: Module, params: Mapping[str, Array]) -> Module:
    """Replace parameters of ``main`` by constants.

    Parameters
    ----------
    module : Module
        The module.
    params : mapping
        Arrays by the names of the parameters.

    Raises
    ------
    GraphError
        If there is no parameter of a name, or several, or an array does not fit its type.
    """
    if not isinstance(params, Mapping):
        raise GraphError(
            "bind parameters", "not a mapping", got=type(params).__name__,
            expected="arrays by the names of parameters",
        )  # fmt: skip
    main = module.main
    by_name = {param.name: param for param in main.params}
    for name, value in params.items():
        if sum(param.name == name for param in main.params) > 1:
            raise GraphError("bind parameters", f"main has several parameters {name}")
        if name not in by_name:
            raise GraphError(
                "bind parameters", f"main has no parameter {name}", expected=", ".join(by_name)
            )
        kind, given = by_name[name].type, Constant(np.asarray(value)).type
        if kind is not None and kind != given:
            raise GraphError("bind parameters", f"{name} does not fit", got=given, expected=kind)
    constants = {by_name[name]: Constant(np.asarray(v), name) for name, v in params.items()}
    rest = tuple(param for param in main.params if param.name not in params)

    def rule(node: Node) -> Node:
        return constants.get(node, node) if isinstance(node, Var) else node

    bound = Function(rest, rewrite(main.body, rule), main.result, main.attrs, main.span)
    return replace(module, functions={**module.functions, MAIN: bound})
