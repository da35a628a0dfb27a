"""Thread pool of parallel loops: helper threads, and the cores that they run on.

A helper is a Python daemon thread that calls ``dlc_pool_helper`` (``native/thread_pool.ll``)
through ctypes, which releases the interpreter's lock. It returns when the pool shrinks. Between
launches a helper spins for `SPIN_S`, if each thread has a core, and then sleeps in the system.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache

from dlcompiler.runtime import native
from dlcompiler.target.detect import available_cores

SPIN_S = 50e-6
"""Time that an idle helper spins before it sleeps [s]: as long as waking one takes."""
_JOIN_S = 1.0

Mask = frozenset[int]


class ThreadPool:
    """The helpers of this process, and the cores that they may use.

    On Linux, a helper never runs on the caller's core: woken there, it would wait for the caller.
    With as many threads as cores, each helper is pinned to a core of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._helpers: list[threading.Thread] = []
        self._asked = 0
        self._is_closed = False
        self._allowed: Mask = frozenset()
        self._masks: list[Mask] = []
        self._home = -1

    @property
    def helpers(self) -> tuple[threading.Thread, ...]:
        """The threads of the pool; the caller's is not among them."""
        return tuple(self._helpers)

    def prepare(self, threads: int) -> None:
        """Resize the pool to a number of threads, the caller's among them.

        Helpers are moved away from the caller's core. If the system grants fewer threads, launches
        are slower, not wrong. At exit the pool has no helpers.
        """
        if threads - 1 != self._asked:
            self._resize(min(threads, native.MAX_THREADS) - 1, threads - 1)
        if self._masks and _current_cpu() != self._home:
            self._move()

    def stop(self) -> None:
        """End all helpers for good; wait at most `_JOIN_S` for those that execute a chunk."""
        self._is_closed = True
        if self._helpers:
            self._resize(0, 0)

    def forget(self) -> None:
        """Forget all helpers, in a forked child: fork copies only the calling thread."""
        self._lock = threading.RLock()
        self._helpers, self._masks, self._asked = [], [], 0

    def _resize(self, count: int, asked: int) -> None:
        with self._lock:
            if asked == self._asked:
                return
            count = 0 if self._is_closed else count
            spin_s = SPIN_S if count < available_cores() else 0
            self._tell(count, spin_s)
            surplus, self._helpers = self._helpers[count:], self._helpers[:count]
            end = time.monotonic() + _JOIN_S
            for thread in surplus:
                thread.join(max(0.0, end - time.monotonic()))
            self._grow(count)
            if len(self._helpers) != count:
                self._tell(len(self._helpers), spin_s)
            self._asked = asked
            self._place()

    def _tell(self, count: int, spin_s: float) -> None:
        _function("dlc_pool_resize", ctypes.c_int32, ctypes.c_int64)(count, round(spin_s * 1e9))

    def _grow(self, count: int) -> None:
        for number in range(len(self._helpers), count):
            thread = threading.Thread(
                target=_function("dlc_pool_helper", ctypes.c_int32),
                args=(number,),
                name=f"dlcompiler-{number}",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError:  # no more threads from the system, or the interpreter exits
                return
            self._helpers.append(thread)

    def _place(self) -> None:
        """Pin each helper to its cores, which depend on the caller's core."""
        if not hasattr(os, "sched_setaffinity"):
            return
        self._allowed = _allowed()
        self._home = _current_cpu()
        masks = placement(sorted(self._allowed), self._home, len(self._helpers))
        for thread, mask in zip(
            self._helpers, masks or [self._allowed] * len(self._helpers), strict=True
        ):
            _pin(thread, mask)
        self._masks = masks

    def _move(self) -> None:
        """Move helpers off the caller's new core and onto its old one."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            cpu = _current_cpu()
            if _allowed() != self._allowed:
                self._place()
            elif cpu in self._allowed:
                for number, (thread, mask) in enumerate(
                    zip(self._helpers, self._masks, strict=True)
                ):
                    if cpu in mask:
                        self._masks[number] = mask - {cpu} | {self._home}
                        _pin(thread, self._masks[number])
                self._home = cpu
        finally:
            self._lock.release()


def placement(allowed: Sequence[int], caller: int, helpers: int) -> list[Mask]:
    """Return the cores that each helper may use; nothing if there are fewer cores than threads.

    Parameters
    ----------
    allowed : sequence of int
        Cores that the process may use.
    caller : int
        The core that the caller runs on.
    helpers : int
        The number of helpers.

    Examples
    --------
    >>> [sorted(mask) for mask in placement(range(4), caller=1, helpers=3)]
    [[0], [2], [3]]
    >>> [sorted(mask) for mask in placement(range(4), caller=1, helpers=2)]
    [[0, 2, 3], [0, 2, 3]]
    >>> placement(range(4), caller=1, helpers=4)
    []
    """
    others = [cpu for cpu in allowed if cpu != caller]
    if helpers > len(others) or len(others) == len(allowed):
        return []
    if helpers == len(others):
        return [frozenset({cpu}) for cpu in others]
    return [frozenset(others)] * helpers


def _allowed() -> Mask:
    """Return the cores that the process may use: those of its main thread, whoever calls this."""
    return frozenset(os.sched_getaffinity(os.getpid()))


def _pin(thread: threading.Thread, mask: Mask) -> None:
    """Restrict a thread to some cores, if the system allows it."""
    with contextlib.suppress(OSError):  # the thread has ended, or the process lost these cores
        os.sched_setaffinity(thread.native_id or 0, mask)


@cache
def _function(name: str, *types: type) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *types)(native.address(name))


def _no_cpu() -> int:
    return -1


# Through PyDLL, which keeps the interpreter's lock: 0.1 µs.
_current_cpu: Callable[[], int] = getattr(ctypes.PyDLL(None), "sched_getcpu", _no_cpu)

THREAD_POOL = ThreadPool()
"""The thread pool of this process."""

atexit.register(THREAD_POOL.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREAD_POOL.forget)
