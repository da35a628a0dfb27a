"""Threads of a process are kept off its caller's core, and all is as before afterwards."""

import os
import threading
import time

import pytest

from dlcompiler.bench import placing
from dlcompiler.measurement.fma_peak import FMALoop

linux = pytest.mark.skipif(not placing._THREADS.is_dir(), reason="reads /proc")


@linux
def test_the_caller_has_a_core_of_its_own():
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    allowed = os.sched_getaffinity(0)
    found = []

    def caller():
        with placing.caller_apart():
            found.extend((os.sched_getaffinity(0), os.sched_getaffinity(other.native_id)))
        found.extend((os.sched_getaffinity(0), os.sched_getaffinity(other.native_id)))

    thread = threading.Thread(target=caller)
    thread.start()
    thread.join()
    stop.set()
    other.join()
    home, rest, *after = found
    assert len(home) == 1
    assert not home & rest or len(allowed) == 1
    assert after == [allowed, allowed]


def test_waiting_ends_although_a_thread_computes():
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    start = time.perf_counter()
    placing.wait_until_quiet()
    stop.set()
    thread.join()
    assert time.perf_counter() - start < 60


def test_the_peak_runs_on_several_threads():
    loop = FMALoop(2)
    loop()
    assert loop.flops % (2 * FMALoop(1).flops) == 0
