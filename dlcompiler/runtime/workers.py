"""Run code that may crash, hang or exhaust memory in worker processes, and return an outcome.

`Worker.call` names an entry point of the other side (`dlcompiler.runtime.serve`), passes JSON
values, bytes and arrays, and returns an `Outcome`. A worker that did not answer is killed; the next
call starts another one. That takes only a fork where the worker answers in children
(`dlcompiler.runtime.fork_server`). POSIX only, so far.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

from dlcompiler.errors import DeviceFault, DeviceUnavailable, MeasurementError
from dlcompiler.runtime import object_cache
from dlcompiler.runtime.fork_server import ENDED
from dlcompiler.runtime.frames import Decoder, Frame, FrameError, encode
from dlcompiler.runtime.serve import SETUP
from dlcompiler.runtime.shared import Array, SharedArrays

Kind = Literal["ok", "error", "timeout", "crashed", "lost"]

#: What starts a worker that compiles, runs and times kernels.
MEASUREMENT_WORKER = (sys.executable, "-P", "-m", "dlcompiler.measurement.worker")

_START_LIMIT_S = 60.0
_EXIT_LIMIT_S = 0.5
_NOTICE_LIMIT_S = 0.3
_STDERR_KEPT_BYTES = 4096

# What a worker inherits of the environment. Libraries of linear algebra would start a thread per
# core each, and reserve memory that counts against the limit.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV")
_INHERITED_PREFIXES = ("CUDA_", "NVIDIA_", "OCL_ICD_", "OPENCL_", "POCL_")
"""Variables that choose devices and their drivers."""
_SET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call, as data."""

    kind: Kind
    """``ok``; ``error``: the entry point raised; ``timeout``: killed at the limit; ``crashed``: the
    process ended; ``lost``: it could not start, or answered nonsense and was killed."""
    seconds: float
    """Time until the outcome was known [s]."""
    value: dict[str, Any] = field(default_factory=dict)
    """What the entry point returned."""
    data: bytes = b""
    """Raw bytes that it returned."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """Copies of the arrays that were asked for as outputs."""
    message: str = ""
    """What went wrong; empty when nothing did."""
    error: str | None = None
    """Name of the exception's class, for ``error``."""
    signal: str | None = None
    """Name of the signal that ended the process, for ``crashed``: ``"SIGSEGV"``."""
    stderr: str = ""
    """End of what the process wrote to standard error."""
    has_started: bool = True
    """Whether there was a process to answer."""

    @property
    def ok(self) -> bool:
        """Whether the call returned a value."""
        return self.kind == "ok"

    def unwrap(self, operation: str) -> dict[str, Any]:
        """Return the value, or raise the error of the call.

        Raises
        ------
        MeasurementError
            The outcome is not ``ok``.
        """
        if self.ok:
            return self.value
        raise MeasurementError(
            operation,
            f"the worker's outcome is {self.kind}",
            got=self.message,
            excerpt=self._tail(),
        )

    def _tail(self) -> str | None:
        return "\n".join(self.stderr.splitlines()[-5:]) or None


