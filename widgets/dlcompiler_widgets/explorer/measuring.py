"""Verify and measure in a worker process, while a background thread waits for it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from dlcompiler import dtypes
from dlcompiler.analysis import work_of
from dlcompiler.errors import MeasurementError, ScheduleError, TargetError
from dlcompiler.ir import For, PrimFunc, walk
from dlcompiler.measurement import RemoteKernel, Verified, numpy_counterpart, verify
from dlcompiler.measurement.ceilings import Ceilings, remote_ceilings
from dlcompiler.measurement.equality import error_text
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.threads import num_threads
from dlcompiler.runtime.timing import Paired, Timing, format_rate, format_ratio, format_seconds
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Node, Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler_widgets.explorer.targets import runs_on_processor

TIME_LIMIT_S = 120.0
MAX_BYTES = 512 << 20
"""Arrays of a kernel that is run here [byte]: an oracle needs several times as much."""
ROUNDS = 9
SLOW_S = 1.0
"""Kernels slower than this [s] are compared in three rounds."""

State = Literal["idle", "running", "cancelling"]

ONE_AT_A_TIME = threading.Lock()
"""Held while something is timed: two measurements at once would disturb each other."""


@dataclass(frozen=True)
class Measured:
    """The time of a kernel, and of NumPy for comparison."""

    timing: Timing
    beside: Paired | None = None
    """Times in alternation with NumPy, which is ``a``; None if no NumPy function does the same."""
    counterpart: str = ""
    """Name of NumPy's function: ``numpy.matmul``, or ``einsum`` with its subscripts."""
    threads: int = 1
    """Number of threads of the kernel and of NumPy; 0 on a device that has its own."""
    target: str = ""
    """Name of the target that the code was made for; empty if it is not known."""

    @property
    def shown(self) -> Timing:
        """The timing from which all shown numbers come: the one beside NumPy, if there is one."""
        return self.timing if self.beside is None else self.beside.b

    @property
    def on(self) -> str:
        """The processor or device that ran it; '' if it is not named."""
        return self.shown.provenance.on

    @property
    def copies(self) -> str:
        """The times of copies between host and device, in words; '' if there are none."""
        return ", ".join(f"{name} {format_seconds(t.median_s)}" for name, t in self.timing.copies)

    @property
    def seconds(self) -> float:
        """Median time of a call [s]."""
        return self.shown.median_s

    def __str__(self) -> str:
        return describe(self)


