"""Compile schedules in a worker process, because LLVM may abort the process that it runs in."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dlcompiler.codegen import Source
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.cross import Assembler
from dlcompiler.runtime.llvm import Options
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.code.assembly_text import assembly_code
from dlcompiler.views.code.code_text import Code
from dlcompiler.views.code.llvm_text import llvm_code
from dlcompiler_widgets.explorer.status import Status, status_of

DELAY_S = 0.05
"""Time before work begins [s]: the answer to the click that asked for it goes out first, and of
several clicks in short order only the last one counts."""
PATIENCE_S = 2.0
"""Work that nobody waits for any more may go on so long [s] before its process is ended."""
_REMEMBERED = 24


class Printer(Protocol):
    """Compiles LLVM IR to assembly; `cancel` may be called from another thread."""

    def assembly(self, text: str, options: Options, name: str = ...) -> str:
        """Compile LLVM IR to assembly, or raise a DLCompilerError."""

    def cancel(self) -> None:
        """Cancel the running compilation."""

    def close(self) -> None:
        """End the printer; it cannot be used afterwards."""


@dataclass(frozen=True)
class Compiled:
    """The code of one state, or the reason why there is none."""

    llvm: Code | Status
    assembly: Code | Status


@dataclass(frozen=True)
class Job:
    """A state to compile, with its parameters and target."""

    schedule: Schedule
    """At the state to compile; nobody moves it."""
    args: tuple[Tensor, ...]
    target: Target
    name: str


class Compiling:
    """Compiles the last requested state in a background thread, and caches the results.

    Parameters
    ----------
    printer
        Makes the printer of assembly; by default a worker process.
    """

    def __init__(self, printer: Callable[[], Printer] = Assembler) -> None:
        self.on_ready: Callable[[], None] | None = None
        """Called from the thread when code is ready."""
        self._make_printer = printer
        self._printer: Printer | None = None
        self._lock = threading.Condition()
        self._known: OrderedDict[str, Compiled] = OrderedDict()
        self._wanted: Job | None = None
        self._running: tuple[str, float] | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def get(self, state: str) -> Compiled | None:
        """Return the cached code of a state; None if it is not compiled."""
        with self._lock:
            if state in self._known:
                self._known.move_to_end(state)
            return self._known.get(state)

    def want(self, job: Job) -> None:
        """Request a state to be compiled next; it replaces the request that is waiting."""
        with self._lock:
            if self._is_closed:
                return
            if self._running is not None and self._running[0] == job.schedule.node.id:
                self._wanted = None
                return
            self._wanted = job
            if self._running and time.monotonic() - self._running[1] > PATIENCE_S and self._printer:
                self._printer.cancel()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="compiling", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no compilation is pending; False if that takes longer than `timeout_s`."""
        with self._lock:
            return self._lock.wait_for(lambda: self._thread is None, timeout_s)

    def close(self) -> None:
        """Drop the waiting request, and end the worker process."""
        with self._lock:
            self._wanted, self.on_ready, self._is_closed = None, None, True
            self._lock.notify_all()
            printer, self._printer = self._printer, None
        if printer is not None:
            printer.cancel()
            printer.close()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None
                self._lock.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            compiled = self._compile(job)
            with self._lock:
                # An end on request says nothing of the state: it will be compiled again.
                is_kept = self._wanted is None or isinstance(compiled.assembly, Code)
                if is_kept:
                    self._known[job.schedule.node.id] = compiled
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
                report = self.on_ready if is_kept else None
            if report is not None:
                report()

    def _next(self) -> Job | None:
        """Return the next job; None if there is none, and then the thread ends."""
        with self._lock:
            if self._wanted is not None:
                self._lock.wait_for(lambda: self._is_closed, DELAY_S)
            job, self._wanted = self._wanted, None
            self._running = (job.schedule.node.id, time.monotonic()) if job else None
            if job is None:
                self._thread = None  # whoever wants something from now on starts another
            return job

    def _compile(self, job: Job) -> Compiled:
        try:
            source, func = emit_source(job.schedule, job.args, job.target, job.name)
            llvm = llvm_code(source, func)
        except Exception as error:
            reason = _reason(error)
            return Compiled(reason, reason)
        try:
            return Compiled(llvm, self._assembly(job, source, func))
        except Exception as error:
            return Compiled(llvm, _reason(error))

    def _assembly(self, job: Job, source: Source, func: PrimFunc) -> Code:
        with self._lock:
            if self._is_closed:
                raise UserError(f"compile {job.name}", "the widget is closed")
            self._printer = self._printer or self._make_printer()
            printer = self._printer
        text = printer.assembly(source.text, Options.for_target(job.target), job.name)
        return assembly_code(text, func, job.target.triple)


def _reason(error: Exception) -> Status:
    """Return an error as a status. Bugs are included: only the page shows errors of this thread."""
    if isinstance(error, DLCompilerError):
        return status_of(error)
    return Status(f"compile: {type(error).__name__}: {error}", "error")


def job_of(schedule: Schedule, args: Sequence[Tensor], target: Target, name: str) -> Job:
    """Return a job for a schedule's current state; later steps do not change the job."""
    return Job(schedule.fork("compiled"), tuple(args), target, name)
