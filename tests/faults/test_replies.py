"""Workers that use up memory, or send too much, nonsense or nothing: the others are measured.

Costs about 10 s.
"""

import contextlib
import os
import signal
import sys
import threading
import time

import pytest

from dlcompiler.errors import MeasurementError, OutOfMemory
from dlcompiler.measurement.candidates import Ceiling
from tests.faults.candidates import GOOD, job, kernel, measured, one, open_bench
from tests.faults.test_hangs import descendants
from tests.processes import has_ended

MISBEHAVING = """
import os, sys, time
import numpy as np
from dlcompiler.measurement import checked, worker

def write(data):
    for fd in range(3, 9):
        try:
            if not os.get_blocking(fd) is None and os.readlink(f"/proc/self/fd/{fd}")[:4] == "pipe":
                os.write(fd, data)
        except OSError:
            pass

def flood(request):
    for _ in range(1000):
        os.write(2, b"x" * 65536)

FAULTS = {
    "flood": flood,
    "eat": lambda request: np.ones(64 << 30, np.uint8),
    "leave": lambda request: os._exit(0),
    "garbage": lambda request: (write(b"nonsense" * 99), time.sleep(0.2), os._exit(0)),
    "truncated": lambda request: (write(b"\\0\\0\\0\\x40\\0\\0\\0\\0\\0\\0\\0\\0{"), os._exit(0)),
    "huge": lambda request: (write(b"\\xff" * 12), time.sleep(1000)),
    "raise": lambda request: 1 // 0,
    "close": lambda request: (os.closerange(3, 20), time.sleep(1000)),
}

def candidate(self, request):
    for message in request.params["interface"]["messages"]:
        FAULTS[message](request)
    return measure(self, request)

measure = checked.CheckedKernels.candidate
checked.CheckedKernels.candidate = candidate
worker.main()
"""
WANTED = {
    "flood": ("ok", "run timeout"),
    "eat": ("out of memory",),
    "leave": ("crashed",),
    "garbage": ("crashed",),
    "truncated": ("crashed", "run timeout"),
    "huge": ("crashed",),
    "raise": ("build error",),
    "close": ("crashed", "run timeout"),
}


def memory_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.fixture(scope="module")
def bench():
    command = (sys.executable, "-c", MISBEHAVING)
    with open_bench(ceiling=Ceiling(20.0, 3.0), command=command) as opened:
        assert one(opened).outcome == "ok"
        yield opened


STATUS = GOOD.replace("ptr %C)", "ptr %C, ptr %status)")


@pytest.mark.campaign
@pytest.mark.parametrize("fault", WANTED)
def test_the_next_candidates_are_measured(bench, fault):
    before = memory_mb()
    start = time.perf_counter()
    good, bad, *others = measured(bench, [job(), job(STATUS, [fault]), job(), job(), job()])
    print(f"{bad.outcome}: {bad.message[:60]!r} after {bad.run_s:.2f} s", end="")
    assert bad.outcome in WANTED[fault]
    assert {result.outcome for result in (good, *others)} == {"ok"}
    assert memory_mb() - before < 50, "what a worker writes is not kept"
    assert time.perf_counter() - start < 60


def test_a_kernel_that_gets_no_memory_is_out_of_memory():
    text = kernel(
        "  %p = call ptr @malloc(i64 68719476736)\n  %none = icmp eq ptr %p, null\n"
        "  br i1 %none, label %fail, label %go\nfail:\n  store i64 1, ptr %status\n  ret void\n"
        "go:\n  store volatile i8 1, ptr %p\n  ret void"
    ).replace("ptr %C)", "ptr %C, ptr %status)", 1)
    with open_bench() as bench:
        result = one(bench, text, [f"{OutOfMemory.PROBLEM} for temporaries"])
        assert result.outcome == "out of memory"
        assert one(bench).outcome == "ok"


def test_a_compiler_that_gets_no_memory_is_out_of_memory():
    lines = "\n".join(f"  store volatile i32 {n}, ptr %C" for n in range(400_000))
    with open_bench(ceiling=Ceiling(30.0, 20.0, memory_bytes=400 << 20)) as bench:
        small = one(bench)
        result = one(bench, kernel(f"{lines}\n  ret void"))
        print(f"{result.outcome}: {result.message[:100]!r}", end="")
        assert small.outcome == "ok"
        assert result.outcome == "out of memory"
        assert one(bench).outcome == "ok"


def test_a_worker_killed_with_sigkill_is_replaced():
    with open_bench() as bench:
        assert one(bench).outcome == "ok"
        for _ in range(3):
            killed = descendants(os.getpid())
            for pid in killed:
                kill(pid)
            end = time.perf_counter() + 30
            while not all(map(has_ended, killed)) and time.perf_counter() < end:
                time.sleep(0.01)
            assert one(bench).outcome == "ok"


@pytest.mark.campaign
def test_a_worker_killed_in_the_middle_costs_one_candidate():
    with open_bench() as bench:
        assert one(bench).outcome == "ok"
        timer = threading.Timer(0.2, lambda: [kill(n) for n in descendants(os.getpid())])
        timer.start()
        results = measured(bench, [job()] * 60)
        timer.join()
        lost = [result for result in results if result.outcome != "ok"]
        print(f"{len(lost)} lost of 60", end="")
        assert len(lost) <= 2, "at most one that was built, and one that ran"
        assert all(result.outcome == "crashed" for result in lost)
        assert all("SIGKILL" in result.message for result in lost)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_workers_that_never_start_end_the_run_with_a_reason():
    with (
        open_bench(command=(sys.executable, "-c", "1/0")) as bench,
        pytest.raises(MeasurementError, match="the worker did not start"),
    ):
        one(bench)
