"""Measure how long a kernel takes, in a worker process; for other machines, predict it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import MeasurementError
from dlcompiler.ir.program import Program
from dlcompiler.measurement.provenance import provenance_of_times
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.pipeline import Built, SimulatedKernel
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.pipeline.gpu_report import refuse_too_large
from dlcompiler.runtime.arguments import Param, as_checked_array, check_all, check_count
from dlcompiler.runtime.symbols import Symbols
from dlcompiler.runtime.timing import Timing
from dlcompiler.runtime.workers import Worker


def measure(
    kernel: Built,
    arrays: Sequence[npt.NDArray[Any]] | None = None,
    *,
    threads: int | None = None,
    seconds: float = 0.3,
    timeout_s: float = 60.0,
    worker: Worker | None = None,
) -> Timing:
    """Measure a kernel; for a simulated GPU, predict its time; for an accelerator, simulate it.

    Parameters
    ----------
    kernel : Kernel
        What `build` returned.
    arrays : sequence of array, optional
        Its arguments; the outputs are not changed. By default random ones, of which those that are
        used as indices name elements.
    threads : int, optional
        Threads of its parallel loops; by default, the cores allowed.
    seconds : float
        Samples are taken until they add up to about this [s].
    timeout_s : float
        Limit of the whole measurement [s].
    worker : Worker, optional
        Where to measure; by default, in the worker of this process.

    Returns
    -------
    Timing
        Median and spread of repeated calls after a warm-up; a predicted or simulated time is the
        only sample. ``gflops`` counts the operations that the expression asks for.

    Raises
    ------
    MeasurementError
        If the kernel crashes or does not end in time; this process lives on. If programs for its
        target have no times. Without `arrays`, if none can be drawn.
    CallError
        If an array does not fit.

    Examples
    --------
    >>> dlc.measure(matmul, [a, b, c])                                         # doctest: +SKIP
    Timing(median=38.2 ms, spread=1.1 ms, n=27, 56.2 GFLOP/s, measured on AMD EPYC)
    """
    if not isinstance(getattr(kernel, "program", None), Program):
        raise MeasurementError(
            "measure", "not a kernel", got=repr(kernel), expected="what dlc.build returns"
        )
    flops = kernel.work.flops or None if kernel.work else None
    if isinstance(kernel, SimulatedKernel):
        return _predicted(kernel, arrays, flops)
    if isinstance(kernel, AcceleratorKernel):
        return _simulated(kernel, arrays, flops)
    remote = RemoteKernel.of(kernel, threads=threads, worker=worker)
    return remote.time(
        None if arrays is None else _named(remote, arrays),
        limits={"min_seconds": seconds},
        timeout_s=timeout_s,
        flops=flops,
    )


def _predicted(
    kernel: SimulatedKernel, arrays: Sequence[Any] | None, flops: float | None
) -> Timing:
    """Return the predicted time of a kernel for a GPU that is simulated.

    Raises
    ------
    MeasurementError
        No block of it fits on a multiprocessor.
    UserError
        Its counts depend on arguments that are not given.
    """
    provenance = provenance_of_times(kernel.target, f"measure {kernel.name}")
    report = kernel.report(*(arrays or ()))
    refuse_too_large(report)
    if report.seconds is None:
        raise MeasurementError(
            f"measure {kernel.name}", "no time can be predicted",
            because=f"it uses tensor cores, of which {kernel.target.name} has no rates",
        )  # fmt: skip
    return Timing((report.seconds,), flops, provenance=provenance)


def _simulated(
    kernel: AcceleratorKernel, arrays: Sequence[Any] | None, flops: float | None
) -> Timing:
    """Return the time of a kernel for an accelerator: simulated cycles at its clock.

    Raises
    ------
    MeasurementError
        The host computes a part of it.
    CallError
        An array does not fit.
    """
    if arrays is not None:
        check_all(kernel.name, kernel.generated.interface.params, arrays)
    if None in kernel.parts:
        raise MeasurementError(
            f"measure {kernel.name}", "no time of the whole program can be simulated",
            because=f"the host of {kernel.target.name} computes a part of it",
            hint="kernel.report() has the cycles of the accelerator",
        )  # fmt: skip
    report = kernel.report()
    return Timing((report.seconds,), flops, provenance=report.provenance)


def _named(kernel: RemoteKernel, given: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    """Check the arguments of a kernel, and return them by name; numbers become arrays."""
    called = kernel.source.interface
    params: Sequence[Param] = called.params
    check_count(kernel.name, params, given)
    if any(param.is_number or not param.is_static for param in params):
        arrays = iter(Symbols(params, called.variables, called.checks).bind(kernel.name, given)[0])
        pairs = zip(params, given, strict=True)
        return {p.name: np.asarray(it if p.is_number else next(arrays)) for p, it in pairs}
    named = {}
    for number, (param, array) in enumerate(zip(params, given, strict=True), 1):
        operation = f"measure {kernel.name}: argument {number} ({param.name})"
        named[param.name] = np.asarray(as_checked_array(operation, param, array))
    return named
