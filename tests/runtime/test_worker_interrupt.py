"""A call that another thread waits for can be ended."""

import sys
import threading
import time

import pytest

from dlcompiler.runtime.workers import Worker

CHILD = """
import time
from dlcompiler.runtime.serve import serve
serve({"sleep": lambda r: time.sleep(1000), "echo": lambda r: {}})
"""


@pytest.fixture
def worker():
    with Worker((sys.executable, "-c", CHILD)) as started:
        yield started


def test_the_waiting_call_ends_and_the_next_one_works(worker):
    assert worker.call("echo", timeout_s=60).ok
    outcomes = []
    waiting = threading.Thread(
        target=lambda: outcomes.append(worker.call("sleep", timeout_s=100)), daemon=True
    )
    waiting.start()
    time.sleep(0.05)
    start = time.perf_counter()
    worker.interrupt()
    waiting.join(30)
    assert time.perf_counter() - start < 30
    assert (outcomes[0].kind, outcomes[0].signal) == ("crashed", "SIGKILL")
    assert worker.call("echo", timeout_s=60).ok


def test_without_a_process_nothing_happens(worker):
    worker.interrupt()
    assert worker.call("echo", timeout_s=60).ok
    worker.interrupt()
    worker.interrupt()
    assert worker.call("echo", timeout_s=60).ok
