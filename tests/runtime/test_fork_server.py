"""Workers that answer in children: a crash or a hang costs a fork, and leaves nothing behind."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.runtime.workers import Worker
from tests.processes import ends

CHILD = """
import ctypes, os, subprocess, sys, time
import numpy as np
from dlcompiler.runtime.fork_server import serve_in_children
from dlcompiler.runtime.serve import Answer

def family(request):
    child = subprocess.Popen(["sleep", "1000"])
    print(child.pid, file=sys.stderr, flush=True)
    time.sleep(1000)

def half(request):
    os.write(4, b"\\0\\0\\0\\7")
    os.abort()

serve_in_children({
    "echo": lambda r: {"params": r.params},
    "bytes": lambda r: Answer({"n": len(r.data)}, r.data[::-1]),
    "crash": lambda r: ctypes.string_at(0),
    "half": half,
    "leave": lambda r: os._exit(r.params["status"]),
    "hang": lambda r: time.sleep(1000),
    "family": family,
    "eat": lambda r: {"n": len(np.ones(r.params["bytes"], np.uint8))},
    "pid": lambda r: {"pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0)},
})
"""


@pytest.fixture(scope="module")
def worker():
    with Worker((sys.executable, "-c", CHILD)) as started:
        assert started.call("echo", timeout_s=60).ok
        yield started


def ids(worker):
    return worker.call("pid", timeout_s=10).value


def test_raw_bytes_come_back(worker):
    outcome = worker.call("bytes", data=b"abc" * 10**6, timeout_s=10)
    assert outcome.value == {"n": 3 * 10**6}
    assert outcome.data == b"cba" * 10**6


def test_a_crash_costs_a_fork(worker):
    before, generation = ids(worker), worker.generation
    outcome = worker.call("crash", timeout_s=10)
    assert (outcome.kind, outcome.message) == ("crashed", "ended by SIGSEGV")
    start = time.perf_counter()
    after = ids(worker)
    print(f"the next call was answered after {1e3 * (time.perf_counter() - start):.0f} ms")
    assert after["parent"] == before["parent"], "the fork server is still there"
    assert after["pid"] != before["pid"]
    assert after["group"] == after["pid"]
    assert worker.generation == generation + 1


def test_a_hang_ends_at_the_limit_and_costs_a_fork(worker):
    before = ids(worker)
    outcome = worker.call("hang", timeout_s=0.3)
    assert (outcome.kind, outcome.message) == ("timeout", "no answer within 0.3 s")
    assert outcome.seconds >= 0.3
    assert ids(worker)["parent"] == before["parent"]
    assert ends(before["pid"])


@pytest.mark.parametrize("status", [0, 7])
def test_a_child_that_leaves_without_an_answer(worker, status):
    outcome = worker.call("leave", {"status": status}, timeout_s=10)
    assert outcome.kind == "crashed"
    assert outcome.message == f"exited with status {status}, no answer"
    assert worker.call("echo", timeout_s=10).ok


def test_what_a_hanging_child_started_ends_with_it(worker):
    outcome = worker.call("family", timeout_s=0.5)
    assert outcome.kind == "timeout"
    assert ends(int(outcome.stderr.split()[-1]))


def test_half_an_answer_is_lost(worker):
    outcome = worker.call("half", timeout_s=2)
    assert outcome.kind in ("lost", "timeout")
    assert worker.call("echo", timeout_s=10).ok


def test_a_child_killed_while_idle_is_replaced(worker):
    for _ in range(3):
        before = ids(worker)
        os.kill(before["pid"], signal.SIGKILL)
        assert ends(before["pid"])
        time.sleep(0.1)
        after = ids(worker)
        assert (after["parent"], after["pid"] != before["pid"]) == (before["parent"], True)


def test_a_killed_fork_server_takes_its_child_with_it(worker):
    before = ids(worker)
    os.kill(before["parent"], signal.SIGKILL)
    assert ends(before["pid"])
    assert worker.call("echo", timeout_s=10).ok


def test_memory_is_limited_in_each_child():
    with Worker((sys.executable, "-c", CHILD), memory_limit_bytes=1 << 30) as small:
        for _ in range(2):
            outcome = small.call("eat", {"bytes": 4 << 30}, timeout_s=10)
            assert outcome.error in ("MemoryError", "_ArrayMemoryError")
            assert small.call("crash", timeout_s=10).kind == "crashed"


def test_an_interrupt_and_a_close_end_all(worker):
    before = ids(worker)
    worker.interrupt()
    assert ends(before["pid"])
    assert ends(before["parent"])
    before = ids(worker)
    worker.close()
    assert ends(before["pid"])
    assert ends(before["parent"])


@pytest.mark.campaign
def test_no_process_and_no_file_is_left_after_many_crashes(worker):
    ids(worker)
    files = len(os.listdir("/proc/self/fd"))
    start = time.perf_counter()
    for _ in range(100):
        worker.call("crash", timeout_s=10)
    print(f"{1e3 * (time.perf_counter() - start) / 100:.1f} ms for a crash and the next child")
    parent = ids(worker)["parent"]
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    assert len(children) == 1
    assert len(os.listdir("/proc/self/fd")) == files
    np.testing.assert_equal(worker.call("echo", {"n": 1}, timeout_s=10).value["params"]["n"], 1)
