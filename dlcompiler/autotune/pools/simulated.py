"""Measure pool of a simulated GPU: candidates are checked on this CPU, their times predicted.

Times do not depend on this machine, so all its cores work: each has a worker process, which
generates, compiles and checks one candidate after the other.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias

from dlcompiler.analysis import work_of
from dlcompiler.autotune.candidate import Candidate, Tried, bound, stored_form
from dlcompiler.autotune.pools.correctness import correctness_test
from dlcompiler.autotune.pools.measure_pool import Device, Report
from dlcompiler.autotune.pools.simulation import WORKER_MODULE, Made, described, made_of, make
from dlcompiler.autotune.records.record import target_key
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import UserError
from dlcompiler.measurement.candidates import Builder, Ceiling, Measured, Runner, failure
from dlcompiler.measurement.correctness import CorrectnessTest
from dlcompiler.measurement.interpreter import generating_beside
from dlcompiler.measurement.provenance import provenance_of_times
from dlcompiler.ops import Operator
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.workers import MEASUREMENT_WORKER, Worker
from dlcompiler.space import Workload
from dlcompiler.target import Target, resolve
from dlcompiler.te import PlaceholderOp

_FAR_FASTER_S = 0.0
"""A shortest time with which a candidate is checked, but not timed [s]."""
COMMAND = (*MEASUREMENT_WORKER[:-1], WORKER_MODULE)
_MOST_WORKERS = 16
_MAKING = threading.Lock()
_LOOK_S = 0.1
_WORTH_REGISTERS, _WORTH_OPTIMIZING = 4e7, 1.5e8
"""Floating-point operations from which on code runs so much faster that this takes less time: if
LLVM assigns registers, which takes 15 ms; and if its passes optimize, which takes 60 ms more.
Measured with products of 256 and 320 and convolutions of 29 and 58 million operations."""

_Found: TypeAlias = "tuple[int, Measured] | BaseException"


class SimulatedPool:
    """Checks candidates of a workload by simulation on this CPU, and predicts their times.

    Parameters
    ----------
    operator : Operator
        The operator whose template makes schedules of configs.
    workload : Workload
        What is tuned.
    target : Target
        The simulated GPU.
    ceiling : Ceiling
        Limits of a candidate: time to build, time to run, memory.
    seed : int
        Seed of the data that candidates are checked with.
    workers : int, optional
        Processes that work at once; by default one for each core.

    Raises
    ------
    MeasurementError
        Programs for the target have no times.
    """

    def __init__(
        self, operator: Operator, workload: Workload, target: Target, *,
        ceiling: Ceiling | None = None, seed: int = 0, workers: int | None = None,
    ) -> None:  # fmt: skip
        self.note = ""
        """A note for the user about the times; empty."""
        self._operator, self._workload, self._target = operator, workload, target
        self._provenance = provenance_of_times(target, f"tune {workload}")
        self._devices = (Device(target_key(target, target.cores), provenance=self._provenance),)
        self._ceiling, self._seed = ceiling or Ceiling(), seed
        self._options = _options(operator, workload)
        self._count = min(workers or _cores(), _MOST_WORKERS)
        self._test: Future[CorrectnessTest] | None = None
        self._lanes: list[_Lane] = []
        self._working: list[threading.Thread] = []
        self._best_s = math.inf
        self._interrupted = threading.Event()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The simulated GPU."""
        return self._devices

    @property
    def workers(self) -> int:
        """The most processes that work at once [1]."""
        return self._count

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Measure a batch; see `dlcompiler.autotune.pools.measure_pool.MeasurePool`."""
        self._join()  # what an interrupted batch left
        self._interrupted.clear()
        self._best_s = math.inf if best_s is None else best_s
        found = self._start(configs)
        try:
            with generating_beside():
                for _ in configs:
                    result = self._next(found)
                    if result is None:
                        return
                    number, measured = result
                    if measured.outcome == "ok":
                        self._best_s = min(self._best_s, *measured.samples_s)
                    report(number, self._result(measured))
        except BaseException:
            self.interrupt()
            raise

    def _next(self, found: queue.SimpleQueue[_Found]) -> tuple[int, Measured] | None:
        """Wait for a result; None if the batch was interrupted."""
        while not self._interrupted.is_set():
            try:
                result = found.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            return result
        return None

    def _result(self, found: Measured) -> Result:
        return Result(found.outcome, found.samples_s, found.message, found.build_s, found.run_s,
                      False, self._provenance)  # fmt: skip

    def interrupt(self) -> None:
        """Interrupt the batch that another thread waits for."""
        self._interrupted.set()
        for lane in self._lanes:
            lane.worker.interrupt()

    def close(self) -> None:
        """End the workers."""
        self.interrupt()
        self._join()
        for lane in self._lanes:
            lane.worker.close()

    def _join(self) -> None:
        for thread in self._working:
            thread.join()
        self._working = []

    # -- threads, each with a worker --------------------------------------------------------------

    def _start(self, configs: Sequence[Tried]) -> queue.SimpleQueue[_Found]:
        """Start to measure a batch; return the queue of its results."""
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        found: queue.SimpleQueue[_Found] = queue.SimpleQueue()
        for number in range(len(configs)):
            todo.put(number)
        if self._test is None:
            self._test = Future()
            _in_thread(self._make_test, self._test)
        while len(self._lanes) < min(self._count, len(configs)):
            self._lanes.append(_Lane(f"{self._workload.op}_kernel", self._options, self._ceiling))
        self._working = [
            _in_thread(self._serve, lane, configs, todo, found)
            for lane in self._lanes[: len(configs)]
        ]
        return found

    def _make_test(self, made: Future[CorrectnessTest]) -> None:
        try:
            made.set_result(correctness_test(self._operator, self._workload, self._seed))
        except BaseException as error:
            made.set_exception(error)

    def _serve(
        self, lane: _Lane, configs: Sequence[Tried], todo: queue.SimpleQueue[int],
        found: queue.SimpleQueue[_Found],
    ) -> None:  # fmt: skip
        """Measure candidates until there are no more, or the batch is interrupted."""
        assert self._test is not None
        while not self._interrupted.is_set():
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            try:
                found.put((number, self._measured(lane, configs[number], self._test)))
            except BaseException as error:
                found.put(error)
                return

    def _measured(self, lane: _Lane, tried: Tried, test: Future[CorrectnessTest]) -> Measured:
        start = time.perf_counter()
        try:
            stored_form(tried)
        except UserError as error:
            return Measured("refused", message=str(error))
        item = bound(tried, self._operator, self._workload)
        made = lane.made(item, self._target, self._best_s)
        built = lane.builder.build(made.code) if isinstance(made, Made) else made
        seconds = time.perf_counter() - start
        if isinstance(built, Measured):
            return replace(built, build_s=seconds)
        assert isinstance(made, Made)
        result = lane.runner(test.result()).run(built, _FAR_FASTER_S)
        samples = (made.seconds,) if result.outcome == "ok" else ()
        return replace(result, samples_s=samples, build_s=seconds)


class _Lane:
    """A worker, and what it does for one candidate after the other.

    Parameters
    ----------
    name : str
        Name of the kernels.
    options : Options
        How LLVM compiles.
    ceiling : Ceiling
        Limits of a candidate.
    """

    def __init__(self, name: str, options: Options, ceiling: Ceiling) -> None:
        self._name, self._options, self._ceiling = name, options, ceiling
        self._runner: Runner | None = None
        self.worker = Worker(COMMAND, ceiling.memory_bytes)
        self.builder = Builder(self.worker, options, ceiling.build_s)

    def made(self, item: Candidate, target: Target, best_s: float) -> Made | Measured:
        """Schedule a candidate and predict its time: in the worker, if a text describes it.

        The schedules of a program are run here, one at a time, and all analysed for races.
        """
        params = described(item, target)
        if params is None:
            with _MAKING:
                return make(item, self._name, target, math.inf)
        params |= {"name": self._name, "best_s": best_s if math.isfinite(best_s) else None}
        outcome = self.worker.call("generate", params, timeout_s=self._ceiling.build_s)
        if not outcome.ok:
            return failure(outcome, "build", self._ceiling.build_s)
        return made_of(outcome.value, outcome.data)

    def runner(self, test: CorrectnessTest) -> Runner:
        """Return what checks candidates."""
        if self._runner is None:
            limit_s = self._ceiling.run_s
            self._runner = Runner(self.worker, test, self._options, limit_s, threads=1)
        return self._runner


def _options(operator: Operator, workload: Workload) -> Options:
    """Return options with which compiling and running a candidate takes the least time."""
    outputs = [t for t in operator.define(workload) if not isinstance(t.op, PlaceholderOp)]
    work = work_of(outputs)
    flops = math.inf if work is None else work.flops
    return Options.for_target(
        resolve("cpu"),
        opt_level=int(flops >= _WORTH_REGISTERS), pass_level=int(flops >= _WORTH_OPTIMIZING),
    )  # fmt: skip


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_thread(run: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=run, args=args, name="dlcompiler-simulate", daemon=True)
    thread.start()
    return thread
