"""Measure the peak rate and the memory bandwidth of the machine, for comparison."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import statistics
import threading
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from dlcompiler.bench.memory import aligned
from dlcompiler.bench.streams import stream
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import Options, compile_ir, version
from dlcompiler.runtime.timing import time_call
from dlcompiler.target import resolve
from dlcompiler.target.detect import available_cores

ACCUMULATORS = 10
"""Independent sums: more than latency (4 to 5 cycles) times units (2); fewer than 16 registers."""
STEPS = 2_000_000
CALLS_OF_A_THREAD = 8
"""Starting a thread takes some tenths of a millisecond, a call about three: few are not enough."""
BANDWIDTH_ELEMENTS = 1 << 24


def describe_machine() -> dict[str, str]:
    """Return a description of the machine and the libraries, for the readers of figures."""
    cores = available_cores()
    peaks = [f"{fma_peak_gflops(1):.0f} GFLOP/s (1 thread)"]
    if cores > 1:
        peaks.append(f"{fma_peak_gflops(cores):.0f} ({cores} threads)")
    return {
        "FMA peak, float32": ", ".join(peaks) + ", measured",
        "memory, 1 thread": f"{memory_bandwidth('1:1'):.1f} GB/s copied, "
        f"{memory_bandwidth('1:0'):.1f} read, measured",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "libraries": f"numpy {np.__version__}, llvmlite {importlib.metadata.version('llvmlite')} "
        f"(LLVM {version()})",
    }


def fma_peak_gflops(threads: int, repeats: int = 5) -> float:
    """Measure the rate of vector multiply-adds on registers [GFLOP/s].

    Parameters
    ----------
    threads : int
        Number of threads that compute at once.
    repeats : int
        Samples; their median is returned.
    """
    loop = FMALoop(threads)
    loop()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        loop()
        seconds.append(time.perf_counter() - start)
    return loop.flops / statistics.median(seconds) / 1e9


class FMALoop:
    """A call that only does multiply-adds on registers, in each of several threads.

    Parameters
    ----------
    threads : int
        Number of threads that compute at once.
    """

    def __init__(self, threads: int) -> None:
        target = resolve("cpu")
        lanes = target.lanes("float32")
        module = compile_ir(_fma_loop(lanes), Options.for_target(target))
        out = Param("out", (lanes,), "float32", is_output=True)
        self._kernel = Function(module, "fma_loop", (out,))
        self._outputs = [np.zeros(lanes, np.float32) for _ in range(threads)]
        self._cores = _allowed_cores()
        self._calls = 1 if threads == 1 else CALLS_OF_A_THREAD
        self.flops = self._calls * threads * STEPS * ACCUMULATORS * lanes * 2
        """Operations of a call; a multiply-add is two."""

    def __call__(self) -> None:
        """Run the loop in all threads."""
        first, *others = self._outputs
        if not others:
            self._run(first)
            return
        cores = self._cores
        workers = [
            threading.Thread(target=self._on_core, args=(cores[number % len(cores)], out))
            for number, out in enumerate(others, start=1)
        ]
        with _pinned(cores[0]):
            for worker in workers:
                worker.start()
            self._run(first)
            for worker in workers:
                worker.join()

    def _on_core(self, core: int | None, out: npt.NDArray[np.float32]) -> None:
        with _pinned(core):
            self._run(out)

    def _run(self, out: npt.NDArray[np.float32]) -> None:
        for _ in range(self._calls):
            self._kernel(out)


def _allowed_cores() -> list[int | None]:
    """Return the cores that this thread may use, if the system has such a list."""
    return [*sorted(os.sched_getaffinity(0))] if hasattr(os, "sched_getaffinity") else [None]


@contextlib.contextmanager
def _pinned(core: int | None) -> Iterator[None]:
    """Pin this thread to one core; the system may keep a new thread on its creator's core."""
    if core is None:
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def memory_bandwidth(mix: str = "1:1", repeats: int = 5) -> float:
    """Measure how fast one thread moves memory, on arrays of 64 MiB [GB/s].

    Parameters
    ----------
    mix : str
        Reads to writes, a key of `dlcompiler.bench.streams.MIXES`.
    repeats : int
        Samples of each way; the median of the fastest is returned.
    """
    best = 0.0
    for past_caches, places in ((False, 1), (False, 8), (True, 1), (True, 4)):
        kernel = stream(mix, BANDWIDTH_ELEMENTS, past_caches=past_caches, places=places)
        arrays = [aligned(param.static_shape) for param in kernel.params]
        for array in arrays:
            array[...] = 0
        timing = time_call(
            partial(kernel, *arrays), min_repeats=repeats, max_repeats=repeats, min_seconds=0.0
        )
        best = max(best, sum(array.nbytes for array in arrays) / timing.median_s / 1e9)
    return best


def _fma_loop(lanes: int) -> str:
    """Return a loop of independent multiply-adds on vectors that stay in registers."""
    vector = f"<{lanes} x float>"
    half = f"{vector} <{', '.join(['float 5.000000e-01'] * lanes)}>"
    sums = range(ACCUMULATORS)
    phis = [
        f"  %s{n} = phi {vector} [ {_start(lanes, n)}, %entry ], [ %t{n}, %loop ]" for n in sums
    ]
    steps = [f"  %t{n} = call {vector} @fma({vector} %s{n}, {half}, {half})" for n in sums]
    total = ["  %r0 = fadd " + vector + " %t0, %t1"]
    total += [f"  %r{n} = fadd {vector} %r{n - 1}, %t{n + 1}" for n in range(1, ACCUMULATORS - 1)]
    lines = [
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
        "define void @fma_loop(ptr %out) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *phis,
        *steps,
        "  %next = add i64 %i, 1",
        f"  %done = icmp eq i64 %next, {STEPS}",
        "  br i1 %done, label %exit, label %loop",
        "exit:",
        *total,
        f"  store {vector} %r{ACCUMULATORS - 2}, ptr %out, align 4",
        "  ret void",
        "}",
    ]
    return "\n".join(lines).replace("@fma(", f"@llvm.fma.v{lanes}f32(") + "\n"


def _start(lanes: int, number: int) -> str:
    """Return the constant that an accumulator starts from.

    All differ, so that LLVM cannot merge accumulators. None is 1, because x/2 + 1/2 is then
    constant, and LLVM would remove the accumulator.
    """
    return f"<{', '.join([f'float {number + 2}.000000e+00'] * lanes)}>"
