"""A measurer that needs no machine: times that follow from the config, and faults on demand."""

from __future__ import annotations

import threading
import time

import pytest

from dlcompiler.autotune import Record, Result
from dlcompiler.space import Config, Workload

WORKLOAD = Workload.of("matmul", m=64, n=64, k=64, dtype="float32")


class FakeMeasurer:
    """Measures by a formula; `faults` are results for trials by their number.

    A trial takes `seconds`; `interrupt` ends it, as it ends a worker.
    """

    def __init__(self, seconds=0.0, faults=None):
        self.seconds = seconds
        self.faults = faults or {}
        self.configs = []
        self.is_closed = False
        self._interrupted = threading.Event()

    def measure(self, config, best_s):
        number = len(self.configs)
        self.configs.append(config)
        self._interrupted.clear()  # an interrupt concerns what is measured, not what follows
        if self.seconds and self._interrupted.wait(self.seconds):
            return Result("crashed", message="ended by SIGKILL")
        fault = self.faults.get(number)
        if isinstance(fault, Exception):
            raise fault
        return fault or Result("ok", (cost(config),) * 3)

    def interrupt(self):
        self._interrupted.set()

    def close(self):
        self.is_closed = True


def cost(config):
    """Return seconds: shortest for tiles of 4 by 16 that are packed."""
    far = abs(config.tile_m - 4) + abs(config.tile_n - 16) / 8
    return 1e-4 * (1 + far + (not config.pack) + 0.1 * config.unroll_k)


@pytest.fixture
def fake():
    return FakeMeasurer


def make_record(trial=0, run="run", outcome="ok", **changes):
    samples = (0.5, 0.25, 0.75) if outcome == "ok" else ()
    fields = {
        "workload": WORKLOAD,
        "target": "x86:zen",
        "config": Config({"tile": 4, "pack": True, "order": "ij"}, "abc"),
        "result": Result(outcome, samples, "" if outcome == "ok" else "why"),
        "run": run,
        "trial": trial,
        "measured_at": "2026-01-02T03:04:05.678+00:00",
    }
    return Record(**{**fields, **changes})


@pytest.fixture
def record():
    return make_record


def eventually(condition, limit_s=5.0):
    """Wait until a condition holds."""
    end = time.perf_counter() + limit_s
    while not condition():
        assert time.perf_counter() < end, "it never came"
        time.sleep(0.005)


@pytest.fixture
def wait_for():
    return eventually
