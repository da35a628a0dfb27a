"""Build a model: from a module of a graph to one loaded module of code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dlcompiler.graph.execution.c_model import CModel
from dlcompiler.graph.execution.entry import load_entry
from dlcompiler.graph.execution.kernels import Records, built_kernel, pack_weights
from dlcompiler.graph.execution.model import CompiledModel, LoadedModel, code_of
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.execution.saving import load_steps
from dlcompiler.graph.execution.steps import steps_of
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import PassContext
from dlcompiler.runtime.options import Options
from dlcompiler.target import Target, resolve


def build(
    module: Module, target: str | Target = "cpu", *, params: Mapping[str, Array] | None = None,
    opt_level: int = 3, context: PassContext | None = None, function: str = MAIN,
    db: Records | None = None, name: str = "model",
) -> CompiledModel:  # fmt: skip
    """Build a model: optimise it, compile its kernels, and load it.

    Parameters
    ----------
    module : Module
        A model whose types are known.
    target : str or Target
        A CPU, or ``"c"``.
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
    name : str
        Name of the function in C.

    Returns
    -------
    CompiledModel
        For target ``"c"`` a `CModel`, which has `source`, `header` and `save`.

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
    if machine.language == "c":
        return CModel(made, steps, kernels, machine, name)
    entry = load_entry(steps, [code_of(k) for k in kernels], Options.for_target(machine))
    return CompiledModel(made, steps, kernels, machine, entry)


def load_model(path: str | Path) -> LoadedModel:
    """Load a model from a file of `CompiledModel.save`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    LoadedModel
        It computes the same; its graph and its schedules are not in the file.

    Raises
    ------
    UserError
        Others may write the file, it is damaged, or it is not of this project.
    TargetError
        This machine cannot run its code.
    """
    steps, codes = load_steps(Path(path))
    return LoadedModel(steps, codes, load_entry(steps, codes, Options.for_target(resolve("cpu"))))
