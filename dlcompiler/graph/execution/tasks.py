"""The workloads of a model that can be tuned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler.graph.execution.anchors import anchor_of
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.execution.steps import steps_of
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.ir import MAIN, Module
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import PassContext
from dlcompiler.space import Workload
from dlcompiler.target import Target, resolve


@dataclass(frozen=True, slots=True)
class ModelTask:
    """A workload of a model."""

    workload: Workload
    """What `dlcompiler.tune` takes."""
    calls: tuple[str, ...]
    """Names of the kernels that compute it, one for each call in a run."""


def tasks(
    module: Module, target: str | Target = "cpu", *, params: Mapping[str, Array] | None = None,
    opt_level: int = 3, context: PassContext | None = None, function: str = MAIN,
) -> list[ModelTask]:  # fmt: skip
    """Return the workloads of a model that an operator of the library computes.

    Parameters
    ----------
    module, target, params, opt_level, context, function
        As of `build`.

    Returns
    -------
    list of ModelTask
        In the order in which they first run. Tune each, and give the records to `build`.

    Examples
    --------
    >>> from dlcompiler.graph import builders
    >>> given = builders.mlp()
    >>> [(str(task.workload), len(task.calls)) for task in tasks(given.module)][0]
    ('dense(m=1, n=128, k=784, dtype=float32)', 1)
    """
    machine = resolve(target)
    made = prepared(module, params or {}, context or PassContext(opt_level), function)
    steps = steps_of(made)
    workloads = []
    for call in steps.kernels:
        alone = Module.from_expr(call.function)
        anchor = anchor_of(alone.main, types_of(alone), machine, call.constants)
        workloads.append(None if anchor is None else anchor.selection.workload)
    found: dict[Workload, list[str]] = defaultdict(list)
    for step in steps.steps:
        workload = workloads[step.kernel]
        if workload is not None:
            found[workload].append(step.name)
    return [ModelTask(workload, tuple(names)) for workload, names in found.items()]
