"""Measure how long a kernel takes, in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.pipeline import Kernel, SimulatedKernel
from dlcompiler.runtime.arguments import as_checked_array, check_count
from dlcompiler.runtime.timing import Timing
from dlcompiler.runtime.workers import Worker


def measure(
    kernel: Kernel | SimulatedKernel,
    arrays: Sequence[npt.NDArray[Any]] | None = None,
    *,
    threads: int | None = None,
    seconds: float = 0.3,
    timeout_s: float = 60.0,
    worker: Worker | None = None,
) -> Timing:
    """Measure a kernel.

    Parameters
    ----------
    kernel : Kernel
        What `build` returned.
    arrays : sequence of array, optional
        Its arguments; the outputs are not changed. By default random ones.
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
        Median and spread of repeated calls after a warm-up. ``gflops`` counts the operations that
        the expression asks for.

    Raises
    ------
    MeasurementError
        If the kernel crashes or does not end in time; this process lives on. If it is for a GPU
        that is simulated.
    CallError
        If an array does not fit.

    Examples
    --------
    >>> dlc.measure(matmul, [a, b, c])                                         # doctest: +SKIP
    Timing(median=38.2 ms, spread=1.1 ms, n=27, 56.2 GFLOP/s)
    """
    if not isinstance(kernel, Kernel | SimulatedKernel):
        raise MeasurementError(
            "measure", "not a kernel", got=repr(kernel), expected="what dlc.build returns"
        )
    remote = RemoteKernel.of(kernel, threads=threads, worker=worker)
    named = None
    if arrays is not None:
        check_count(remote.name, remote.params, arrays)
        named = {}
        pairs = zip(remote.params, arrays, strict=True)
        for number, (param, array) in enumerate(pairs, 1):
            operation = f"measure {kernel.name}: argument {number} ({param.name})"
            checked = as_checked_array(operation, param, array)
            named[param.name] = np.asarray(checked)
    return remote.time(
        named,
        limits={"min_seconds": seconds},
        timeout_s=timeout_s,
        flops=kernel.work.flops or None if kernel.work else None,
    )
