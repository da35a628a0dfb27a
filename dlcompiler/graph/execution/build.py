"""Build a model: from a module of a graph to one loaded module of code."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.graph.execution.kernels import Records, built_kernel, pack_weights
from dlcompiler.graph.execution.model import CompiledModel
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.execution.steps import steps_of
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import PassContext
from dlcompiler.target import Target, resolve


def build(
    module: Module, target: str | Target = "cpu", *, params: Mapping[str, Array] | None = None,
    opt_level: int = 3, context: PassContext | None = None, function: str = MAIN,
    db: Records | None = None,
) -> CompiledModel:  # fmt: skip
    """Build a model: optimise it, compile its kernels, and load it.

    Parameters
    ----------
    module : Module
        A model whose types are known.
    target : str or Target
        A CPU.
    params : mapping, optional
        Weights by the names of parameters of the function: they become constants, which are folded
        and packed.
    opt_level : int
        Of `optimize`; kernels that were fused before stay as they are.
    context : PassContext, optional
        Of `optimize`.
    function : str
        Which function of the module is the model: it takes the place of ``main``.
    db : path or RecordStore, optional
        Records of tuning runs: a kernel has the fastest config of its workload (`tasks`).

    Returns
    -------
    CompiledModel

    Raises
    ------
    GraphError
        If the model is no module, has branches or calls, or an extent is known only in a run.
    TargetError
        If the target cannot run it.

    Examples
    --------
    >>> import numpy
    >>> from dlcompiler import graph
    >>> from dlcompiler.graph import op
    >>> x = graph.var("x", (2, 3))
    >>> model = build(graph.Module.from_expr(op.nn.relu(x)))
    >>> model(numpy.array([[-1, 0, 1], [2, -2, 3]], "float32"))
    array([[0., 0., 1.],
           [2., 0., 3.]], dtype=float32)
    """
    machine = resolve(target)
    made = prepared(module, params or {}, context or PassContext(opt_level), function)
    steps = steps_of(made)
    kernels = [built_kernel(call, machine, db) for call in steps.kernels]
    pack_weights(steps, kernels)
    return CompiledModel(made, steps, kernels, machine)
