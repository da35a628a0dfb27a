"""Measure a state of a schedule beside the notebook: in a worker process, awaited by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from dlcompiler.analysis import work_of
from dlcompiler.measurement import RemoteKernel
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.timing import Timing, format_seconds
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Node, Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor

TIME_LIMIT_S = 120.0

State = Literal["idle", "running", "cancelling"]


class Stopwatch(Protocol):
    """What measures a schedule; `cancel` may be called from another thread."""

    def measure(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> Timing:
        """Return the time of a call of the schedule's kernel, or raise a DLCompilerError."""

    def cancel(self) -> None:
        """Make a `measure` that runs end soon."""


class WorkerStopwatch:
    """Measures in a worker process of its own, which `cancel` ends."""

    def __init__(self) -> None:
        self._worker = Worker()

    def measure(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> Timing:
        """Generate code here; compile, run and time it in the worker."""
        source, func = emit_source(schedule, args, target, name)
        kernel = RemoteKernel.of_source(source, func, target, worker=self._worker)
        flops = work_of(schedule.outputs).flops
        return kernel.time(timeout_s=TIME_LIMIT_S, flops=flops or None)

    def cancel(self) -> None:
        """End the worker process; the next measurement starts another."""
        self._worker.interrupt()


class Measuring:
    """One measurement at a time: its state, its thread, and what it found out.

    Parameters
    ----------
    stopwatch
        What measures.
    report
        Called from the thread with the node and its result: a `Timing`, an error, or None when
        the measurement was cancelled.
    """

    def __init__(
        self, stopwatch: Stopwatch, report: Callable[[Node, Timing | Exception | None], None]
    ) -> None:
        self.state: State = "idle"
        self._stopwatch = stopwatch
        self._report = report
        self._thread: threading.Thread | None = None

    def start(self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str) -> bool:
        """Measure the schedule's current state; tells whether a measurement was begun."""
        if self.state != "idle":
            return False
        self.state = "running"
        frozen = schedule.fork("measured")
        self._thread = threading.Thread(
            target=self._run, args=(frozen, args, target, name), name="measuring", daemon=True
        )
        self._thread.start()
        return True

    def cancel(self) -> bool:
        """End the measurement that runs; tells whether there was one."""
        if self.state != "running":
            return False
        self.state = "cancelling"
        self._stopwatch.cancel()
        return True

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the last measurement is reported."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str) -> None:
        result: Timing | Exception | None
        try:
            result = self._stopwatch.measure(schedule, args, target, name)
        except Exception as error:
            # A bug, too, must reach the page: nobody looks at what a thread prints.
            result = error
        is_cancelled = self.state == "cancelling"
        self.state = "idle"
        self._report(schedule.node, None if is_cancelled else result)


def describe(timing: Timing) -> str:
    """Return a time with its spread, and the rate: ``6.1 ms ± 0.2 ms, 351 GFLOP/s``."""
    rate = "" if timing.gflops is None else f", {timing.gflops:.3g} GFLOP/s"
    return f"{format_seconds(timing.median_s)} ± {format_seconds(timing.spread_s)}{rate}"
