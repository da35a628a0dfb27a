"""The stopwatch."""

import gc
import time

import pytest

from dlcompiler.errors import MeasurementError
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import (
    Paired,
    Timing,
    format_seconds,
    half_quartile_range,
    paired,
    time_call,
)
from dlcompiler.target.detect import cpu_model


def test_a_timing_shows_median_spread_and_rate():
    timing = Timing((0.036, 0.0382, 0.040), flops=2 * 1024**3)
    assert repr(timing) == "Timing(median=38.2 ms, spread=1 ms, n=3, 56.2 GFLOP/s, measured)"
    assert timing.gflops == pytest.approx(2 * 1024**3 / 0.0382 / 1e9)
    assert repr(Timing((2e-6,))) == "Timing(median=2 µs, spread=0 s, n=1, measured)"


def test_a_time_says_whether_it_was_measured_and_on_what():
    simulated = Timing((1.0,), provenance=Provenance("simulated", "v100"))
    assert repr(simulated).endswith("n=1, simulated on v100)")
    measured = time_call(lambda: None, warmup=0, min_repeats=1, max_repeats=1)
    assert measured.provenance == Provenance("measured", cpu_model())
    assert repr(measured).endswith(f", measured on {cpu_model()})")
    assert paired(int, int, rounds=1).a.provenance == measured.provenance


def test_a_measured_time_is_not_paired_with_a_simulated_one():
    simulated = Timing((1.0,), provenance=Provenance("simulated", "v100"))
    with pytest.raises(MeasurementError) as caught:
        Paired(Timing((1.0,)), simulated, (1.0,))
    assert str(caught.value) == (
        "compare two timings: they are of different kinds\n"
        "  got       measured, simulated on v100\n"
        "  expected  both measured, or both simulated"
    )


def test_no_samples_are_refused():
    with pytest.raises(MeasurementError, match="read a timing: there are no samples"):
        Timing(())


def test_the_spread_is_half_of_the_quartiles_range():
    assert half_quartile_range([1, 2, 3, 4, 5]) == 1
    assert half_quartile_range([1, 2, 3, 4, 1000]) == 1
    assert half_quartile_range([7]) == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (3e-9, "3 ns"),
        (9.999e-4, "1 ms"),
        (0.99951, "1 s"),
        (0.9994, "999 ms"),
        (12.34e-6, "12.3 µs"),
        (61.5, "61.5 s"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert format_seconds(seconds) == text


def test_a_call_is_timed():
    timing = time_call(lambda: time.sleep(0.002), min_repeats=3, max_repeats=5, min_seconds=0)
    assert timing.median_s >= 0.002
    assert timing.n == 3
    assert timing.batch == 1


def test_samples_are_taken_for_the_time_asked_for():
    timing = time_call(lambda: time.sleep(0.002), min_repeats=1, max_repeats=1000, min_seconds=0.02)
    assert 1 <= timing.n <= 10
    limited = time_call(lambda: time.sleep(0.002), min_repeats=1, max_repeats=4, min_seconds=9)
    assert limited.n == 4


def test_a_short_call_is_timed_in_batches():
    timing = time_call(lambda: None, min_seconds=0.0)
    assert timing.batch > 100
    assert timing.median_s < 0.1
    assert time_call(lambda: None, min_seconds=0.0, batch=7).batch == 7


def test_an_interrupt_makes_no_call_long():
    def batch():
        waits = iter([0.0, 0.01])  # the warm-up, and the first sample
        return time_call(lambda: time.sleep(next(waits, 0.0)), min_seconds=0.0, warmup=1).batch

    # On a busy machine all samples of one measurement may be long.
    assert any(batch() > 1 for _ in range(5))


def test_warm_up_and_samples_are_counted():
    calls = []
    time_call(lambda: calls.append(0), warmup=4, min_repeats=3, max_repeats=3, batch=2)
    assert len(calls) == 4 + 3 * 2


@pytest.mark.parametrize(
    "limits",
    [
        {"min_repeats": 0},
        {"min_repeats": 9, "max_repeats": 3},
        {"min_seconds": -1},
        {"min_seconds": float("inf")},
        {"min_seconds": float("nan")},
        {"batch": 0},
        {"warmup": -1},
    ],
)
def test_limits_that_give_no_measurement_are_refused(limits):
    text = "time a call: with these limits nothing is measured"
    with pytest.raises(MeasurementError, match=text):
        time_call(lambda: None, **limits)


def test_an_error_of_the_call_comes_through_and_the_collector_is_back():
    with pytest.raises(ZeroDivisionError):
        time_call(lambda: 1 // 0)
    assert gc.isenabled()


def test_pairs_alternate_and_give_a_ratio():
    order = []

    def slow():
        order.append("a")
        time.sleep(0.004)

    def fast():
        order.append("b")
        time.sleep(0.002)

    result = paired(slow, fast, rounds=4, warmup=0)
    assert "".join(order[-8:]) == "abbaabba"
    assert result.a.n == result.b.n == len(result.ratios) == 4
    assert 1.2 < result.ratio < 4
    assert repr(result).startswith("Paired(a/b=")


def test_a_call_can_be_paired_with_itself():
    def call():
        time.sleep(0.001)

    assert paired(call, call, rounds=3).b.n == 3
