"""The pool behind ``parallel`` loops: simple and right; a faster one can take its place.

Machine code calls ``void dlc_parallel_for(ptr body, ptr env, i64 begin, i64 end)``; the loop's
iterations run as ``void body(i64 begin, i64 end, ptr env)``, once per thread, on neighbouring
pieces of the range. ctypes releases the interpreter's lock around ``body``.

- Regions never wait for an idle thread: the calling thread takes pieces too, and returns when the
  last piece is done. So many Python threads may call at once.
- A region inside a region runs serially.
- Kernels with regions do not run in the main thread (`run`): Python delivers Ctrl-C there, and
  ctypes drops an exception that hits a callback, which would leave a region half done.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from dlcompiler.errors import CallError, DeviceUnavailable
from dlcompiler.target.detect import available_cores

#: Name by which machine code calls `parallel_for_address`.
PARALLEL_FOR = "dlc_parallel_for"

_Body = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class _State(threading.local):
    """What one thread knows of the regions that it is in."""

    inside: bool = False
    """Whether it is running a piece of a region."""
    error: BaseException | None = None
    """First error in a callback; machine code cannot carry it, so `run` raises it afterwards."""


class _Region:
    """One parallel loop on its way: pieces to take, and a latch that opens after the last one."""

    def __init__(self, body: int, env: int | None, bounds: list[int]) -> None:
        self._body, self._env, self._bounds = _Body(body), env, bounds
        self._pieces = len(bounds) - 1
        self._taken = 0
        self._done = 0
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self._error: BaseException | None = None

    def work(self) -> None:
        """Run pieces until none is left; one that came late touches nothing of the caller's."""
        while (piece := self._take()) is not None:
            outer, _state.inside = _state.inside, True
            try:
                self._body(self._bounds[piece], self._bounds[piece + 1], self._env)
            finally:
                _state.inside = outer
                self._finish()

    def wait(self) -> None:
        """Return when every piece has run; raise the first error of any."""
        self._finished.wait()
        if self._error is not None:
            raise self._error

    def _take(self) -> int | None:
        with self._lock:
            if self._taken == self._pieces:
                return None
            self._taken += 1
            return self._taken - 1

    def _finish(self) -> None:
        error, _state.error = _state.error, None
        with self._lock:
            self._error = self._error or error
            self._done += 1
            if self._done == self._pieces:
                self._finished.set()


class _Pool:
    """Daemon threads that run tasks in the order in which they came."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def grow(self, count: int) -> bool:
        """Start threads until there are ``count``; tell whether there is at least one.

        A system that grants fewer threads, or none at exit, makes regions slower, not wrong.
        """
        with self._lock, contextlib.suppress(RuntimeError):
            while len(self._threads) < count:
                thread = threading.Thread(target=self._serve, name="dlcompiler", daemon=True)
                thread.start()
                self._threads.append(thread)
        return bool(self._threads)

    def submit(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


class _Call:
    """A kernel that runs in the pool while the main thread waits."""

    def __init__(self, kernel: Callable[..., object], addresses: list[Any], keep: object) -> None:
        self._kernel, self._addresses, self._keep = kernel, addresses, keep
        self._finished = threading.Event()
        self._error: BaseException | None = None

    def work(self) -> None:
        try:
            _run_here(self._kernel, self._addresses)
        except BaseException as error:
            self._error = error
        finally:
            self._finished.set()

    def wait(self) -> None:
        """Wait for the kernel even through Ctrl-C, for it writes the caller's arrays."""
        interrupt: BaseException | None = None
        while not self._finished.is_set():
            try:
                self._finished.wait()
            except BaseException as error:
                interrupt = interrupt or error
        failure = interrupt or self._error
        if failure is not None:
            raise failure


_state = _State()
_pool = _Pool()
_count: int | None = None
_is_forked_child = False


def num_threads() -> int:
    """Return the number of threads that a parallel loop uses: by default, the cores allowed."""
    return _default_count() if _count is None else _count


@cache
def _default_count() -> int:
    return available_cores()  # reads files: 0.1 ms


def set_num_threads(count: int | None) -> None:
    """Set the number of threads of parallel loops, in this process.

    Parameters
    ----------
    count : int or None
        At least 1; ``None`` goes back to the number of cores.

    Raises
    ------
    CallError
        The number is not positive.
    """
    global _count
    is_number = isinstance(count, int) and not isinstance(count, bool)
    if count is not None and (not is_number or count < 1):
        raise CallError(
            "set_num_threads",
            "not a number of threads",
            got=repr(count),
            expected="1 or more, or None",
        )
    _count = count


def run(kernel: Callable[..., object], addresses: list[Any], keep: object) -> None:
    """Run a kernel that has parallel loops.

    Parameters
    ----------
    kernel : callable
        Machine code.
    addresses : list
        Its arguments.
    keep : object
        What must live until the kernel has returned.
    """
    if threading.current_thread() is not threading.main_thread() or not _pool.grow(num_threads()):
        _run_here(kernel, addresses)
        return
    call = _Call(kernel, addresses, keep)
    _pool.submit(call.work)
    call.wait()


def refuse_after_fork(operation: str) -> None:
    """Refuse a kernel with parallel loops in a forked child, before its code runs.

    Raises
    ------
    DeviceUnavailable
        This process is a fork of the one that loaded this module.
    """
    if _is_forked_child:
        raise DeviceUnavailable(
            operation,
            "a function with parallel loops cannot run in a forked child",
            because="fork copies one thread only: those of the pool are not here",
            hint="start processes by 'spawn' or 'forkserver', or build without parallel",
        )


def parallel_for_address() -> int:
    """Return the address of ``dlc_parallel_for``."""
    address = ctypes.cast(_entry, ctypes.c_void_p).value
    assert address is not None
    return address


def _run_here(kernel: Callable[..., object], addresses: list[Any]) -> None:
    _state.error = None
    kernel(*addresses)
    error, _state.error = _state.error, None
    if error is not None:
        raise error


def _parallel_for(body: int, env: int | None, begin: int, end: int) -> None:
    """Run a region. Nothing may leave here by an exception: ctypes would only print it."""
    try:
        _run_region(body, env, begin, end)
    except BaseException as error:
        _state.error = _state.error or error


def _run_region(body: int, env: int | None, begin: int, end: int) -> None:
    extent = end - begin
    if extent <= 0:
        return
    pieces = 1 if _state.inside else min(num_threads(), extent)
    if pieces == 1:
        _Body(body)(begin, end, env)
        return
    region = _Region(body, env, [begin + extent * i // pieces for i in range(pieces + 1)])
    if _pool.grow(num_threads()):
        for _ in range(pieces - 1):
            _pool.submit(region.work)
    region.work()
    region.wait()


def _after_fork() -> None:
    global _is_forked_child
    _is_forked_child = True


_entry = _Entry(_parallel_for)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
