"""Implementations of works by operators of the library: operator, workload, parameter names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy.typing as npt

from dlcompiler import ops
from dlcompiler.bench.works import Row, Work
from dlcompiler.measurement import RemoteKernel
from dlcompiler.ops import Operator, Reference
from dlcompiler.ops.gemm import packed_width
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

Array = npt.NDArray[Any]
SEED = 0

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
    make = _CALLS.get(work.family)
    if make is None:
        raise NotThere(f"there is no operator for {work.family} yet")
    call = make(work, row)
    if call[0] not in (*ops.REGISTRY, "conv2d"):
        raise NotThere(f"there is no operator {call[0]} yet")
    return call


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


def _product(work: Work, row: Row) -> OperatorCall:
    parameters: dict[str, Any] = {**work.sizes, "epilogue": "+".join(work.epilogue)}
    if row == "prepacked":
        parameters["packed"] = packed_width(work["m"], resolve("cpu"))
    name = "matmul" if work.family == "gemm" else work.family
    second = "other" if work.family == "batch_matmul" else "weight"
    operands = {role: role for role in work.shapes if role not in ("data", second, "out")}
    return name, parameters, {"data": "A", second: "B", **operands}


def _along_rows(work: Work, row: Row) -> OperatorCall:
    del row
    return work.family, {"shape": work.numbers}, _same_names(work)


def _elementwise(work: Work, row: Row) -> OperatorCall:
    del row
    roles = _same_names(work)
    shapes = [work.shapes[role] for role in roles]
    return "elementwise", {"function": work.function, "shapes": shapes}, roles


def _reduction(work: Work, row: Row) -> OperatorCall:
    del row
    parameters = {"function": work.function, "shape": work.numbers, "axes": 1}
    return "reduction", parameters, _same_names(work)


def _depthwise(work: Work, row: Row) -> OperatorCall:
    del row  # its weights are not packed
    return "depthwise_conv2d", convolution_parameters(work), _same_names(work)


def _pool2d(work: Work, row: Row) -> OperatorCall:
    del row
    known = convolution_parameters(work)
    parameters = {name: value for name, value in known.items() if name != "epilogue"}
    return "pool2d", {**parameters, "kind": work.function}, _same_names(work)


def _conv2d(work: Work, row: Row) -> OperatorCall:
    del row  # the kernel is the same
    return "conv2d", {**convolution_parameters(work), "o": work["outputs"]}, _same_names(work)


def convolution_parameters(work: Work) -> dict[str, Any]:
    """Return the sizes of a work by the names of a convolution operator's parameters."""
    n, c, h, w = work.numbers[:4]
    kernel, stride, padding = work.numbers[-3:]
    return {
        "n": n, "c": c, "h": h, "w": w, "kernel": kernel, "stride": stride, "padding": padding,
        "epilogue": "+".join(work.epilogue),
    }  # fmt: skip


def _same_names(work: Work) -> dict[str, str]:
    return {role: role for role in work.shapes if role != "out"}


_CALLS: dict[str, Callable[[Work, Row], OperatorCall]] = {
    "gemm": _product,
    "dense": _product,
    "batch_matmul": _product,
    "conv2d": _conv2d,
    "depthwise": _depthwise,
    "pool2d": _pool2d,
    "softmax": _along_rows,
    "log_softmax": _along_rows,
    "layer_norm": _along_rows,
    "elementwise": _elementwise,
    "reduction": _reduction,
}
