"""A thousand rounds, and hundreds of runs, without growth of memory, threads or open files."""

import ctypes
import gc
import itertools
import os
import threading

import pytest

from dlcompiler.autotune import Device, Result, tune
from dlcompiler.autotune.proposal import Proposal
from dlcompiler.space import Workload
from tests.share import share_of

WORKLOAD = Workload.of("matmul", m=512, n=512, k=512)

RUNS = share_of(100, at_least=40)
LEAST_LEAK_MB = 0.05
"""What a run may keep."""


class Pool:
    note = ""
    devices = (Device("x86:test"),)

    def measure(self, configs, best_s, report):
        for number in range(len(configs)):
            report(number, Result("ok", (1e-3,)))

    def interrupt(self):
        pass

    def close(self):
        pass


class Counting:
    """Proposes one point after the other."""

    note = ""
    model = None
    walkers = (1, 2, 3)

    def __init__(self, space, seed):
        self.points = iter(space.allowed())

    def propose(self, count):
        return [Proposal(next(self.points), "grid", 1e-3) for _ in range(count)]

    def observe(self, point, rate):
        pass


def open_files():
    return len(os.listdir("/proc/self/fd"))


def give_back():
    """Return memory that nothing uses to the system; glibc keeps that of threads which ended."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def memory_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def start(db, trials, **options):
    options = {"tuner": Counting, "pool": Pool(), **options}
    return tune(WORKLOAD, "x86-64-avx2", trials=trials, db=db, **options)


def test_a_thousand_rounds_grow_by_their_trials_only(folder):
    seen = []

    def look(event):
        if event.kind == "round" and event.round.is_complete:
            seen.append((memory_mb(), threading.active_count(), open_files()))

    run = start(folder / "records.db", 1100, batch=1, listeners=[look]).wait(100)
    assert len(run.rounds) == len(seen) == 1100
    memory, threads, files = zip(*seen[100:], strict=True)
    assert len(set(threads)) == 1
    assert max(files) - min(files) <= 1
    assert memory[-1] - memory[0] < 16.0  # 1,000 trials with their configs


@pytest.mark.campaign
def test_many_runs_leave_nothing_behind(folder):
    def life(number):
        run = start(folder / f"{number}.db", 3)
        run.pause()
        run.resume()
        run.wait(60)
        run.store.close()
        del run
        # Tests collect garbage rarely (tests/conftest.py). That of many runs at once lies between
        # what lives on, and its pages cannot be given back.
        gc.collect()

    def state():
        give_back()
        return threading.active_count(), open_files(), memory_mb()

    numbers = itertools.count()
    grown = []
    for runs in (20, RUNS, RUNS, RUNS):
        threads, files, memory = state()
        for _ in range(runs):
            life(next(numbers))
        after = state()
        grown.append(after[2] - memory)
        if len(grown) > 1 and grown[-1] < LEAST_LEAK_MB * RUNS:
            break
    assert after[0] <= threads + 1  # one that interrupted may not have ended yet
    assert after[1] <= files
    # A leak is in each batch; the first one fills caches.
    assert min(grown[1:]) < LEAST_LEAK_MB * RUNS, grown
