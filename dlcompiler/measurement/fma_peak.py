"""Measure the peak rate of this machine: vector multiply-adds on registers."""

from __future__ import annotations

import statistics
import time
from functools import partial

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.measurement.pinned import run_together
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.target import resolve

ACCUMULATORS = 10
"""Independent sums: more than latency (4 to 5 cycles) times units (2); fewer than 16 registers."""
STEPS = 2_000_000
CALLS_OF_A_THREAD = 8
"""Starting a thread takes some tenths of a millisecond, a call about three: few are not enough."""
LLVM_TYPES = {"float32": "float", "float64": "double"}
"""The dtypes whose peak is measured."""


def fma_peak_gflops(threads: int, repeats: int = 5, dtype: str = "float32") -> float:
    """Measure the rate of vector multiply-adds on registers [GFLOP/s].

    Parameters
    ----------
    threads : int
        Number of threads that compute at once.
    repeats : int
        Samples; their median is returned.
    dtype : str
        A key of `LLVM_TYPES`.
    """
    loop = FMALoop(threads, dtype)
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
    dtype : str
        A key of `LLVM_TYPES`.
    """

    def __init__(self, threads: int, dtype: str = "float32") -> None:
        target = resolve("cpu")
        lanes = target.lanes(dtype)
        module = compile_ir(_fma_loop(lanes, dtype), Options.for_target(target))
        out = Param("out", (lanes,), dtype, is_output=True)
        self._kernel = Function(module, "fma_loop", (out,))
        self._outputs = [np.zeros(lanes, dtypes.to_numpy(dtype)) for _ in range(threads)]
        self._calls = 1 if threads == 1 else CALLS_OF_A_THREAD
        self.flops = self._calls * threads * STEPS * ACCUMULATORS * lanes * 2
        """Operations of a call; a multiply-add is two."""

    def __call__(self) -> None:
        """Run the loop in all threads."""
        run_together([partial(self._run, out) for out in self._outputs])

    def _run(self, out: npt.NDArray[np.floating]) -> None:
        for _ in range(self._calls):
            self._kernel(out)


def _fma_loop(lanes: int, dtype: str = "float32") -> str:
    """Return a loop of independent multiply-adds on vectors that stay in registers."""
    scalar = LLVM_TYPES[dtype]
    vector = f"<{lanes} x {scalar}>"
    half = f"{vector} <{', '.join([f'{scalar} 5.000000e-01'] * lanes)}>"
    fma = f"@llvm.fma.v{lanes}f{8 * dtypes.bytes_of(dtype)}"
    sums = range(ACCUMULATORS)
    phis = [
        f"  %s{n} = phi {vector} [ {_start(lanes, n, scalar)}, %entry ], [ %t{n}, %loop ]"
        for n in sums
    ]
    steps = [f"  %t{n} = call {vector} {fma}({vector} %s{n}, {half}, {half})" for n in sums]
    total = ["  %r0 = fadd " + vector + " %t0, %t1"]
    total += [f"  %r{n} = fadd {vector} %r{n - 1}, %t{n + 1}" for n in range(1, ACCUMULATORS - 1)]
    lines = [
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
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
    return "\n".join(lines) + "\n"


def _start(lanes: int, number: int, scalar: str) -> str:
    """Return the constant that an accumulator starts from.

    All differ, so that LLVM cannot merge accumulators. None is 1, because x/2 + 1/2 is then
    constant, and LLVM would remove the accumulator.
    """
    return f"<{', '.join([f'{scalar} {number + 2}.000000e+00'] * lanes)}>"
