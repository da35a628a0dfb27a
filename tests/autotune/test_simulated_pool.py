"""Tuning for a simulated GPU: candidates are verified, and their times are predicted."""

from __future__ import annotations

import threading

import pytest

from dlcompiler import ops, te
from dlcompiler.autotune import template, tune
from dlcompiler.autotune.candidate import TemplateCandidate
from dlcompiler.autotune.pools import simulated, simulation
from dlcompiler.autotune.pools.simulated import SimulatedPool
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_report import predicted_s
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Workload
from dlcompiler.target import resolve

pytestmark = pytest.mark.campaign(whole_file=True)

N = 64


def rows(n: int):
    A = te.placeholder((n, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    return A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")


@template(rows, device="gpu")
def summed(s, outs, cfg, target):
    (out,) = outs
    (i,) = s[out].op.axis
    cfg.define_knob("threads", [8, 32, 2048])
    block, thread = s[out].split(i, cfg["threads"].val)
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(thread, te.thread_axis("threadIdx.x"))


@pytest.fixture(scope="module")
def run():
    workload = Workload.of("rows", n=N)
    return tune(workload, "rtx-3090", template=summed, trials=3, tuner="random", block=True)


def test_a_run_for_a_simulated_gpu_ends_with_predicted_times(run):
    on = Provenance("predicted", "the time model of rtx-3090")
    assert run.best is not None
    assert run.best.provenance == on
    right = [trial for trial in run.trials if trial.outcome == "ok"]
    assert {trial.config["threads"] for trial in right} == {8, 32}
    assert all(trial.provenance == on and trial.seconds > 1e-6 for trial in right)


def test_a_candidate_beyond_the_limits_is_refused_with_its_limit(run):
    (refused,) = (trial for trial in run.trials if trial.outcome == "refused")
    assert refused.config["threads"] == 2048
    assert "1024" in refused.result.message
    assert refused.seconds is None


MATMUL, GPU = ops.operator("matmul"), resolve("rtx-3090")
PRODUCT = MATMUL.workload(m=16, n=16, k=8)


def configs_of(count):
    space = MATMUL.space(PRODUCT, GPU)
    points = list(space.allowed())
    return [space.at(point) for point in points[:: len(points) // count][:count]]


def measured(pool, configs):
    found = {}
    pool.measure(configs, None, found.__setitem__)
    return found


def test_workers_predict_what_this_process_does():
    configs = configs_of(5)
    pool = SimulatedPool(MATMUL, PRODUCT, GPU, workers=2)
    try:
        found = measured(pool, configs)
    finally:
        pool.close()
    assert sorted(found) == list(range(5))
    for number, cfg in enumerate(configs):
        schedule, args = MATMUL.template(PRODUCT, GPU, cfg)
        program = lower_program(schedule, args, GPU, "matmul_kernel")
        assert found[number].outcome == "ok"
        assert found[number].samples_s == (predicted_s(program, GPU),)


def test_a_pool_is_used_again_after_an_interruption():
    configs = configs_of(3)
    pool = SimulatedPool(MATMUL, PRODUCT, GPU, workers=1)
    try:
        first = []

        def stop(number, result):
            first.append(number)
            pool.interrupt()

        pool.measure(configs, None, stop)
        assert first == [0]
        assert sorted(measured(pool, configs)) == [0, 1, 2]
    finally:
        pool.close()
    assert not any(thread.name == "dlcompiler-simulate" for thread in threading.enumerate())


def test_an_error_of_the_report_ends_the_batch():
    pool = SimulatedPool(MATMUL, PRODUCT, GPU, workers=1)

    def refuse(number, result):
        raise ZeroDivisionError

    try:
        with pytest.raises(ZeroDivisionError):
            pool.measure(configs_of(3), None, refuse)
    finally:
        pool.close()


def test_only_schedules_of_the_library_are_known_to_workers(monkeypatch):
    item = TemplateCandidate(MATMUL, PRODUCT, configs_of(1)[0])
    assert simulation.described(item, GPU)["operator"] == "matmul"
    entry = template(rows, device="gpu")(lambda s, outs, cfg, target: None).schedules["gpu"]
    monkeypatch.setitem(MATMUL.schedules, "gpu", entry)
    assert simulation.described(item, GPU) is None
    monkeypatch.undo()
    monkeypatch.setattr(simulated, "described", lambda item, target: None)
    pool = SimulatedPool(MATMUL, PRODUCT, GPU, workers=2)
    try:
        assert [r.outcome for r in measured(pool, configs_of(2)).values()] == ["ok", "ok"]
    finally:
        pool.close()


def test_all_schedules_of_a_program_are_analysed_for_races(monkeypatch):
    """Of those of the library, only candidates that are faster than all before."""
    analysed = []

    def noted(*args, check_races=True, **options):
        analysed.append(check_races)
        return lower_program(*args, check_races=check_races, **options)

    monkeypatch.setattr(simulation, "lower_program", noted)
    monkeypatch.setattr(simulated, "described", lambda item, target: None)
    pool = SimulatedPool(MATMUL, PRODUCT, GPU, workers=1)
    try:
        pool.measure(configs_of(2), 1e-30, lambda number, result: None)
    finally:
        pool.close()
    assert sum(analysed) == 2
    item = TemplateCandidate(MATMUL, PRODUCT, configs_of(1)[0])
    for best_s, expected in ((1.0, True), (1e-30, False)):
        analysed.clear()
        assert isinstance(simulation.make(item, "main", GPU, best_s), simulation.Made)
        assert any(analysed) is expected
