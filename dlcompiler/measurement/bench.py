"""Measure batches of candidates in two workers: one builds, the other one checks and times.

If building does not disturb what runs on another core, the two overlap, and the second worker also
builds when it has nothing to run. Otherwise both build the whole batch before any candidate runs.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TypeAlias

from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.batch import Batch, Next
from dlcompiler.measurement.candidates import (
    Builder,
    Built,
    Candidate,
    Ceiling,
    Job,
    Measured,
    Runner,
)
from dlcompiler.measurement.correctness import CorrectnessTest
from dlcompiler.measurement.interference import Cores, builds_disturb, cores_for
from dlcompiler.measurement.interpreter import generating_beside
from dlcompiler.measurement.loading import DRIVERS
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.workers import MEASUREMENT_WORKER, Worker
from dlcompiler.target import Target
from dlcompiler.target.detect import host

Report: TypeAlias = Callable[[int, Measured], None]

_REMEMBERED = 16
_LOOK_S = 0.02
_BUSY = 0.25
"""Share of the last times that are noisy, above which the machine is reported as too busy."""


class CandidateBench:
    """Builds, checks and times candidates of one workload.

    Parameters
    ----------
    test : CorrectnessTest or callable
        What each candidate must compute; a callable is called when the test is first needed.
    target : Target
        The target that their text is generated for.
    threads : int
        Number of threads of parallel loops.
    ceiling : Ceiling
        The most time and memory that a candidate may use.
    effort : Effort
        How precisely it is timed.
    flush_caches : bool
        Empty the caches before each sample.
    overlap : bool, optional
        Build while candidates run; by default, if a test shows that this does not disturb them.
    command : sequence of str
        The command that starts a worker.
    """

    def __init__(
        self,
        test: CorrectnessTest | Callable[[], CorrectnessTest],
        target: Target,
        *,
        threads: int = 1,
        ceiling: Ceiling | None = None,
        effort: Effort | None = None,
        flush_caches: bool = False,
        overlap: bool | None = None,
        command: Sequence[str] = MEASUREMENT_WORKER,
    ) -> None:
        self.note = ""
        """A warning that the machine is too busy; empty if it is not."""
        self.ceiling = ceiling or Ceiling()
        """The most time and memory that a candidate may use."""
        self._test = test
        is_device = target.language in DRIVERS
        self._options = None if is_device else Options.for_target(target)
        self._device = target.runs_on
        if is_device and flush_caches:
            raise MeasurementError(
                f"measure candidates for {target.name}", "the caches of a device cannot be emptied",
                hint="flush_caches=False",
            )  # fmt: skip
        self._threads = threads
        self._effort = effort or Effort()
        self._flush_bytes = 2 * host().caches[-1].bytes if flush_caches else 0
        self._overlap = overlap
        self._command = command
        self._cores = Cores((), ())
        self._workers: tuple[Worker, Worker] | None = None
        self._runner: Runner | None = None
        self._recent: deque[bool] = deque(maxlen=_REMEMBERED)
        self._interrupted = threading.Event()
        self._batch: Batch | None = None
        self._starting: _Starting | None = None
        self._is_closed = False

    @property
    def overlaps(self) -> bool | None:
        """Whether builds overlap with runs; None: not tested yet."""
        return self._overlap

    def measure(self, jobs: Sequence[Job], best_s: float | None, report: Report) -> None:
        """Measure a batch.

        Parameters
        ----------
        jobs : sequence of callable
            Each generates the text of a candidate, or returns why there is none; called in threads.
        best_s : float, optional
            The shortest time so far [s]; a far slower candidate is not timed precisely.
        report : callable
            Called with the number of a job and its result, in any order, in this thread.

        Raises
        ------
        MeasurementError
            If no worker can be started.
        """
        self._interrupted.clear()
        runner = self._ready()
        if runner is None:
            return
        if self.note:  # perhaps another core is quieter
            self._cores = self._chosen_cores()
            runner.cores = self._cores.run
        batch = self._batch = self._new_batch(jobs, is_eager=bool(self._overlap))
        with batch, generating_beside():
            while (step := batch.next()) is not None:
                result = self._made(step, batch, partial(runner.run, best_s=best_s))
                if self._interrupted.is_set():
                    return  # the result of an interrupted measurement is meaningless
                if result is not None:
                    best_s = self._noted(result, best_s)
                    report(step.number, result)
                    batch.reported()

    def compare(
        self, jobs: Sequence[Job], *, budget_s: float = 1.0, seed: int = 0
    ) -> list[Measured]:
        """Measure correct candidates in turn, so that a drift of the machine affects all equally.

        Parameters
        ----------
        jobs : sequence of callable
            As in `measure`; only a few, since all are in memory at once.
        budget_s : float
            How long the rounds may take [s].
        seed : int
            Seed of the order in each round.

        Returns
        -------
        list of Measured
            The result of each job; those that are ``ok`` have samples of the same rounds. Empty if
            `interrupt` was called.

        Raises
        ------
        MeasurementError
            If no worker can be started, or one of the candidates ends it.
        """
        self._interrupted.clear()
        runner = self._ready()
        if runner is None:
            return []
        several: dict[int, Built] = {}
        results: dict[int, Measured] = {}
        batch = self._batch = self._new_batch(jobs, is_eager=False)
        with batch, generating_beside():
            while (step := batch.next()) is not None:
                if isinstance(step.ready, Built):
                    several[step.number] = step.ready
                elif (result := self._made(step, batch)) is not None:
                    results[step.number] = result
                else:
                    continue
                batch.reported()
        if several and not self._interrupted.is_set():
            samples = runner.alternate(list(several.values()), budget_s, seed)
            for number, own in zip(several, samples, strict=True):
                results[number] = Measured("ok", own)
        return [] if self._interrupted.is_set() else [results[n] for n in range(len(jobs))]

    def interrupt(self) -> None:
        """Interrupt the batch that another thread waits for."""
        self._interrupted.set()
        if self._starting is not None:
            self._starting.is_interrupted = True
        if self._batch is not None:
            self._batch.end()
        for worker in self._workers or ():
            worker.interrupt()

    def close(self) -> None:
        """End the workers."""
        self._is_closed = True
        if self._batch is not None:
            self._batch.end()
        for worker in self._workers or ():
            worker.close()

    # -- what a batch needs -------------------------------------------------------------------

    def _ready(self) -> Runner | None:
        """Return the runner, which the first call starts; None if the start was interrupted."""
        self._is_closed = False
        while True:
            if self._starting is None:
                self._starting = _Starting(self._start)
                self._starting.start()
            while self._starting.is_alive():
                if self._interrupted.is_set():
                    return None  # the start goes on: NumPy cannot be interrupted
                self._starting.join(_LOOK_S)
            if self._starting.error is None:
                return self._runner
            begun, self._starting = self._starting, None
            if not begun.is_interrupted:
                assert begun.error is not None
                raise begun.error

    def _start(self) -> None:
        """Start the workers, compute the correctness test, and test whether builds disturb runs."""
        memory = self.ceiling.memory_bytes
        first = Worker(self._command, memory)
        with ThreadPoolExecutor(2) as starting:
            begun = starting.submit(first.start)
            test = self._test if isinstance(self._test, CorrectnessTest) else self._test()
            # The arrays are shared with this process, copied for each place, and have outputs.
            second = Worker(self._command, None if memory is None else memory + 8 * test.nbytes)
            self._workers = (first, second)
            begun_too = starting.submit(second.start)
            begun.result()
            begun_too.result()
        cores = self._cores = self._chosen_cores()
        if self._overlap is None:
            self._overlap = (
                self._options is not None
                and bool(cores.build)
                and not builds_disturb(first, second, cores, self._options)
            )
        self._runner = Runner(
            second, test, self._options, self.ceiling.run_s, cores.run, self._threads,
            self._effort, self._flush_bytes, self._device,
        )  # fmt: skip
        if self._is_closed:
            self.close()

    def _chosen_cores(self) -> Cores:
        # The driver of a device starts threads of its own: they may run on any core.
        return Cores((), ()) if self._options is None else cores_for(self._threads)

    def _new_batch(self, jobs: Sequence[Job], *, is_eager: bool) -> Batch:
        assert self._workers is not None
        cores = self._cores.build if is_eager else self._cores.all
        builder = self._builder(self._workers[0], cores)
        own = self._cores.build if is_eager else ()
        return Batch(jobs, builder, self.ceiling.build_s, is_eager=is_eager, cores=own)

    def _builder(self, worker: Worker, cores: Sequence[int]) -> Builder:
        return Builder(worker, self._options, self.ceiling.build_s, cores, self._device)

    def _made(
        self, step: Next, batch: Batch, run: Callable[[Built], Measured] | None = None
    ) -> Measured | None:
        """Execute the next step of a job; return its result if this was the last step."""
        match step.ready:
            case Measured():
                return replace(step.ready, build_s=step.spent_s)
            case Candidate():
                assert self._workers is not None
                cores = self._cores.run if self._overlap else self._cores.all
                start = time.perf_counter()
                built = self._builder(self._workers[1], cores).build(step.ready)
                spent_s = step.spent_s + time.perf_counter() - start
                batch.put_built(step.number, built, spent_s)
                return None
            case Built():
                assert run is not None
                return replace(run(step.ready), build_s=step.spent_s)

    def _noted(self, result: Measured, best_s: float | None) -> float | None:
        """Update the note about noisy times, and return the shortest time so far [s]."""
        if result.outcome != "ok":
            return best_s
        self._recent.append(result.is_noisy)
        noisy = sum(self._recent)
        is_busy = noisy >= 3 and noisy >= _BUSY * len(self._recent)
        self.note = (
            f"the machine is too busy: {noisy} of the last {len(self._recent)} times are uncertain"
            if is_busy
            else ""
        )
        median_s = result.median_s
        return median_s if best_s is None or median_s < best_s else best_s

    def __enter__(self) -> CandidateBench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Starting(threading.Thread):
    """Starts a bench in a thread of its own, so that waiting for it can be interrupted."""

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__(name="dlcompiler-start", daemon=True)
        self.error: Exception | None = None
        self.is_interrupted = False
        self._make = start

    def run(self) -> None:
        try:
            self._make()
        except Exception as error:
            self.error = error
