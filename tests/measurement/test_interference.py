"""Which cores build and which run, and what is said of a machine that is too busy."""

import os

import numpy as np
import pytest

from dlcompiler.errors import MeasurementError
from dlcompiler.measurement import interference
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Measured
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.measurement.interference import Cores, builds_disturb, cores_for
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve
from dlcompiler.target.detect import host

CPU = resolve("cpu")
OPTIONS = Options.for_target(CPU)


@pytest.fixture
def shares(monkeypatch):
    """Say which part of each core is free."""
    given = {}

    class Four:
        cores = (0, 1, 2, 3)

    monkeypatch.setattr(interference, "host", Four)
    monkeypatch.setattr(interference, "share_of", lambda core: given.get(core, 1.0))
    return given


def test_among_equal_cores_the_last_ones_run(shares):
    assert cores_for(1) == Cores((3,), (0, 1, 2))
    assert cores_for(2) == Cores((2, 3), (0, 1))
    shares[3] = 0.97
    assert cores_for(1).run == (3,), "a small difference is none"


def test_a_busy_core_builds(shares):
    shares[3], shares[2] = 0.1, 0.5
    assert cores_for(1) == Cores((1,), (0, 2, 3))
    assert cores_for(3) == Cores((0, 1, 2), (3,))


def test_where_all_cores_run_none_is_left_to_build(shares):
    assert cores_for(4) == cores_for(9) == Cores((0, 1, 2, 3), ())


def test_looking_at_a_core_leaves_this_thread_where_it_was():
    before = os.sched_getaffinity(0)
    assert set(cores_for(1).all) == set(host().cores)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("slowdown", "disturbs"), [(1.0, False), (1.02, False), (1.05, True)])
def test_builds_that_slow_a_kernel_by_more_than_three_percent_disturb(
    monkeypatch, slowdown, disturbs
):
    monkeypatch.setattr(interference, "_known", {})
    monkeypatch.setattr(interference, "_slowdown", lambda *_: slowdown)
    cores = Cores((1,), (0,))
    assert builds_disturb(None, None, cores, OPTIONS) == disturbs
    monkeypatch.setattr(interference, "_slowdown", None)
    assert builds_disturb(None, None, cores, OPTIONS) == disturbs, "it is tried once"


@pytest.mark.campaign
def test_trying_the_machine_takes_less_than_a_second_of_work():
    with Worker() as builder, Worker() as runner:
        cores = cores_for(1)
        if not cores.build:
            pytest.skip("one core only")
        ratio = interference._slowdown(builder, runner, cores, OPTIONS)
    print(f"a kernel beside builds takes {ratio:.3f} of its time alone", end="")
    assert 0.2 < ratio < 20


def test_a_worker_that_cannot_try_the_machine_is_an_error():
    with Worker(["/bin/false"]) as broken, pytest.raises(MeasurementError, match="try the machine"):
        interference._slowdown(broken, broken, Cores((1,), (0,)), OPTIONS)


def test_uncertain_times_are_told_until_they_are_certain_again():
    case = Case({"A": np.zeros(1)}, {})
    bench = CandidateBench(CorrectnessTest([case]), CPU)
    for _ in range(2):
        bench._noted(Measured("ok", (1.0,), is_noisy=True), None)
    assert bench.note == "", "two may be chance"
    bench._noted(Measured("ok", (1.0,), is_noisy=True), None)
    assert bench.note == "the machine is too busy: 3 of the last 3 times are uncertain"
    for _ in range(16):
        bench._noted(Measured("ok", (1.0,)), None)
    assert bench.note == ""
