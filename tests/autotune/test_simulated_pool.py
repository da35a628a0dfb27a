"""Tuning for a simulated GPU: candidates are verified, and their times are predicted."""

from __future__ import annotations

import pytest

from dlcompiler import te
from dlcompiler.autotune import template, tune
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Workload

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
