"""A thousand rounds of candidates, some of which crash, without growth of anything.

Costs about 20 s on an idle machine, and the share of it that is asked for (`tests/share.py`).
"""

import gc
import os
import threading
from pathlib import Path

import pytest

from dlcompiler.runtime.sampling import Effort
from tests.faults.candidates import job, kernel, measured, open_bench
from tests.faults.test_hangs import descendants
from tests.share import share_of

pytestmark = pytest.mark.campaign(whole_file=True)

CRASH = kernel("  store volatile i32 1, ptr inttoptr (i64 16 to ptr)\n  ret void")
ROUNDS = share_of(1000, at_least=200)
EACH = ROUNDS // 10
"""Rounds from one look at this process to the next."""
LEAST_LEAK_MB = 0.016
"""What a round may keep."""
ONE_CALL = Effort(least=1, most=1)


def memory_mb(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def state():
    gc.collect()
    pids = [os.getpid(), *descendants(os.getpid())]
    return {
        "processes": len(pids),
        "threads": threading.active_count(),
        "files": sum(map(open_files, pids)),
        "memory": sum(map(memory_mb, pids)),
    }


def test_many_rounds_leave_nothing_behind():
    before = set(descendants(os.getpid()))  # workers that other tests keep
    with open_bench(effort=ONE_CALL) as bench:
        seen = []
        for number in range(ROUNDS + 2 * EACH):
            jobs = [job(CRASH)] if number % 10 == 9 else [job()]
            (result,) = measured(bench, jobs)
            assert result.outcome in ("ok", "crashed")
            if number % EACH == EACH - 1:
                measured(bench, [job()])  # so that a worker that ended is there again
                seen.append(state())
    first, last = seen[1], seen[-1]
    print(f"\n  after {2 * EACH} rounds {first}, after {ROUNDS + 2 * EACH} {last}", end="")
    assert last["processes"] == first["processes"]
    assert last["threads"] <= first["threads"]
    assert last["files"] <= first["files"]
    assert last["memory"] - first["memory"] < LEAST_LEAK_MB * ROUNDS
    assert set(descendants(os.getpid())) <= before
