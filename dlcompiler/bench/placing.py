"""Control on which cores threads of other libraries run, and wait until they sleep."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Set
from pathlib import Path

_THREADS = Path("/proc/self/task")

_STEP_S = 10e-3  # the clock of a thread on another core stands still between ticks of 1 to 4 ms
_BUSY = 0.25
_LONGEST_S = 0.3


def wait_until_quiet() -> None:
    """Wait until no thread of this process computes, or for 0.3 s at most.

    OpenBLAS's threads spin for about 0.1 s after a call, those of OpenMP and of ONNX Runtime for
    some milliseconds. The CPU time of the process shows it.
    """
    end = time.perf_counter() + _LONGEST_S
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(_STEP_S)
        if time.process_time() - before < _BUSY * _STEP_S:
            return


@contextlib.contextmanager
def caller_apart() -> Iterator[None]:
    """Pin this thread to one core, and keep all other threads of this process off it.

    The main thread is not moved: it waits, and its cores are read as those of the process.
    """
    if not _THREADS.is_dir():
        yield
        return
    allowed = os.sched_getaffinity(0)
    home, *rest = sorted(allowed)
    others = [int(entry.name) for entry in _THREADS.iterdir()]
    others = [number for number in others if number not in (os.getpid(), threading.get_native_id())]
    _place(others, set(rest) or allowed)
    os.sched_setaffinity(0, {home})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        _place(others, allowed)


def _place(numbers: list[int], cores: Set[int]) -> None:
    for number in numbers:
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(number, cores)
