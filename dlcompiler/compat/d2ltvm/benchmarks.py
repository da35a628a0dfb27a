"""The book's measurements: a schedule for each size, built and timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.compat.arrays import array
from dlcompiler.compat.building import build
from dlcompiler.compat.d2ltvm.data import get_abc, get_bcast_data, get_bn_data, get_conv_data
from dlcompiler.compat.d2ltvm.expressions import conv_out_size
from dlcompiler.compat.devices import device
from dlcompiler.compat.simulated import SimulatedModule

Numbers = npt.NDArray[np.float64]
LONG_S = 1.0
"""A workload that takes longer is timed once [s]."""


def bench_workload(workload: Callable[[int], float]) -> float:
    """Return the time of one run of a workload [s].

    Parameters
    ----------
    workload : callable
        Takes a number of runs, and returns how long they took together [s].
    """
    workload(1)
    once = workload(1)
    if once > LONG_S:
        return once
    runs = max(int(LONG_S / max(once, 1e-9)), 5)
    return workload(runs) / runs


def _time_of(sch: Any, tensors: Sequence[Any], target: Any, values: Sequence[Any]) -> float:
    """Build a schedule and return the time of a call [s].

    On a simulated GPU the time is predicted, and the program does not run.
    """
    mod = build(sch, list(tensors), target)
    dev = device(target)
    arrays = [array(value, dev) for value in values]
    if isinstance(mod, SimulatedModule) and (seconds := mod.seconds_of(*arrays)) is not None:
        return seconds

    def workload(runs: int) -> float:
        return mod.time_evaluator(mod.entry_name, dev, number=runs)(*arrays).mean * runs

    return bench_workload(workload)


def bench_vector_add_tvm(func: Callable[[int], Any], sizes: Sequence[int], target: Any) -> Numbers:
    """Return the speed of vector additions [GFLOP/s]: ``func(n)`` gives a schedule and tensors."""
    found = []
    for n in map(int, sizes):
        sch, tensors = func(n)
        found.append(n / 1e9 / _time_of(sch, tensors, target, get_abc(n)))
    return np.array(found)


def bench_bcast_add_tvm(func: Callable[[int], Any], sizes: Sequence[int], target: Any) -> Numbers:
    """Return the speed of adding a column (n, 1) to a matrix (n, n) [GFLOP/s]."""
    found = []
    for n in map(int, sizes):
        sch, tensors = func(n)
        values = get_bcast_data((n, 1), (n, n))
        found.append(n * n / 1e9 / _time_of(sch, tensors, target, values))
    return np.array(found)


def bench_matmul_tvm(func: Callable[[int], Any], sizes: Sequence[int], target: Any) -> Numbers:
    """Return the speed of products of matrices (n, n) [GFLOP/s]."""
    found = []
    for n in map(int, sizes):
        sch, tensors = func(n)
        seconds = _time_of(sch, tensors, target, get_abc((n, n)))
        found.append(2 * n**3 / 1e9 / seconds)
    return np.array(found)


def conv_gflop(oc: int, ic: int, n: int, k: int, p: int, s: int) -> float:
    """Return the operations of a convolution [10⁹]."""
    on = conv_out_size(n, k, p, s)
    return float(2 * oc * ic * on * on * k * k / 1e9)


def depthwise_conv_gflop(ic: int, n: int, k: int, p: int, s: int) -> float:
    """Return the operations of a depthwise convolution [10⁹]."""
    on = conv_out_size(n, k, p, s)
    return float(2 * ic * on * on * k * k / 1e9)


def bench_conv_tvm(func: Callable[..., Any], sizes: Sequence[Any], target: Any) -> Numbers:
    """Return the speed of convolutions that keep the image's size [GFLOP/s].

    Parameters
    ----------
    func : callable
        ``func(oc, ic, n, k, p, s)`` gives a schedule and its tensors.
    sizes : sequence of (channels, extent of the image, extent of the filters)
        What to measure.
    target : str or Target
        What to build for.
    """
    found = []
    for c, n, k in sizes:
        size = int(c), int(c), int(n), int(k), (int(k) - 1) // 2, 1
        sch, tensors = func(*size)
        values = get_conv_data(*size)
        found.append(conv_gflop(*size) / _time_of(sch, tensors, target, values))
    return np.array(found)


def bench_depthwise_conv_tvm(
    func: Callable[..., Any], sizes: Sequence[Any], target: Any
) -> Numbers:
    """Return the speed of depthwise convolutions [GFLOP/s]: ``func(ic, n, k, p, s)``."""
    found = []
    for c, n, k in sizes:
        size = int(c), int(n), int(k), (int(k) - 1) // 2, 1
        sch, tensors = func(*size)
        values = get_conv_data(size[0], *size, conv_type="depthwise")
        found.append(depthwise_conv_gflop(*size) / _time_of(sch, tensors, target, values))
    return np.array(found)


def bench_pooling_tvm(func: Callable[[Any], Any], sizes: Sequence[Any], target: Any) -> Numbers:
    """Return the times of pooling with a border and a step of 1 [s].

    Parameters
    ----------
    func : callable
        ``func((channels, extent of image, extent of window))`` gives a schedule and tensors.
    sizes, target
        As in `bench_conv_tvm`.
    """
    found = []
    for c, n, k in sizes:
        sch, tensors = func((c, n, k))
        data, _, out = get_conv_data(int(c), int(c), int(n), int(k), 1, 1)
        found.append(_time_of(sch, tensors, target, (data, out)))
    return np.array(found)


def bench_bn_tvm(func: Callable[[Any], Any], sizes: Sequence[Any], target: Any) -> Numbers:
    """Return the times of batch normalization [s]: ``func((channels, extent))``."""
    found = []
    for c, n in sizes:
        sch, tensors = func((c, n))
        found.append(_time_of(sch, tensors, target, get_bn_data(int(c), int(n))))
    return np.array(found)
