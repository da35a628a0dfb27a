"""Stop and Ctrl-C while a kernel runs that takes ten seconds (W6).

Costs about 20 s where the machine is not busy.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dlcompiler.autotune import RecordStore

PROGRAM = Path(__file__).with_name("interrupted_run.py")
TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Return of each process that is no zombie its parent and its seconds of work."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            fields = (place / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(place.name)] = (int(fields[1]), int(fields[11]) / TICKS)
    return found


def descendants(of):
    """Return the processes that come from one, with their seconds of work."""
    known = processes()
    found, new = {}, {of}
    while new:
        new = {number for number, (parent, _) in known.items() if parent in new}
        found |= {number: known[number][1] for number in new}
    return found


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
        wait_until(lambda: max(descendants(child.pid).values(), default=0.0) > 1.0, 60)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def end_of(child, folder, workers, asked):
    said = json.loads(child.stdout.readline())
    wait_until(lambda: not workers & set(processes()), max(1.0 - time.perf_counter() + asked, 0.1))
    assert not descendants(child.pid)
    with sqlite3.connect(folder / "records.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with RecordStore(folder / "records.db") as store:
        assert len(store) == said["trials"]
    return said


@pytest.mark.alone
def test_stop_answers_at_once_and_the_worker_is_gone_within_a_second(started, folder):
    child = started("stop")
    workers = set(descendants(child.pid))
    asked = time.perf_counter()
    child.stdin.write("stop\n")
    child.stdin.flush()
    said = end_of(child, folder, workers, asked)
    assert said["state"] == "stopped"
    assert said["answered"] < 0.2
    assert said["ended"] < 1.0


@pytest.mark.alone
def test_ctrl_c_ends_a_blocking_run_and_the_worker_is_gone_within_a_second(started, folder):
    child = started("block")
    workers = set(descendants(child.pid))
    asked = time.perf_counter()
    child.send_signal(signal.SIGINT)
    said = end_of(child, folder, workers, asked)
    assert said["state"] == "stopped"
