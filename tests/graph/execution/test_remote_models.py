"""Models in a worker: measured there; a crash, a hang or an error of a kernel is an outcome."""

import os
import signal

import numpy as np
import pytest

from dlcompiler.errors import CallError, MeasurementError
from dlcompiler.graph import build, builders, op, var
from dlcompiler.graph.execution.remote import RemoteModel, model_worker
from dlcompiler.graph.ir import Module


@pytest.fixture(scope="module")
def worker():
    with model_worker() as found:
        yield found


def test_a_model_is_measured_in_a_worker(worker):
    given = builders.mlp()
    model = build(given.module, params=given.params)
    remote = RemoteModel(model, [np.zeros(model.params[0].static_shape, "f")], worker)
    times = remote.profile(60.0)
    assert [time.name for time in times] == [step.name for step in model.steps]
    assert all(time.seconds > 0 and time.times.kind == "measured" for time in times)
    assert remote.time(0.01, 60.0).median_s > 0


def test_arrays_that_do_not_fit_are_refused_here(worker):
    model = build(Module.from_expr(op.exp(var("x", (3,)))))
    with pytest.raises(CallError, match="shape"):
        RemoteModel(model, [np.zeros(4, "f")], worker)


def test_an_error_of_a_kernel_is_an_outcome(worker):
    x, i = var("x", (3,)), var("i", (1,), "int64")
    model = build(Module.from_expr(op.gather(x, i, axis=0)))
    remote = RemoteModel(model, [np.zeros(3, "f"), np.array([7])], worker)
    with pytest.raises(MeasurementError, match="index 7 in dimension 0 of extent 3"):
        remote.profile(60.0)


def test_a_worker_that_hangs_or_ends_is_an_outcome(worker):
    model = build(Module.from_expr(op.exp(var("x", (3,)))))
    remote = RemoteModel(model, [np.zeros(3, "f")], worker)
    child = worker._process.child
    os.kill(child, signal.SIGSTOP)
    with pytest.raises(MeasurementError, match=r"timeout\n.*no answer within 0.5 s"):
        remote.profile(0.5)
    with pytest.raises(MeasurementError, match="none is loaded"):
        remote.profile(60.0)
    again = RemoteModel(model, [np.zeros(3, "f")], worker)
    os.kill(worker._process.child, signal.SIGSEGV)
    with pytest.raises(MeasurementError, match=r"SIGSEGV|none is loaded"):
        again.profile(60.0)
    assert RemoteModel(model, [np.zeros(3, "f")], worker).profile(60.0)[0].seconds > 0
