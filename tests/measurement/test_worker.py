"""The measurement worker: kernels compiled, run and timed in another process."""

import dataclasses

import numpy as np
import pytest

from dlcompiler.measurement.worker import random_array
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.timing import Timing
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve

PARAMS = [Param("A", (16,), "float32"), Param("C", (16,), "float32", is_output=True)]

COPY = """
  %x = load <16 x float>, ptr %a, align 4
  store <16 x float> %x, ptr %c, align 4
  ret void
"""


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        yield started


@pytest.fixture
def load(worker):
    """Load a kernel of A and C, given its body; return the outcome."""

    def load_(body, **changes):
        params = {
            "language": "llvm",
            "device": "host",
            "interface": Interface("k", PARAMS).to_json(),
            "options": dataclasses.asdict(Options.for_target(resolve("cpu"))),
            **changes,
        }
        text = f"define void @k(ptr %a, ptr %c) {{\nentry:\n{body}\n}}\n"
        return worker.call("load", params, data=text.encode(), timeout_s=30)

    return load_


@pytest.fixture
def arrays():
    return {"A": np.arange(16, dtype=np.float32), "C": np.zeros(16, np.float32)}


def test_ping(worker):
    assert worker.call("ping", {"x": 1}, timeout_s=10).value == {"x": 1}


def test_a_kernel_runs_on_arrays(worker, load, arrays):
    handle = load(COPY).unwrap("load")
    outcome = worker.call("run", handle, arrays=arrays, outputs=["C"], timeout_s=10)
    np.testing.assert_array_equal(outcome.arrays["C"], arrays["A"])


def test_a_kernel_is_timed_on_arrays_of_the_caller_or_random_ones(worker, load, arrays):
    handle = load(COPY).unwrap("load")
    limits = {"min_repeats": 3, "max_repeats": 3, "min_seconds": 0}
    for given, params in (
        (arrays, {}),
        ({}, {"random": {"seed": 1, "kind": "uniform"}}),
        ({"A": arrays["A"]}, {"random": {"seed": 1, "kind": "exact"}}),
    ):
        request = {**handle, "limits": limits, **params}
        value = worker.call("time", request, arrays=given, timeout_s=20).unwrap("time")
        timing = Timing(tuple(value["samples_s"]), batch=value["batch"])
        assert timing.n == 3
        assert 0 < timing.median_s < 1


def test_missing_arrays_are_named(worker, load, arrays):
    handle = load(COPY).unwrap("load")
    outcome = worker.call("run", handle, arrays={"A": arrays["A"]}, timeout_s=10)
    assert outcome.message == "call k in the worker: arrays are missing\n  got       C"


def test_arrays_are_checked_as_in_any_call(worker, load, arrays):
    handle = load(COPY).unwrap("load")
    wrong = {**arrays, "A": np.zeros(3, np.float32)}
    outcome = worker.call("run", handle, arrays=wrong, timeout_s=10)
    assert outcome.error == "CallError"
    assert outcome.message.startswith("call k: argument 1 (A): wrong shape")


def test_wrong_text_is_an_error_with_its_reason(load):
    outcome = load("  ret i32 1")
    assert (outcome.kind, outcome.error) == ("error", "InternalError")
    assert "read LLVM IR: the text is not valid" in outcome.message


def test_options_that_do_not_fit_are_refused(load):
    options = dataclasses.asdict(Options.for_target(resolve("cpu")))
    outcome = load(COPY, options={**options, "cpu": "z80"})
    assert (outcome.kind, outcome.error) == ("error", "TargetError")


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ("  store volatile i32 0, ptr null\n  ret void", "SIGSEGV"),
        (
            "  %x = load i32, ptr %a\n  %y = load i32, ptr %c\n  %z = sdiv i32 %x, %y\n"
            "  store i32 %z, ptr %c\n  ret void",
            "SIGFPE",
        ),
    ],
    ids=["null", "division by zero"],
)
@pytest.mark.parametrize("entry", ["run", "time"])
def test_a_kernel_that_crashes_is_an_outcome(worker, load, arrays, body, signal, entry):
    handle = load(body).unwrap("load")
    outcome = worker.call(entry, handle, arrays=arrays, timeout_s=10)
    assert outcome.kind == "crashed"
    # LLVM may turn the store to null into a trap.
    assert outcome.signal in ({signal, "SIGILL"} if signal == "SIGSEGV" else {signal})
    after = worker.call("run", handle, arrays=arrays, timeout_s=10)
    assert "no kernel has this handle" in after.message
    assert "  hint      load it again" in after.message


@pytest.mark.parametrize("entry", ["run", "time"])
def test_a_kernel_that_hangs_is_ended_at_the_limit(worker, load, arrays, entry):
    handle = load("  br label %loop\nloop:\n  br label %loop").unwrap("load")
    outcome = worker.call(entry, handle, arrays=arrays, timeout_s=0.5)
    assert outcome.kind == "timeout"
    assert outcome.seconds < 30
    assert worker.call("ping", timeout_s=10).ok


def test_a_kernel_can_be_forgotten(worker, load, arrays):
    handle = load(COPY).unwrap("load")
    assert worker.call("unload", handle, timeout_s=10).ok
    outcome = worker.call("run", handle, arrays=arrays, timeout_s=10)
    assert "find a kernel in the worker: no kernel has this handle" in outcome.message


def test_a_kernel_with_parallel_loops_runs(worker, arrays):
    text = """
    declare void @dlc_parallel_for(ptr, ptr, i64, i64)
    define void @k(ptr %a, ptr %c) {
      call void @dlc_parallel_for(ptr @body, ptr %c, i64 0, i64 16)
      ret void
    }
    define internal void @body(i64 %begin, i64 %end, ptr %c) {
    entry:
      br label %step
    step:
      %i = phi i64 [ %begin, %entry ], [ %next, %step ]
      %p = getelementptr float, ptr %c, i64 %i
      store float 2.0, ptr %p
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, %end
      br i1 %more, label %step, label %done
    done:
      ret void
    }
    """
    params = {
        "language": "llvm",
        "device": "host",
        "interface": Interface("k", PARAMS).to_json(),
        "options": dataclasses.asdict(Options.for_target(resolve("cpu"))),
    }
    handle = worker.call("load", params, data=text.encode(), timeout_s=30).unwrap("load")
    request = {**handle, "threads": 4}
    outcome = worker.call("run", request, arrays=arrays, outputs=["C"], timeout_s=10)
    np.testing.assert_array_equal(outcome.arrays["C"], 2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64"])
@pytest.mark.parametrize("kind", ["uniform", "exact"])
def test_random_arrays_are_reproducible(dtype, kind):
    param = Param("A", (50, 3), dtype)
    array = random_array(param, 7, kind)
    assert array.dtype == dtype
    assert array.shape == (50, 3)
    assert len(np.unique(array)) > 1
    np.testing.assert_array_equal(array, random_array(param, 7, kind))
    assert not np.array_equal(array, random_array(param, 8, kind))
    if kind == "exact":
        np.testing.assert_array_equal(array, np.round(array.astype(float)))
