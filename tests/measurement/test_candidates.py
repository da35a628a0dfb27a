"""Candidates as text: good ones are timed, and whatever a bad one does is an outcome."""

import threading
import time

import numpy as np
import pytest

from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate, Ceiling, Measured
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.target import resolve

CPU = resolve("cpu")
PARAMS = (Param("A", (8,), "float32", False), Param("C", (8,), "float32", True))
QUICK = Effort(budget_s=0.02)


def case(a):
    a = np.asarray(a, np.float32)
    wide = a.astype(np.float64)
    return Case.of({"A": a}, {"C": 2 * wide}, {"C": np.full(8, 1e-6)}, {"C": "float32"})


TEST = CorrectnessTest([case(np.arange(8)), case(-1.0 - np.arange(8))])

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
  %first = icmp ule i32 %calls, 1
  %a = load <8 x float>, ptr %A, align 4
  %two = fadd <8 x float> %a, %a
  %three = fadd <8 x float> %two, %a
  %c = select i1 %first, <8 x float> %two, <8 x float> %three
  store <8 x float> %c, ptr %C, align 4
  ret void
}
@count = internal global i32 0
"""
READS_BEFORE_IT_WRITES = """
declare ptr @dlc_workspace_alloc(i64)
declare void @dlc_workspace_free(ptr)
define void @kernel(ptr %A, ptr %C) {{
  %rest = {get}
  %a = load <8 x float>, ptr %A, align 4
  %two = fadd <8 x float> %a, %a
  %found = load volatile <8 x float>, ptr %rest, align 4
  %c = fadd <8 x float> %two, %found
  store <8 x float> %c, ptr %C, align 4
  store volatile <8 x float> zeroinitializer, ptr %rest, align 4
  {done}
  ret void
}}
"""


def job(text=None, **changes):
    written = Text(text or COPY.format(**{**GOOD, **changes}))
    source = Source("llvm", {"llvm": written}, Interface("kernel", PARAMS))
    return lambda: Candidate(source)


def measured(bench, jobs, best_s=None):
    found = {}
    bench.measure(jobs, best_s, found.__setitem__)
    assert sorted(found) == list(range(len(jobs)))
    return [found[number] for number in range(len(jobs))]


def one(bench, *args, **changes):
    (result,) = measured(bench, [job(*args, **changes)])
    return result


@pytest.fixture(scope="module", params=[True, False], ids=["overlapping", "alternating"])
def bench(request):
    ceiling = Ceiling(build_s=20.0, run_s=2.0)
    with CandidateBench(TEST, CPU, ceiling=ceiling, effort=QUICK, overlap=request.param) as opened:
        yield opened


@pytest.mark.campaign
def test_right_kernels_are_timed(bench):
    for result in measured(bench, [job()] * 5):
        assert result.outcome == "ok"
        assert result.message == ""
        assert all(0 < sample < 1 for sample in result.samples_s)
        assert result.build_s > 0
        assert result.run_s > 0


def test_a_wrong_answer_is_told_with_its_place(bench):
    result = one(bench, operation="fmul <8 x float> %a, %a")
    assert result.outcome == "wrong answer"
    assert result.samples_s == ()
    assert result.message.startswith("C[1] is 1, expected 1.99")
    assert result.message.endswith("; 6 of 8 elements are wrong")


def test_what_is_right_on_the_first_inputs_only_is_wrong(bench):
    before = (
        "%x = load <8 x float>, ptr %A, align 4\n"
        "  %p = call <8 x float> @llvm.fabs.v8f32(<8 x float> %x)"
    )
    result = one(
        bench,
        COPY.format(**{**GOOD, "before": before, "operation": "fadd <8 x float> %a, %p"})
        + "declare <8 x float> @llvm.fabs.v8f32(<8 x float>)\n",
    )
    assert result.outcome == "wrong answer"
    assert result.message.startswith("C[0] is 0, expected -2")


def test_an_element_that_is_never_written_is_wrong(bench):
    value = "<float 0.0, float 2.0, float 4.0, float 6.0>"
    result = one(bench, stored=4, value=value)
    assert result.outcome == "wrong answer"
    assert result.message.startswith("C[4] is nan, expected ")


def test_a_kernel_that_is_right_only_at_first_is_wrong(bench):
    result = one(bench, ADDS_UP)
    assert result.outcome == "wrong answer"
    assert result.message.startswith("after repeated calls: C[1] is 3, expected ")


@pytest.mark.parametrize(
    ("get", "done"),
    [
        ("alloca <8 x float>, align 64", ""),
        (
            "call ptr @dlc_workspace_alloc(i64 4096)",
            "call void @dlc_workspace_free(ptr %rest)",
        ),
    ],
    ids=["stack", "workspace"],
)
def test_a_temporary_read_before_it_is_written_is_wrong_whatever_was_there(bench, get, done):
    result = one(bench, READS_BEFORE_IT_WRITES.format(get=get, done=done))
    assert result.outcome == "wrong answer"


def test_text_that_is_not_llvm_is_a_build_error(bench):
    result = one(bench, "define nonsense")
    assert result.outcome == "build error"
    assert "not valid" in result.message


def test_a_crash_has_its_signal_and_the_next_candidate_is_measured(bench):
    crash = "store volatile i32 1, ptr inttoptr (i64 16 to ptr)"
    results = measured(bench, [job(), job(before=crash), job()])
    assert [result.outcome for result in results] == ["ok", "crashed", "ok"]
    assert results[1].message == "ended by SIGSEGV"


def test_a_hang_ends_at_the_limit(bench):
    start = time.perf_counter()
    results = measured(bench, [job(HANG), job()])
    assert [result.outcome for result in results] == ["run timeout", "ok"]
    assert results[0].message == "not checked and timed within 2 s"
    assert 2.0 <= results[0].run_s < 30
    assert time.perf_counter() - start < 60


def test_a_kernel_far_from_the_best_is_sampled_little(bench):
    (far,) = measured(bench, [job()], best_s=1e-12)
    assert len(far.samples_s) <= 2
    (near,) = measured(bench, [job()], best_s=10.0)
    assert len(near.samples_s) >= 5


def test_what_a_generator_returns_or_raises_is_an_outcome(bench):
    def refuse():
        return Measured("refused", message="the schedule forbids it")

    def fail():
        raise ValueError("of the template")

    def eat():
        raise MemoryError

    found = measured(bench, [refuse, fail, job(), eat])
    assert [result.outcome for result in found] == [
        "refused",
        "build error",
        "ok",
        "out of memory",
    ]
    assert found[1].message == "ValueError: of the template"


@pytest.mark.campaign
def test_a_generator_that_does_not_end_is_given_up():
    release = threading.Event()

    def hang():
        release.wait(60)
        return Measured("refused")

    ceiling = Ceiling(build_s=1.5)
    with CandidateBench(TEST, CPU, ceiling=ceiling, effort=QUICK, overlap=True) as other:
        other.measure([], None, lambda *_: None)  # so that starting does not count
        results = measured(other, [job(), hang, job(), hang, job()])
        release.set()
    assert [result.outcome for result in results] == ["ok", "build timeout"] * 2 + ["ok"]
    assert results[1].message == "its code was not generated within 1.5 s"


@pytest.mark.campaign
def test_another_thread_ends_a_batch(bench):
    measured(bench, [job()])
    found = {}
    timer = threading.Timer(0.3, bench.interrupt)
    timer.start()
    start = time.perf_counter()
    bench.measure([job(HANG), job()], None, found.__setitem__)
    timer.join()
    assert time.perf_counter() - start < 30
    assert 0 not in found
    assert one(bench).outcome == "ok"


@pytest.mark.campaign
def test_starting_can_be_interrupted_and_goes_on():
    release = threading.Event()

    def make_test():
        release.wait(60)
        return TEST

    with CandidateBench(make_test, CPU, effort=QUICK, overlap=True) as other:
        found = {}
        timer = threading.Timer(0.2, other.interrupt)
        timer.start()
        start = time.perf_counter()
        other.measure([job()], None, found.__setitem__)
        timer.join()
        assert time.perf_counter() - start < 30  # the test's inputs would take 60
        assert not found
        release.set()
        assert one(other).outcome == "ok"


def test_what_makes_the_test_may_fail():
    def make_test():
        raise ValueError("no such shape")

    with (
        CandidateBench(make_test, CPU, effort=QUICK, overlap=True) as other,
        pytest.raises(ValueError, match="no such shape"),
    ):
        one(other)


def test_candidates_are_compared_in_turn(bench):
    slow = COPY.format(**GOOD).replace(
        "ret void",
        "br label %loop\nloop:\n  %n = phi i32 [ 0, %0 ], [ %m, %loop ]\n"
        "  store volatile <8 x float> %c, ptr %C, align 4\n  %m = add i32 %n, 1\n"
        "  %again = icmp ult i32 %m, 200000\n  br i1 %again, label %loop, label %end\n"
        "end:\n  ret void",
    )
    first, refused, second = bench.compare(
        [job(), job("define nonsense"), job(slow)], budget_s=0.05
    )
    assert refused.outcome == "build error"
    assert len(first.samples_s) == len(second.samples_s) >= 9
    assert min(first.samples_s) < min(second.samples_s)


@pytest.mark.campaign
def test_expected_nan_and_infinity_are_right():
    values = [np.nan, np.inf, -np.inf, 1, 2, 3, 4, 5]
    with CandidateBench(CorrectnessTest([case(values)]), CPU, effort=QUICK, overlap=False) as other:
        assert one(other).outcome == "ok"


@pytest.mark.campaign
def test_the_caches_are_emptied_before_each_sample():
    with CandidateBench(
        TEST, CPU, effort=Effort(least=5, most=5), overlap=False, flush_caches=True
    ) as other:
        cold = one(other)
    with CandidateBench(TEST, CPU, effort=QUICK, overlap=False) as other:
        warm = one(other)
    assert 3 <= len(cold.samples_s) <= 5
    print(f"cold {cold.median_s * 1e6:.2f} µs, warm {warm.median_s * 1e6:.2f} µs")
    assert cold.median_s > warm.median_s


@pytest.mark.parametrize("command", [["/does/not/exist"], ["/bin/false"]])
def test_a_worker_that_cannot_start_ends_the_measurements(command):
    with (
        CandidateBench(TEST, CPU, command=command, overlap=False) as broken,
        pytest.raises((MeasurementError, OSError)),
    ):
        one(broken)
