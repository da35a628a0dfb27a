"""Runs on this machine: real kernels in a real worker process."""

import dataclasses
import time
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.autotune import LocalPool, tune
from dlcompiler.errors import InternalError
from dlcompiler.measurement.candidates import Ceiling
from dlcompiler.ops import by_device
from dlcompiler.pipeline import build
from dlcompiler.runtime.source import Text
from dlcompiler.space import Workload
from dlcompiler.target import resolve

CPU = resolve("cpu")
MATMUL = ops.operator("matmul")


@pytest.mark.campaign
@pytest.mark.parametrize("tuner", ["random", "xgb"])
def test_a_small_search_finds_a_kernel_that_is_right(tuner):
    workload = Workload.of("matmul", m=70, n=52, k=33)
    run = tune(workload, trials=6, tuner=tuner, batch=3, threads=1).wait(60)
    assert run.state == "finished"
    assert dict(run.counts) == {"ok": 6}
    assert all(trial.gflops > 0.01 for trial in run.trials)
    schedule, args = run.best_schedule()
    a, b = np.ones((70, 33), np.float32), np.full((33, 52), 2.0, np.float32)
    c = np.empty((70, 52), np.float32)
    build(schedule, args)(a, b, c)
    assert (c == 66).all()


@pytest.mark.campaign
def test_a_run_is_stopped_in_the_middle_of_a_measurement():
    run = tune(Workload.of("matmul", m=1500, n=1500, k=1500), trials=50, tuner="random", threads=1)
    end = time.perf_counter() + 60
    while not run.trials:
        assert time.perf_counter() < end
        time.sleep(0.01)
    time.sleep(0.3)
    asked = time.perf_counter()
    run.stop()
    run.wait(60)
    assert run.state == "stopped"
    assert time.perf_counter() - asked < 20  # all trials take longer
    assert all(trial.outcome == "ok" for trial in run.trials)


# -- faults -------------------------------------------------------------------------------------


def measured(schedule=None, **changes):
    """Measure the default config of a changed operator, for 8 x 8 x 8."""
    if schedule is not None:
        way = dataclasses.replace(MATMUL.schedules["cpu"], apply=schedule)
        changes["schedules"] = by_device({"cpu": way})
    operator = dataclasses.replace(MATMUL, **changes)
    workload = MATMUL.workload(m=8, n=8, k=8)
    ceiling = Ceiling(build_s=20.0, run_s=2.0)
    pool = LocalPool(operator, workload, CPU, threads=1, ceiling=ceiling, overlap=True)
    results = []
    try:
        config = MATMUL.default_config(workload, CPU)
        pool.measure([config], None, lambda _, result: results.append(result))
    finally:
        pool.close()
    return results[0]


def test_what_the_schedule_refuses_is_refused():
    def schedule(s, outs, cfg, target):
        s[outs[0]].split(outs[0].op.axis[0], -1)

    result = measured(schedule)
    assert result.outcome == "refused"
    assert result.message.startswith("split C.i: factor must be at least 1")


def test_a_bug_of_the_compiler_is_a_build_error():
    def schedule(s, outs, cfg, target):
        raise InternalError("lower C", "a pass lost a store")

    result = measured(schedule)
    assert result.outcome == "build error"
    assert result.message.startswith("lower C: a pass lost a store")


def test_a_schedule_that_is_wrong_is_never_timed():
    def reference(workload, seed):
        right = MATMUL.reference(workload, seed)
        return ops.Reference(right.inputs, {"C": right.expected["C"] + 1e-3}, right.bound)

    result = measured(reference=reference)
    assert result.outcome == "wrong answer"
    assert result.samples_s == ()
    assert "64 of 64 elements are wrong" in result.message


KERNEL = "define void @matmul_kernel(ptr %A, ptr %B, ptr %C) {{\n{body}\n}}\n"
CRASH = "  store volatile i32 1, ptr inttoptr (i64 16 to ptr)\n  ret void"
HANG = "  br label %again\nagain:\n  store volatile float 0.0, ptr %C\n  br label %again"


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("body", "outcome", "message"),
    [
        (CRASH, "crashed", "ended by SIGSEGV"),
        (HANG, "run timeout", "not checked and timed within 2 s"),
        ("  ret void", "wrong answer", "C[0, 0] is nan"),
        ("  ret i32 0", "build error", "not valid"),
    ],
    ids=["crash", "hang", "never written", "not LLVM"],
)
def test_a_kernel_that_misbehaves_is_an_outcome(monkeypatch, body, outcome, message):
    from dlcompiler.autotune.pools import local
    from dlcompiler.pipeline import emit_source

    def emit(schedule, args, target, name, **options):
        source, func = emit_source(schedule, args, target, name, **options)
        return replace(source, texts={"llvm": Text(KERNEL.format(body=body))}), func

    monkeypatch.setattr(local, "emit_source", emit)
    result = measured()
    assert result.outcome == outcome
    assert message in result.message
