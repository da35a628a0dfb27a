"""Stop and Ctrl-C during a kernel that takes ten seconds: the run ends without waiting for it.

Where the machine is not busy, the answer takes milliseconds and the end less than a second.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dlcompiler.autotune import RecordStore
from tests.processes import descendants, processes

PROGRAM = Path(__file__).with_name("interrupted_run.py")
ANSWER_S, END_S = 2.0, 5.0
"""On a busy machine [s]; there, the kernel takes longer than ten."""


def wait_until(condition, limit_s):
    end = time.perf_counter() + limit_s
    while not condition():
        assert time.perf_counter() < end, "it never came"
        time.sleep(0.02)


@pytest.fixture
def started(folder):
    """Start the program; return it when a worker has been busy with a kernel for a while."""
    children = []

    def start(how):
        child = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder / "records.db"), how],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        children.append(child)
        assert child.stdout.readline() == "started\n"
        wait_until(lambda: max(descendants(child.pid).values(), default=0.0) > 1.0, 300)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def end_of(child, folder, workers, asked):
    said = json.loads(child.stdout.readline())
    rest_s = END_S - time.perf_counter() + asked
    wait_until(lambda: not workers & set(processes()), max(rest_s, 0.1))
    assert not descendants(child.pid)
    with sqlite3.connect(folder / "records.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with RecordStore(folder / "records.db") as store:
        assert len(store) == said["trials"]
    return said


@pytest.mark.campaign
def test_stop_answers_at_once_and_waits_for_no_kernel(started, folder):
    child = started("stop")
    workers = set(descendants(child.pid))
    asked = time.perf_counter()
    child.stdin.write("stop\n")
    child.stdin.flush()
    said = end_of(child, folder, workers, asked)
    assert said["state"] == "stopped"
    assert said["answered"] < ANSWER_S
    assert said["ended"] < END_S


@pytest.mark.campaign
def test_ctrl_c_ends_a_blocking_run_and_waits_for_no_kernel(started, folder):
    child = started("block")
    workers = set(descendants(child.pid))
    asked = time.perf_counter()
    child.send_signal(signal.SIGINT)
    said = end_of(child, folder, workers, asked)
    assert said["state"] == "stopped"
