"""Build a model: from a module of a graph to one loaded module of code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.execution.c_model import CModel
from dlcompiler.graph.execution.device_model import DeviceModel
from dlcompiler.graph.execution.entry import load_entry
from dlcompiler.graph.execution.kept_kernels import kernel_for
from dlcompiler.graph.execution.kernels import ModelKernel, Records, pack_weights
from dlcompiler.graph.execution.model import CompiledModel, LoadedModel, code_of
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.execution.saving import load_steps
from dlcompiler.graph.execution.spaces import space_of
from dlcompiler.graph.execution.steps import Steps, steps_of
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import PassContext
from dlcompiler.graph.passes.devices import place_on_devices, without_annotations
from dlcompiler.graph.passes.store_weights import NAME as STORE_WEIGHTS
from dlcompiler.pipeline.devices import check_available
from dlcompiler.runtime.options import Options
from dlcompiler.target import Target, resolve

Targets: TypeAlias = "str | Target | Mapping[str, str | Target]"
Progress: TypeAlias = Callable[[int, int], object]
"""Is given how many kernels of a model are built, and how many there are."""


def build(
    module: Module, target: Targets = "cpu", *, params: Mapping[str, Array] | None = None,
    opt_level: int = 3, context: PassContext | None = None, function: str = MAIN,
    db: Records | None = None, threads: int | None = None, name: str = "model",
    progress: Progress | None = None, store: str = "",
) -> CompiledModel | DeviceModel:  # fmt: skip
    """Build a model: optimise it, compile its kernels, and load it.

    Parameters
    ----------
    module : Module
        A model whose types are known.
    target : str, Target or mapping
        A CPU, ``"c"``, or a GPU, real or simulated. For parts on several devices, a mapping from
        the names in `op.on_device` to targets: ``{"cpu": "cpu", "gpu": "cuda"}``. The first is the
        default device, where parameters and results are.
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
    threads : int, optional
        Most threads that a kernel uses on the CPU. None: as many as the target has cores.
    name : str
        Name of the function in C.
    progress : callable, optional
        Is called before the first kernel is built and after each: with the number of kernels that
        are built, and the number of all.
    store : {"", "float16", "bfloat16"}
        How large weights of float32 are stored; sums stay in float32. See `passes.store_weights`.

    Returns
    -------
    CompiledModel
        For target ``"c"`` a `CModel`, which has `source`, `header` and `save`; for GPUs and for
        several devices a `DeviceModel`.

    Raises
    ------
    GraphError
        If the model is no module, has branches or calls, or an extent is known only in a run.
    TargetError
        If a target cannot run it.
    DeviceUnavailable
        If a device is not here.

    Notes
    -----
    If there is one target, `op.on_device` changes nothing.

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
    machines = _with_threads(targets_of(target), threads)
    options = _storing(context or PassContext(opt_level), store)
    default = next(iter(machines))
    machine = machines[default]
    if isinstance(module, Module):  # `prepared` refuses anything else
        several = len(machines) > 1
        module = place_on_devices(module, default) if several else without_annotations(module)
    if any(each.device != "cpu" for each in machines.values()):
        options = _without_integers(options)
    made = prepared(module, params or {}, options, function)
    if len(machines) > 1 or machine.device != "cpu":
        return _on_devices(made, machines, db, progress)
    steps = steps_of(made)
    kernels = _built(steps, {"": machine}, db, progress)
    pack_weights(steps, kernels)
    if machine.language == "c":
        return CModel(made, steps, kernels, machine, name)
    entry = load_entry(steps, [code_of(k) for k in kernels], Options.for_target(machine))
    return CompiledModel(made, steps, kernels, machine, entry)


def _storing(context: PassContext, store: str) -> PassContext:
    """Return a context in which weights are stored in a dtype; "": as the context says."""
    if store == "":
        return context
    given: object = context.config.get(STORE_WEIGHTS, {})
    if not isinstance(given, Mapping):  # the passes refuse it
        return context
    options = {**given, "dtype": store}
    return replace(context, config={**context.config, STORE_WEIGHTS: options})


def _without_integers(context: PassContext) -> PassContext:
    """Keep quantized models in floats: only CPUs have schedules of products with zero points."""
    disabled = (*context.disabled_pass, "compute_in_integers", "lay_out_integers")
    return replace(context, disabled_pass=disabled)


def _built(
    steps: Steps, machines: Mapping[str, Target], db: Records | None, progress: Progress | None
) -> list[ModelKernel]:
    """Build the kernels of a model, each for the target of its device."""
    kernels: list[ModelKernel] = []
    for call in steps.kernels:
        if progress is not None and not kernels:
            progress(0, len(steps.kernels))
        kernels.append(kernel_for(call, machines[call.device], db))
        if progress is not None:
            progress(len(kernels), len(steps.kernels))
    return kernels


def _on_devices(
    made: Module, machines: Mapping[str, Target], db: Records | None, progress: Progress | None
) -> DeviceModel:
    for machine in machines.values():
        check_available(machine, "build a model")
    spaces = {name: space_of(machine) for name, machine in machines.items()}
    steps = steps_of(made, alignment={name: space.alignment for name, space in spaces.items()})
    kernels = _built(steps, machines, db, progress)
    pack_weights(steps, kernels)
    return DeviceModel(made, steps, kernels, machines, spaces)


def _with_threads(machines: dict[str, Target], threads: int | None) -> dict[str, Target]:
    """Return the targets with that number of cores in CPUs; None: as they are."""
    if threads is None:
        return machines
    if type(threads) is not int or threads < 1:
        raise GraphError("build a model", "not a number of threads", got=repr(threads)[:200],
                         expected="a whole number from 1 on")  # fmt: skip
    return {
        name: replace(each, cores=threads) if each.device == "cpu" else each
        for name, each in machines.items()
    }


def targets_of(target: Targets) -> dict[str, Target]:
    """Return the target of each device; the first is the default device.

    Raises
    ------
    TargetError
        If one is unknown.
    GraphError
        If there is none, or a name is no text.
    """
    if not isinstance(target, Mapping):
        machine = resolve(target)
        return {machine.device: machine}
    if not target or not all(type(name) is str and name for name in target):
        raise GraphError(
            "build a model", "not a target, nor a target for each device", got=repr(target)[:200],
            hint='{"cpu": "cpu", "gpu": "cuda"}: device of op.on_device -> target',
        )  # fmt: skip
    return {name: resolve(each) for name, each in target.items()}


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
