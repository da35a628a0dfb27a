"""A thousand rounds of candidates, some of which crash, without growth of anything.

Costs about 20 s on an idle machine.
"""

import gc
import os
import threading
from pathlib import Path

from tests.faults.candidates import job, kernel, measured, open_bench
from tests.faults.test_hangs import descendants

CRASH = kernel("  store volatile i32 1, ptr inttoptr (i64 16 to ptr)\n  ret void")
ROUNDS = 1000


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


def test_a_thousand_rounds_leave_nothing_behind():
    before = set(descendants(os.getpid()))  # workers that other tests keep
    with open_bench() as bench:
        seen = []
        for number in range(ROUNDS + 100):
            jobs = [job(CRASH)] if number % 10 == 9 else [job()]
            (result,) = measured(bench, jobs)
            assert result.outcome in ("ok", "crashed")
            if number % 100 == 99:
                measured(bench, [job()])  # so that a worker that ended is there again
                seen.append(state())
    first, last = seen[1], seen[-1]
    print(f"\n  after 200 rounds {first}, after {ROUNDS + 100} {last}", end="")
    assert last["processes"] == first["processes"]
    assert last["threads"] <= first["threads"]
    assert last["files"] <= first["files"]
    assert last["memory"] - first["memory"] < 16.0
    assert set(descendants(os.getpid())) <= before
