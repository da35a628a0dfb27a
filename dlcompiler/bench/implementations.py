"""Implementations of works by operators of the library: operator, workload, parameter names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy.typing as npt

from dlcompiler import ops
from dlcompiler.bench.works import GRAMMAR, Row, Work
from dlcompiler.measurement import RemoteKernel
from dlcompiler.ops import Operator, Reference
from dlcompiler.ops.gemm import packed_width
from dlcompiler.ops.recurrent import GATES
from dlcompiler.ops.recurrent_workload import packed_size
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

Array = npt.NDArray[Any]
SEED = 0
_PACKED_BEFORE = ("matmul", "dense")
"""Operators whose workload says that weights are packed; others always or never pack them."""

OperatorCall: TypeAlias = tuple[str, dict[str, Any], dict[str, str]]
"""Kind of an operator, its parameters, and the name of an array in the work -> that of the
kernel's parameter."""


class NotThere(Exception):  # noqa: N818  not an error: a row shows it
    """No operator computes a work yet, or the operator lacks an option that the work needs."""


@dataclass(frozen=True)
class Implementation:
    """The operator and workload that compute a work."""

    operator: Operator
    workload: Workload
    roles: Mapping[str, str]
    """Name of an array in the work -> name of the kernel's parameter."""
    packs: bool = False
    """Whether weights are packed by a kernel of their own in each call."""
    fixed: Config | None = None
    """The config to use instead of the one that ships."""

    def config(self, target: Target, *, is_tuned: bool) -> Config:
        """Return the config that ships for this workload, or else the analytic one."""
        if self.fixed is not None:
            return self.fixed
        if is_tuned:
            return ops.config_for(self.operator, self.workload, target)
        return self.operator.default_config(self.workload, target)

    def reference(self) -> Reference:
        """Return inputs, expected outputs and error bounds."""
        return self.operator.reference(self.workload, SEED)


def implementation_of(
    work: Work, row: Row, *, threads: int = 1, is_tuned: bool = True
) -> Implementation:
    """Return the implementation of a row of a work, by the operator that `ops.select` chooses.

    Parameters
    ----------
    work : Work
        The computation with its sizes.
    row : {"plain", "prepacked"}
        Whether weights are packed ahead.
    threads : int
        The number of threads that will run it.
    is_tuned : bool
        Whether the choice may use configs that ship.

    Raises
    ------
    NotThere
        If no operator computes the work.
    """
    name, parameters, roles = operator_call(work, row)
    target = target_of(threads)
    chosen = ops.select(name, parameters, target, None if is_tuned else {})
    packs = row == "plain" and work.family == "conv2d"
    if packs and chosen.operator.schedule_for(target).packing is None:
        raise NotThere(f"{chosen.operator.name} has no kernel that packs its weights")
    return Implementation(chosen.operator, chosen.workload, roles, packs)


def operator_call(work: Work, row: Row = "plain") -> OperatorCall:
    """Return what `ops.select` is asked for a work, and how its arrays are named there.

    Raises
    ------
    NotThere
        If no operator computes the work.
    """
    family = GRAMMAR[work.family]
    if family.operator not in (*ops.REGISTRY, "conv2d"):
        raise NotThere(f"there is no operator {family.operator} yet")
    parameters = work.parameters
    if row == "prepacked" and family.operator in _PACKED_BEFORE:
        parameters["packed"] = packed_width(work["m"], resolve("cpu"))
    if row == "prepacked" and family.operator in GATES:
        kind, hidden, dtype = family.operator, work["hidden"], str(parameters["dtype"])
        parameters["packed"] = packed_size(kind, hidden, resolve("cpu"), dtype)
    names = {role: name for name, role in family.roles.items()}
    roles = {role: names.get(role, role) for role in work.shapes if role != "out"}
    return family.operator, parameters, roles


def target_of(threads: int) -> Target:
    """Return this machine's target, with one core for each thread."""
    return replace(resolve("cpu"), cores=threads)


def remote_kernel(
    template: tuple[Schedule, Sequence[Tensor]],
    name: str,
    *,
    threads: int,
    worker: Worker | None = None,
) -> RemoteKernel:
    """Return the kernel of a schedule and its parameters, to be run in a worker."""
    target = target_of(threads)
    source, _ = emit_source(*template, target, name)
    return RemoteKernel(source, target, threads=threads, worker=worker, args=template[1])
