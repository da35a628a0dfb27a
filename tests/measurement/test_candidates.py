"""Candidates as text: good ones are timed, and whatever a bad one does is an outcome."""

import threading
import time

import numpy as np
import pytest

from dlcompiler.codegen import Source
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.candidates import CandidateBench, Problem
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve

CPU = resolve("cpu")
PARAMS = (Param("A", (8,), "float32", False), Param("C", (8,), "float32", True))
A = np.arange(8, dtype=np.float32)
PROBLEM = Problem({"A": A}, {"C": 2.0 * A}, {"C": np.full(8, 1e-6)})

COPY = """
define void @kernel(ptr %A, ptr %C) {{
  {before}
  %a = load <8 x float>, ptr %A, align 4
  %c = {operation}
  store <{stored} x float> {value}, ptr %C, align 4
  ret void
}}
"""
GOOD = {"before": "", "operation": "fadd <8 x float> %a, %a", "stored": 8, "value": "%c"}
HANG = """
define void @kernel(ptr %A, ptr %C) {
  br label %again
again:
  store volatile float 0.0, ptr %C
  br label %again
}
"""
ADDS_UP = """
define void @kernel(ptr %A, ptr %C) {
  %calls = load i32, ptr @count
  %more = add i32 %calls, 1
  store i32 %more, ptr @count
  %first = icmp eq i32 %calls, 0
  %a = load <8 x float>, ptr %A, align 4
  %two = fadd <8 x float> %a, %a
  %three = fadd <8 x float> %two, %a
  %c = select i1 %first, <8 x float> %two, <8 x float> %three
  store <8 x float> %c, ptr %C, align 4
  ret void
}
@count = internal global i32 0
"""


def source(text=None, **changes):
    return Source(text or COPY.format(**{**GOOD, **changes}), "llvm", "kernel", False, ())


@pytest.fixture(scope="module")
def bench():
    with CandidateBench(PROBLEM, CPU, timeout_s=2.0, limits={"min_seconds": 0.01}) as opened:
        yield opened


def test_a_right_kernel_is_timed(bench):
    measured = bench.measure(source(), PARAMS)
    assert measured.outcome == "ok"
    assert measured.message == ""
    assert all(0 < sample < 1 for sample in measured.samples_s)


def test_a_wrong_answer_is_told_with_its_place(bench):
    measured = bench.measure(source(operation="fmul <8 x float> %a, %a"), PARAMS)
    assert measured.outcome == "wrong answer"
    assert measured.samples_s == ()
    assert measured.message == ("C[1] is 1, expected 2 within 1e-06; 6 of 8 elements are wrong")


def test_an_element_that_is_never_written_is_wrong(bench):
    value = "<float 0.0, float 2.0, float 4.0, float 6.0>"
    measured = bench.measure(source(stored=4, value=value), PARAMS)
    assert measured.outcome == "wrong answer"
    assert measured.message.startswith("C[4] is nan, expected 8")


def test_a_kernel_that_is_right_only_once_is_wrong(bench):
    measured = bench.measure(source(ADDS_UP), PARAMS)
    assert measured.outcome == "wrong answer"
    assert measured.message.startswith("after repeated calls: C[1] is 3, expected 2")


def test_text_that_is_not_llvm_is_a_build_error(bench):
    measured = bench.measure(source("define nonsense"), PARAMS)
    assert measured.outcome == "build error"
    assert "not valid" in measured.message


def test_a_crash_has_its_signal_and_the_next_candidate_is_measured(bench):
    crash = "store volatile i32 1, ptr inttoptr (i64 16 to ptr)"
    measured = bench.measure(source(before=crash), PARAMS)
    assert measured.outcome == "crashed"
    assert measured.message == "ended by SIGSEGV"
    assert bench.measure(source(), PARAMS).outcome == "ok"


def test_a_hang_ends_at_the_limit(bench):
    start = time.perf_counter()
    measured = bench.measure(source(HANG), PARAMS)
    assert measured.outcome == "timeout"
    assert "2 s" in measured.message
    assert time.perf_counter() - start < 2.0 + 2.0
    assert bench.measure(source(), PARAMS).outcome == "ok"


def test_a_slow_kernel_is_sampled_once(bench):
    assert len(bench.measure(source(), PARAMS, enough_s=0.0).samples_s) == 1
    assert len(bench.measure(source(), PARAMS, enough_s=10.0).samples_s) > 1


def test_another_thread_ends_a_measurement(bench):
    bench.measure(source(), PARAMS)
    timer = threading.Timer(0.2, bench.interrupt)
    timer.start()
    start = time.perf_counter()
    measured = bench.measure(source(HANG), PARAMS)
    timer.join()
    assert measured.outcome == "crashed"
    assert time.perf_counter() - start < 1.5


def test_expected_nan_and_infinity_are_right():
    a = np.array([np.nan, np.inf, -np.inf, 1, 2, 3, 4, 5], np.float32)
    problem = Problem({"A": a}, {"C": 2.0 * a}, {"C": np.full(8, 1e-6)})
    with CandidateBench(problem, CPU, limits={"min_seconds": 0.01}) as other:
        assert other.measure(source(), PARAMS).outcome == "ok"


def test_a_worker_that_cannot_start_ends_the_measurements():
    with (
        CandidateBench(PROBLEM, CPU, worker=Worker(["/does/not/exist"])) as broken,
        pytest.raises((MeasurementError, OSError)),
    ):
        broken.measure(source(), PARAMS)
