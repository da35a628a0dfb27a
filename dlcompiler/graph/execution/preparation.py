"""From a module to the kernels that `build` compiles and `tasks` lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import Observer, PassContext
from dlcompiler.graph.passes.bind import bind
from dlcompiler.graph.passes.pipeline import optimize

MOST_CALLS = 64
"""Most nodes of a kernel, unless the context says otherwise: a schedule has up to 200 stages."""


def prepared(
    module: Module,
    params: Mapping[str, Array],
    context: PassContext,
    function: str,
    observers: Sequence[Observer] = (),
) -> Module:
    """Return a module whose ``main`` is a function of a model, as kernels.

    Parameters
    ----------
    module : Module
        The model.
    params : mapping
        Weights by the names of parameters of the function.
    context : PassContext
        Of `optimize`.
    function : str
        The function.
    observers : sequence
        Of `optimize`.

    Raises
    ------
    GraphError
        If the model is no module, or a pass or `bind` refuses it.
    """
    if not isinstance(module, Module):
        raise GraphError(
            "build a model", "not a module", got=type(module).__name__,
            hint="graph.Module.from_expr(expression) makes a module of an expression",
        )  # fmt: skip
    chosen = module.with_function(MAIN, module[function])
    fusion = {"max_depth": MOST_CALLS, **context.config.get("fuse_ops", {})}
    limited = replace(context, config={**context.config, "fuse_ops": fusion})
    return optimize(bind(chosen, params), context=limited, observers=observers)
