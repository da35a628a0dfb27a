"""A batch of candidates: generated in a thread, compiled in a free worker, then run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.measurement.candidates import Builder, Built, Candidate, Job, Measured

_WATCH_S = 0.1

Ready: TypeAlias = "Measured | Candidate | Built"
"""What to do next with a job: report it, compile it, or run it."""


@dataclass(frozen=True, slots=True)
class Next:
    """The next step of a job, for the thread that runs candidates."""

    number: int
    """Number of the job in the batch."""
    ready: Ready
    """The generated text, the compiled code, or the result if there is one."""
    spent_s: float
    """Time spent on the job so far [s]."""


class Batch:
    """The jobs of a batch, and the two threads that generate and compile their candidates.

    One thread generates texts, another one compiles them in the worker of `builder`. The caller
    loops over `next`: it runs candidates that are compiled, and compiles one itself while there is
    nothing to run. While candidates run, both threads share a core.

    Parameters
    ----------
    jobs : sequence of callable
        Each generates the text of a candidate.
    builder : Builder
        Compiles beside the caller.
    limit_s : float
        How long generating a text may take [s].
    is_eager : bool
        Whether candidates may run while others are built.
    cores : sequence of int
        Cores on which texts are generated; empty: any.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        builder: Builder,
        limit_s: float,
        *,
        is_eager: bool,
        cores: Sequence[int] = (),
    ) -> None:
        self._jobs = jobs
        self._builder = builder
        self._limit_s = limit_s
        self._is_eager = is_eager
        self._cores = cores
        self._changed = threading.Condition()
        self._todo = deque(range(len(jobs)))
        self._texts: deque[tuple[int, Candidate, float]] = deque()
        self._built: deque[tuple[int, Built, float]] = deque()
        self._failed: deque[tuple[int, Measured, float]] = deque()
        self._unreported = len(jobs)
        self._error: BaseException | None = None
        self._is_over = False
        self._is_idle = False
        self._generator = _Generator(self)
        self._generator.start()
        self._compiling = threading.Thread(target=self._compile_all, daemon=True)
        self._is_compiling = False
        self._compiling.start()

    # -- for the caller -----------------------------------------------------------------------

    def next(self) -> Next | None:
        """Wait for the caller's next step; None when all jobs are done, or `end` was called.

        Raises
        ------
        MeasurementError
            If no worker can be started.
        """
        with self._changed:
            while not self._is_over and self._unreported:
                if self._error is not None:
                    raise self._error
                if (found := self._choose()) is not None:
                    return found
                self._is_idle = True
                self._changed.wait(_WATCH_S)
                self._is_idle = False
                self._changed.notify_all()
                self._give_up_generator()
            return None

    def reported(self) -> None:
        """Count a job as finished."""
        with self._changed:
            self._unreported -= 1

    def put_built(self, number: int, built: Built | Measured, spent_s: float) -> None:
        """Store the compiled code of a text, or its failure."""
        with self._changed:
            if isinstance(built, Built):
                self._built.append((number, built, spent_s))
            else:
                self._failed.append((number, built, spent_s))
            self._changed.notify_all()

    def end(self) -> None:
        """End the batch: no build starts any more, and each thread ends after its current step."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _choose(self) -> Next | None:
        if self._failed:
            return Next(*self._failed.popleft())
        if self._built and (self._is_eager or not self._is_building()):
            return Next(*self._built.popleft())
        return Next(*self._texts.popleft()) if self._texts else None

    def _is_building(self) -> bool:
        generating = bool(self._todo) or self._generator.number is not None
        return generating or bool(self._texts) or self._is_compiling

    # -- in threads of its own ----------------------------------------------------------------

    def generate(self, generator: _Generator) -> None:
        """Generate texts until there are no more jobs, or another thread replaced `generator`."""
        self._pin()
        while True:
            with self._changed:
                if self._is_over or not self._todo or generator is not self._generator:
                    return
                number = generator.number = self._todo.popleft()
                start = generator.since = time.perf_counter()
            made = _generated(self._jobs[number])
            spent_s = time.perf_counter() - start
            with self._changed:
                if generator is not self._generator:
                    return  # `generator` was replaced: its result is not used
                generator.number = None
                if isinstance(made, Candidate):
                    self._texts.append((number, made, spent_s))
                else:
                    self._failed.append((number, made, spent_s))
                self._changed.notify_all()

    def _compile_all(self) -> None:
        """Compile texts in the order in which they are generated."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work)
                if self._is_over or not self._texts:
                    return
                number, candidate, spent_s = self._texts.popleft()
                self._is_compiling = True
            start = time.perf_counter()
            try:
                built = self._builder.build(candidate)
                self.put_built(number, built, spent_s + time.perf_counter() - start)
            except BaseException as error:
                with self._changed:
                    self._error = error
                    return
            finally:
                with self._changed:
                    self._is_compiling = False
                    self._changed.notify_all()

    def _has_work(self) -> bool:
        """Tell whether the compiling thread must wake up: to compile a text, or to end.

        An idle caller takes texts first. If compiling and generating share a core, one text is left
        for the caller, so that this core can generate the next text.
        """
        is_generated = self._is_generated()
        kept = 1 if self._is_eager and not is_generated else 0
        has_text = len(self._texts) > kept and not self._is_idle
        return self._is_over or has_text or (is_generated and not self._texts)

    def _is_generated(self) -> bool:
        return not self._todo and self._generator.number is None

    def _give_up_generator(self) -> None:
        """Replace the generating thread if a text takes too long: a thread cannot be killed."""
        late, number = self._generator, self._generator.number
        if number is None or time.perf_counter() - late.since <= self._limit_s:
            return
        message = f"its code was not generated within {self._limit_s:g} s"
        self._failed.append((number, Measured("build timeout", message=message), self._limit_s))
        self._generator = _Generator(self)
        self._generator.start()

    def _pin(self) -> None:
        if self._cores and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(threading.get_native_id(), self._cores)


class _Generator(threading.Thread):
    """The thread that generates texts; it stores the current job and its start time."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(name="dlcompiler-generate", daemon=True)
        self.number: int | None = None
        self.since = 0.0
        self._batch = batch

    def run(self) -> None:
        self._batch.generate(self)


def _generated(job: Job) -> Candidate | Measured:
    """Return the text of a candidate; an exception of its generator becomes its outcome."""
    try:
        return job()
    except MemoryError as error:
        return Measured("out of memory", message=str(error) or "no memory to generate its code")
    except Exception as error:
        return Measured("build error", message=f"{type(error).__name__}: {error}")
