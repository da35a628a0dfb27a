"""Run calls at once, each in a thread that is pinned to a core of its own."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence


def run_together(calls: Sequence[Callable[[], object]]) -> None:
    """Run calls at once: the first in this thread, the others in new ones; wait for all.

    Each thread is pinned to a core, because the system may keep a new thread on its creator's core.
    A single call runs in this thread, which is not pinned.
    """
    first, *others = calls
    if not others:
        first()
        return
    cores = _allowed_cores()
    threads = [
        threading.Thread(target=_on_core, args=(cores[number % len(cores)], call))
        for number, call in enumerate(others, start=1)
    ]
    with _pinned(cores[0]):
        for thread in threads:
            thread.start()
        first()
        for thread in threads:
            thread.join()


def _on_core(core: int | None, call: Callable[[], object]) -> None:
    with _pinned(core):
        call()


def _allowed_cores() -> list[int | None]:
    """Return the cores that this thread may use, if the system has such a list."""
    return [*sorted(os.sched_getaffinity(0))] if hasattr(os, "sched_getaffinity") else [None]


@contextlib.contextmanager
def _pinned(core: int | None) -> Iterator[None]:
    """Pin this thread to one core."""
    if core is None:
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