class Worker:
    """A process that takes calls, and is replaced when one of them took it down.

    Parameters
    ----------
    command : sequence of str
        What to start; it must call `dlcompiler.runtime.serve.serve`.
    memory_limit_bytes : int, optional
        Limit of the process's address space [byte]; ``None``: none.

    Notes
    -----
    Calls from several threads are taken one at a time. The process starts at the first call, in a
    session of its own, and ends with `close`, with this object, or with this process.
    """

    def __init__(
        self,
        command: Sequence[str] = MEASUREMENT_WORKER,
        memory_limit_bytes: int | None = 4 << 30,
    ) -> None:
        if os.name == "nt":
            raise DeviceUnavailable("start a worker process", "not possible on Windows yet")
        self._command = tuple(command)
        self._memory_limit_bytes = memory_limit_bytes
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self.generation = 0
        """How many processes were started; what one of them held ended with it."""

    def call(
        self,
        entry: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_s: float,
        data: bytes = b"",
        arrays: Mapping[str, Array] | None = None,
        outputs: Sequence[str] = (),
    ) -> Outcome:
        """Call an entry point.

        Parameters
        ----------
        entry : str
            Name of the entry point.
        params : mapping, optional
            JSON values.
        timeout_s : float
            Limit [s]; the process is killed when it has passed. Starting it does not count.
        data : bytes, optional
            Raw bytes, for example the text of a module.
        arrays : mapping of str to array, optional
            Arrays that the entry point may read and write.
        outputs : sequence of str, optional
            Names of the ``arrays`` to read back.

        Returns
        -------
        Outcome

        Raises
        ------
        MeasurementError
            The arguments cannot be sent. All else is an outcome.
        """
        header = {"entry": entry, "params": dict(params or {})}
        with self._lock, SharedArrays(arrays or {}) as shared:
            payload = _payload({**header, "shared": shared.describe()}, data)
            outcome = self._exchange(payload, timeout_s)
            if not outcome.ok:
                return outcome
            return replace(outcome, arrays={name: shared.read(name) for name in outputs})

    def start(self) -> None:
        """Start a process now, unless there is one; if that fails, the next call reports why."""
        with self._lock:
            if self._process is None or not self._process.is_ready():
                self._start()

    def _exchange(self, payload: bytes, timeout_s: float) -> Outcome:
        if self._process is None or not self._process.is_ready():
            failure = self._start()
            if failure is not None:
                return failure
        assert self._process is not None
        outcome = self._process.exchange(payload, timeout_s)
        if not self._process.is_alive():
            self._process = None
        return outcome

    def _start(self) -> Outcome | None:
        """Start a process, or set up its next child; return the failure, or None."""
        self.generation += 1
        if self._process is None or not self._process.is_alive():
            self._process = _Process(self._command)
        params = {"memory_limit_bytes": self._memory_limit_bytes}
        header = {"entry": SETUP, "params": params, "shared": SharedArrays({}).describe()}
        outcome = self._process.exchange(_payload(header), _START_LIMIT_S)
        if outcome.ok:
            self._process.child = outcome.value["pid"]
            return None
        self._process.end()
        self._process = None
        message = f"the worker did not start: {outcome.message}"
        return replace(outcome, kind="lost", message=message, has_started=False)

    def interrupt(self) -> None:
        """End the call that another thread is waiting for; its outcome is ``crashed`` or ``lost``.

        Does nothing when no process is running. The next call starts another one.
        """
        process = self._process
        if process is not None:
            process.interrupt()

    def close(self) -> None:
        """End the process; the next call would start another."""
        with self._lock:
            if self._process is not None:
                self._process.end()
                self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Process:
    """One worker process, from its start to its end."""

    def __init__(self, command: Sequence[str]) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=tempfile.gettempdir(),
            env=_environment(),
            start_new_session=True,
        )
        self._stdin, self._stdout, self._stderr = (
            _nonblocking(pipe)
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        )
        self._decoder = Decoder()
        self._tail = b""
        self._rest = memoryview(b"")
        self._groups = [self._popen.pid]
        self._finalizer = weakref.finalize(self, _kill, self._popen, self._groups, os.getpid())

    @property
    def child(self) -> int | None:
        """Id of the answering process: this one or a child of it; None before it is set up."""
        return self._groups[1] if len(self._groups) > 1 else None

    @child.setter
    def child(self, pid: int | None) -> None:
        self._groups[1:] = [] if pid is None else [pid]

    def is_alive(self) -> bool:
        return self._finalizer.alive and self._popen.poll() is None

    def is_ready(self) -> bool:
        """Tell whether the process is set up and the one that answers is still alive."""
        if self.is_alive() and self.child is not None:
            self._notice_end()
        return self.is_alive() and self.child is not None

    def exchange(self, payload: bytes, timeout_s: float) -> Outcome:
        """Send a request and wait for its answer; on a failure, end the answering process."""
        start, self._tail, self._rest = time.perf_counter(), b"", memoryview(payload)
        try:
            frame = self._converse(start + timeout_s)
            outcome = self._ended() if frame is None else self._answered(frame)
        except TimeoutError:
            outcome = self._stopped(timeout_s)
        except FrameError as error:
            outcome = Outcome("lost", 0.0, message=f"not an answer: {error}")
            self._finalizer()
        except BaseException:
            self._finalizer()  # an answer that comes later would be taken for the next one's
            raise
        if outcome.error == DeviceFault.__name__:
            self._end_child()  # the driver may refuse everything else in its process
        seconds, stderr = time.perf_counter() - start, self._tail.decode(errors="replace")
        return replace(outcome, seconds=seconds, stderr=stderr)

    def interrupt(self) -> None:
        """Kill the process; the thread that waits for its answer detects this and cleans up."""
        if self._popen.poll() is None:
            _kill_groups(self._groups)
            self._popen.wait()  # until then `is_alive` would say yes

    def end(self) -> None:
        """Wait for the process to exit; kill it if it does not."""
        self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_EXIT_LIMIT_S)
        self._finalizer()

    def _notice_end(self) -> None:
        """Read output that arrived between requests: the report that a child has ended."""
        piece = self._stdout.read(1 << 16)
        try:
            self._decoder.feed(piece or b"")
            frame = self._decoder.take()
        except FrameError:
            self._finalizer()
            return
        if frame is not None and ENDED in frame.header:
            self.child = None
        elif piece:
            self._finalizer()  # nothing that anyone asked for

    def _stopped(self, timeout_s: float) -> Outcome:
        """End the process that did not answer in time: only the child, if that is enough."""
        if self.child in (None, self._popen.pid) or self._rest:
            return self._ended(timeout_s)
        self._end_child()
        return Outcome("timeout", 0.0, message=f"no answer within {timeout_s:g} s")

    def _end_child(self) -> None:
        """End the process that answers; if it is not a child of its own, the whole worker."""
        if self.child in (None, self._popen.pid):
            self._finalizer()
            return
        _kill_groups(self._groups[1:])
        end = time.perf_counter() + _NOTICE_LIMIT_S
        try:
            while (frame := self._converse(end)) is not None:
                if ENDED in frame.header:
                    self.child = None
                    return
        except (TimeoutError, FrameError):
            pass
        self._finalizer()

    def _answered(self, frame: Frame) -> Outcome:
        """Return the outcome in a frame: an answer, or the report that a child has ended."""
        if ENDED not in frame.header:
            return _answered(frame)
        self.child = None
        self._keep_tail()
        if self._rest:  # its next child would read the middle of a request
            self._finalizer()
        return _ended_by(int(frame.header[ENDED]))

    def _converse(self, deadline: float) -> Frame | None:
        """Send the rest of the request; return the answer, or ``None`` if none will come."""
        with selectors.DefaultSelector() as selector:
            if self._rest:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while True:
                remaining = deadline - time.perf_counter()
                if remaining <= 0:
                    raise TimeoutError
                ready = {key.fileobj for key, _ in selector.select(remaining)}
                if self._stdin in ready:
                    self._rest = self._write(self._rest)
                    if not self._rest:
                        selector.unregister(self._stdin)
                if self._stderr in ready and not self._keep_tail():
                    selector.unregister(self._stderr)
                if self._stdout in ready:
                    piece = self._stdout.read(1 << 16)
                    if not piece:
                        return None
                    self._decoder.feed(piece)
                    frame = self._decoder.take()
                    if frame is not None:
                        return frame

    def _write(self, rest: memoryview) -> memoryview:
        try:
            return rest[self._stdin.write(rest) or 0 :]
        except BrokenPipeError:
            return rest[:0]  # it has ended: the other pipe tells

    def _keep_tail(self) -> bool:
        """Keep the latest standard error output; return whether more may come."""
        piece = self._stderr.read(1 << 16)
        self._tail = (self._tail + (piece or b""))[-_STDERR_KEPT_BYTES:]
        return piece != b""

    def _ended(self, timeout_s: float | None = None) -> Outcome:
        """End a process that closed its pipe or did not answer in time; return the outcome."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_EXIT_LIMIT_S if timeout_s is None else 0)
        status = self._popen.returncode
        self._keep_tail()
        self._finalizer()
        if status is not None:
            return _ended_by(status)
        if timeout_s is not None:
            return Outcome("timeout", 0.0, message=f"no answer within {timeout_s:g} s")
        return Outcome("lost", 0.0, message="closed its pipe without an answer")


def _ended_by(status: int) -> Outcome:
    """Return the outcome of a process that ended: by a signal if the status is negative."""
    if status >= 0:
        return Outcome("crashed", 0.0, message=f"exited with status {status}, no answer")
    name = signal.Signals(-status).name
    return Outcome("crashed", 0.0, message=f"ended by {name}", signal=name)


def _answered(frame: Frame) -> Outcome:
    """Return the outcome that an answer describes."""
    header = frame.header
    if isinstance(header.get("value"), dict):
        return Outcome("ok", 0.0, header["value"], frame.data)
    if "error" not in header:
        raise FrameError("neither a value nor an error")
    error, message = str(header["error"]), str(header.get("message", ""))
    return Outcome("error", 0.0, message=message, error=error)


def _payload(header: Mapping[str, Any], data: bytes = b"") -> bytes:
    try:
        return encode(Frame(dict(header), data))
    except FrameError as error:
        raise MeasurementError(
            f"call {header['entry']} in a worker", "the request cannot be sent", got=error
        ) from error


def _nonblocking(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _kill_groups(groups: Sequence[int]) -> None:
    """Kill process groups: a child's before its parent's, which would report the child's end."""
    for group in reversed(groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _kill(popen: subprocess.Popen[bytes], groups: Sequence[int], owner: int) -> None:
    """Kill a worker and the processes it started; do nothing in a forked copy of this process."""
    if os.getpid() != owner:
        return
    _kill_groups(groups)
    popen.wait()
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()


def _environment() -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    paths = [os.environ[name] for name in ("PYTHONPATH",) if name in os.environ]
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):
        paths.insert(0, str(root))  # a source tree, installed or not
    inherited |= {**_SET, **object_cache.environment()}
    return {**inherited, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}