class Stopwatch(Protocol):
    """Verifies and measures a schedule; `cancel` may be called from another thread.

    One that also has ``ceilings(threads, dtype)``, as `WorkerStopwatch` does, measures the machine
    for the ladder and the roofline, in a thread of its own.
    """

    def verify(self, schedule: Schedule, args: Sequence[Tensor], target: Target) -> Verified:
        """Verify the schedule's kernel, or raise a DLCompilerError."""

    def measure(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> Measured:
        """Measure a call of the schedule's kernel, or raise a DLCompilerError."""

    def cancel(self) -> None:
        """Cancel the running verification or measurement."""


class WorkerStopwatch:
    """Verifies and measures in a worker process of its own, which `cancel` ends."""

    def __init__(self) -> None:
        self._worker = Worker()
        self._machine_worker = Worker()

    def verify(self, schedule: Schedule, args: Sequence[Tensor], target: Target) -> Verified:
        """Run the kernel in the worker, and compare with the oracles."""
        _check_size(args)
        return verify(schedule, args, target=target, timeout_s=TIME_LIMIT_S, worker=self._worker)

    def measure(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> Measured:
        """Generate code here; compile and time it in the worker, in alternation with NumPy."""
        _check_size(args)
        source, func = emit_source(schedule, args, target, name)
        is_here = runs_on_processor(target)
        threads = 0 if not is_here else num_threads() if _is_parallel(func) else 1
        kernel = RemoteKernel(
            source, target, threads=threads or None, worker=self._worker, args=args
        )
        work = work_of(schedule.outputs)
        flops = work.flops or None if work else None
        timing = kernel.time(timeout_s=TIME_LIMIT_S, flops=flops)
        # NumPy's arrays are on this processor: on a device, copies would have to be counted.
        counterpart = numpy_counterpart(args) if is_here else None
        if counterpart is None:
            return Measured(timing, threads=threads, target=target.name)
        rounds = ROUNDS if timing.median_s < SLOW_S else 3
        # Threads of two libraries would take each other's cores: they get time to settle.
        limits = {"rounds": rounds, **({"settle_s": 0.2} if threads > 1 else {})}
        beside = kernel.pair(counterpart, limits=limits, timeout_s=TIME_LIMIT_S, flops=flops)
        return Measured(timing, beside, counterpart, threads, target.name)

    def cancel(self) -> None:
        """End the worker process; the next run starts another one."""
        self._worker.interrupt()

    def ceilings(self, threads: int, dtype: str) -> Ceilings:
        """Measure what the machine can do at most, in another worker."""
        try:
            return remote_ceilings(self._machine_worker, threads, dtype)
        finally:
            self._machine_worker.close()

    def close(self) -> None:
        """End both worker processes."""
        self._worker.interrupt()
        self._machine_worker.interrupt()


@dataclass(frozen=True)
class Certificate:
    """The note on a state whose kernel was verified: with which oracles, for which target."""

    text: str
    target: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Problem:
    """The note on a state whose kernel is wrong, or could not be run: why, and for which target."""

    text: str
    target: str

    def __str__(self) -> str:
        return self.text


Result: TypeAlias = Verified | Measured | Exception | None


class Measuring:
    """Verifies and measures a schedule in a background thread, one run at a time.

    A run verifies each state on the way to a state that is not verified for the target yet, and
    then measures that state: a wrong kernel is not measured. It may measure several states in turn.

    Parameters
    ----------
    stopwatch
        Does the verifications and the measurement.
    report
        Called from the thread with a node, a result, and the name of the target: `Verified` for
        each state, `Measured` for the last one; an error, which ends the run; or None when it was
        cancelled.
    """

    def __init__(self, stopwatch: Stopwatch, report: Callable[[Node, Result, str], None]) -> None:
        self.state: State = "idle"
        self.doing = ""
        """What is being done, in words."""
        self._stopwatch = stopwatch
        self._report = report
        self._thread: threading.Thread | None = None

    def start(self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str) -> bool:
        """Start a run for the schedule's current state; return whether it was started."""
        return self.start_all([schedule], args, target, name)

    def start_all(
        self, schedules: Sequence[Schedule], args: Sequence[Tensor], target: Target, name: str
    ) -> bool:
        """Start a run for the current state of each schedule; return whether it was started."""
        if self.state != "idle":
            return False
        self.state, self.doing = "running", "starting"
        frozen = [schedule.fork("measured") for schedule in schedules]
        self._thread = threading.Thread(
            target=self._run, args=(frozen, args, target, name), name="measuring", daemon=True
        )
        self._thread.start()
        return True

    def cancel(self) -> bool:
        """Cancel the current run; return whether there was one."""
        if self.state != "running":
            return False
        self.state = "cancelling"
        self._stopwatch.cancel()
        return True

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the last result is reported."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(
        self, schedules: Sequence[Schedule], args: Sequence[Tensor], target: Target, name: str
    ) -> None:
        for number, schedule in enumerate(schedules, 1):
            node, result = self._measured(schedule, args, target, name)
            is_cancelled = self.state == "cancelling"
            is_over = is_cancelled or not isinstance(result, Measured) or number == len(schedules)
            if is_over:
                self.state, self.doing = "idle", ""
            self._report(node, None if is_cancelled else result, target.name)
            if is_over:
                return

    def _measured(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> tuple[Node, Result]:
        """Verify and measure a state; return the state that the result is about, and the result."""
        node = schedule.node
        result: Result = None
        try:
            self._verify_way(schedule, args, target)
            self.doing = f"measuring {node.title()}"
            with ONE_AT_A_TIME:
                if self.state == "running":
                    result = self._stopwatch.measure(schedule, args, target, name)
        except _Failed as failed:
            node, result = failed.node, failed.error
        except Exception as error:
            # A bug, too, must reach the page: nobody looks at what a thread prints.
            result = error
        return node, result

    def _verify_way(self, schedule: Schedule, args: Sequence[Tensor], target: Target) -> None:
        """Verify the states on the path to the current one.

        States before it that cannot be lowered, or built for the target, are skipped: a device runs
        nothing before a loop is bound to its threads.
        """
        here = schedule.node
        way = here.path()
        at = schedule.fork("verified")
        for number, node in enumerate(way, 1):
            if self.state != "running":
                return
            if _is_verified(node, target):
                continue
            self.doing = f"verifying {node.title()} ({number} of {len(way)})"
            at.jump(node.id)
            try:
                self._report(node, self._stopwatch.verify(at, args, target), target.name)
            except (ScheduleError, TargetError) as error:
                if node is here:
                    raise _Failed(node, error) from None
            except Exception as error:
                raise _Failed(node, error) from None


def _is_verified(node: Node, target: Target) -> bool:
    """Tell whether a state is verified for a target; code for another target proves nothing."""
    note = node.notes.get("verified")
    return isinstance(note, Certificate) and note.target == target.name


class _Failed(Exception):  # noqa: N818 - not an error of its own: it carries one
    def __init__(self, node: Node, error: Exception) -> None:
        super().__init__(str(error))
        self.node = node
        self.error = error


def describe(measured: Measured) -> str:
    """Return a time with its spread, the rate, and how NumPy compares.

    The ratio is the quotient of the two times in the text, which were measured in alternation.
    """
    timing, beside = measured.shown, measured.beside
    text = f"{format_seconds(timing.median_s)} ± {format_seconds(timing.spread_s)}"
    if timing.gflops is not None:
        text += f", {format_rate(timing.gflops)} GFLOP/s"
    if not measured.threads:
        text += f" on {measured.on}" if measured.on else ""
        text += f"; {measured.copies}" if measured.copies else ""
    if beside is None:
        return text
    threads = "1 thread" if measured.threads == 1 else f"{measured.threads} threads"
    return (
        f"{text}; {measured.counterpart} {format_seconds(beside.a.median_s)}: "
        f"{format_ratio(beside.a.median_s / timing.median_s)} its speed, {threads} each"
    )


def certify(verified: Verified) -> str:
    """Return as text: ``against numpy and interpreter: largest error 31 % of the tolerance``."""
    return f"against {' and '.join(verified.oracles)}: {error_text(verified.worst)}"


def _check_size(args: Sequence[Tensor]) -> None:
    """Refuse arrays that are too large for the memory of the notebook."""
    size = 0
    for tensor in args:
        if not all(isinstance(extent, int) for extent in tensor.shape):
            raise MeasurementError(
                f"run with {tensor.name}", "its shape has symbols", got=str(tensor.shape),
                hint="give the symbols numbers: te.specialize",
            )  # fmt: skip
        size += math.prod(tensor.static_shape) * dtypes.to_numpy(tensor.dtype).itemsize
    if size > MAX_BYTES:
        raise MeasurementError(
            "run a kernel", "its arrays are too large for a run from a notebook",
            got=f"{size / 1e9:.1f} GB", expected=f"at most {MAX_BYTES >> 20} MiB",
            hint="dlcompiler.measure(kernel, arrays) has no such limit",
        )  # fmt: skip


def _is_parallel(func: PrimFunc) -> bool:
    return any(isinstance(node, For) and node.kind == "parallel" for node in walk(func.body))
