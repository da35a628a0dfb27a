"""Measure the start of parallel loops, and sharing the cores with NumPy's threads.

``python -m dlcompiler.bench.threads`` prints one measurement of `alternation` as JSON: OpenBLAS
reads its environment when NumPy is imported, so each setting needs a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from dlcompiler import shell
from dlcompiler.bench.quickstart import register_tile
from dlcompiler.pipeline import build
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.runtime.threads import num_threads, prepare
from dlcompiler.target import resolve

TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
"""Variable of OpenBLAS: its idle threads spin for two to that power cycles before they sleep."""

_SPINNING_S, _ASLEEP_S = 20e-6, 2e-3

# A loop of as many iterations as there are threads, between two looks at the clock. In "meet" each
# iteration waits until all have begun, so that every thread must come.
_REGION = """
declare void @dlc_parallel_for(ptr, ptr, i64, i64)
declare i32 @clock_gettime(i32, ptr)

define void @launch(ptr %begun, i64 %threads, ptr %before, ptr %after) {
  store i64 0, ptr %begun
  %goal = getelementptr i64, ptr %begun, i64 1
  store i64 %threads, ptr %goal
  %s0 = call i32 @clock_gettime(i32 1, ptr %before)
  call void @dlc_parallel_for(ptr @BODY, ptr %begun, i64 0, i64 %threads)
  %s1 = call i32 @clock_gettime(i32 1, ptr %after)
  ret void
}

define internal void @empty(i64 %begin, i64 %end, ptr %begun) {
  ret void
}

define internal void @meet(i64 %begin, i64 %end, ptr %begun) {
entry:
  %goal.at = getelementptr i64, ptr %begun, i64 1
  %goal = load i64, ptr %goal.at
  %old = atomicrmw add ptr %begun, i64 1 seq_cst
  br label %look
look:
  %now = load atomic i64, ptr %begun seq_cst, align 8
  %all = icmp sge i64 %now, %goal
  br i1 %all, label %done, label %look
done:
  ret void
}
"""


@dataclass(frozen=True)
class Dispatch:
    """Medians of the time that a parallel loop takes [s]."""

    spinning_s: float
    """An empty loop, 20 µs after the last one, while idle threads still spin."""
    asleep_s: float
    """An empty loop, 2 ms after the last one, when idle threads sleep."""
    meeting_spinning_s: float
    """A loop in which all threads must take part, 20 µs after the last one."""
    meeting_asleep_s: float
    """The same loop, 2 ms after the last one."""


def dispatch(rounds: int = 300) -> Dispatch:
    """Measure the time to start a parallel loop, with the current number of threads."""
    empty, meeting = _launch("empty"), _launch("meet")
    return Dispatch(
        statistics.median(_after(_SPINNING_S, empty, rounds)),
        statistics.median(_after(_ASLEEP_S, empty, rounds)),
        statistics.median(_after(_SPINNING_S, meeting, rounds)),
        statistics.median(_after(_ASLEEP_S, meeting, rounds)),
    )


def _launch(body: str) -> Callable[[], float]:
    """Return a call of a launch that returns its time [s]."""
    text = _REGION.replace("BODY", body)
    module = compile_ir(text, Options.for_target(resolve("cpu")))
    types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    kernel = ctypes.CFUNCTYPE(None, *types)(module.address("launch"))
    begun, before, after = (np.zeros(2, np.int64) for _ in range(3))

    def measured(keep: object = module) -> float:
        prepare()
        kernel(begun.ctypes.data, num_threads(), before.ctypes.data, after.ctypes.data)
        return float((after - before) @ (1.0, 1e-9))

    return measured


def _after(pause_s: float, launch: Callable[[], float], rounds: int) -> list[float]:
    """Return the times of launches, with a pause of `pause_s` before each."""
    samples = []
    for _ in range(rounds):
        end = time.perf_counter() + pause_s
        if pause_s > 1e-3:
            time.sleep(pause_s)
        while time.perf_counter() < end:
            pass
        samples.append(launch())
    return samples


@dataclass(frozen=True)
class Alternation:
    """Median call times of two parallel products, alternating and each alone [s]."""

    own_alone_s: float
    own_in_turn_s: float
    numpy_alone_s: float
    numpy_in_turn_s: float

    @property
    def own(self) -> float:
        """Time of our call when alternating with NumPy's, divided by its time alone."""
        return self.own_in_turn_s / self.own_alone_s

    @property
    def numpy(self) -> float:
        """Time of NumPy's call when alternating with ours, divided by its time alone."""
        return self.numpy_in_turn_s / self.numpy_alone_s


def alternation(timeout: int | None = None) -> Alternation:
    """Measure a product of 1024³ alternating with ``np.matmul``, on all cores, in a new process.

    Parameters
    ----------
    timeout : int, optional
        OpenBLAS's ``OPENBLAS_THREAD_TIMEOUT``; by default, its own default.
    """
    environment = {name: value for name, value in os.environ.items() if name != TIMEOUT}
    if timeout is not None:
        environment[TIMEOUT] = str(timeout)
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return Alternation(**json.loads(done.stdout))


def _alternation(size: int = 1024, groups: int = 4, calls: int = 12) -> Alternation:
    """Measure in this process: groups of calls of each product alone, and of both alternating."""
    schedule, args = register_tile(size)
    product = schedule[args[2]]
    product.parallel(product.leaf_iter_vars[0])
    kernel = build(schedule, args, name="product")
    a, b, out, other = (np.ones((size, size), np.float32) for _ in range(4))
    own, numpy = partial(kernel, a, b, out), partial(np.matmul, a, b, out=other)
    own_alone, numpy_alone, own_in_turn, numpy_in_turn = ([] for _ in range(4))
    for _ in range(groups):
        own_alone += _settled([own], calls)[0]
        numpy_alone += _settled([numpy], calls)[0]
        first, second = _settled([own, numpy], calls)
        own_in_turn += first
        numpy_in_turn += second
    medians = map(statistics.median, (own_alone, own_in_turn, numpy_alone, numpy_in_turn))
    return Alternation(*medians)


def _settled(calls: list[Callable[[], object]], count: int) -> list[list[float]]:
    """Return the times of alternating calls [s], after all threads have slept and woken again."""
    time.sleep(0.3)
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(count):
        for call, of_call in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            of_call.append(time.perf_counter() - start)
    return [of_call[2:] for of_call in times]


def _print(_: None) -> int:
    print(json.dumps(asdict(_alternation())))
    return 0


if __name__ == "__main__":
    sys.exit(shell.run(lambda: None, _print))
