"""Sampling ends when the median is known, and gives up what is far from the best."""

import itertools
import math
import random

import pytest

from dlcompiler.runtime import sampling, timing
from dlcompiler.runtime.sampling import Effort, half_width, median_interval, sampled, tells_enough


class Clock:
    """A clock that only calls move."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def call(self, *seconds):
        turns = itertools.cycle(seconds)

        def advance():
            self.now += next(turns)

        return advance


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    monkeypatch.setattr(sampling, "time", made)
    return made


@pytest.mark.parametrize("n", [6, 9, 20, 51])
def test_the_interval_covers_the_median_as_often_as_it_says(n):
    generator = random.Random(n)
    hits = 0
    for _ in range(2000):
        low, high = median_interval([generator.expovariate(1.0) for _ in range(n)])
        hits += low <= math.log(2) <= high
    assert 0.94 <= hits / 2000 <= 0.99


def test_few_samples_give_their_range():
    assert median_interval([3.0]) == (3.0, 3.0)
    assert median_interval([3.0, 1.0, 2.0, 9.0]) == (1.0, 9.0)
    assert half_width([1.0, 2.0, 3.0]) == 0.5


def test_a_steady_call_needs_few_samples(clock):
    found = sampled(clock.call(4e-3), Effort(budget_s=3.0))
    assert found.timing.samples_s == pytest.approx((4e-3,) * 5)
    assert not found.is_noisy


def test_a_call_with_a_little_noise_needs_more(clock):
    generator = random.Random(0)
    found = sampled(
        clock.call(*(1e-3 * generator.gauss(1, 0.02) for _ in range(997))), Effort(budget_s=3.0)
    )
    assert 5 < found.timing.n < 60
    assert half_width(found.timing.samples_s) <= Effort().tight
    assert not found.is_noisy


def test_an_unsteady_call_ends_with_the_budget_and_is_called_noisy(clock):
    found = sampled(clock.call(1e-3, 4e-3), Effort(budget_s=0.1))
    assert 30 < found.timing.n < 50
    assert found.is_noisy


def test_the_number_of_samples_is_bounded(clock):
    assert sampled(clock.call(1e-3, 4e-3), Effort(most=7)).timing.n == 7
    assert sampled(clock.call(0.1), Effort(least=5)).timing.n == 5, "whatever the budget"
    assert sampled(clock.call(1.0), Effort(least=5)).timing.n == 3, "but for very slow ones"


def test_a_call_far_from_the_best_is_given_up(clock):
    slow = clock.call(5e-3)
    assert sampled(slow, Effort(), best_s=1e-3).timing.n == 2
    assert sampled(slow, Effort(), best_s=1e-3, seen_s=[5e-3]).timing.n == 1
    assert sampled(slow, Effort(), best_s=1.5e-3, seen_s=[5e-3]).timing.n == 2
    assert sampled(slow, Effort(), best_s=2e-3).timing.n == 3
    assert sampled(slow, Effort(), best_s=3e-3).timing.n >= 5
    assert not sampled(slow, Effort(), best_s=2e-3).is_noisy


def test_first_calls_tell_enough_only_if_they_are_long_and_agree():
    assert tells_enough([0.07, 0.05], best_s=1e-3)
    assert not tells_enough([0.07, 3e-3], best_s=1e-3)
    assert not tells_enough([8e-3, 8e-3], best_s=1e-4), "the caches may have been cold"
    assert not tells_enough([0.07, 0.05], best_s=None)
    assert not tells_enough([0.07], best_s=1e-3)


def test_one_slow_time_does_not_end_it(clock):
    found = sampled(clock.call(*(50e-3, *[2e-3] * 1000)), Effort(), best_s=2e-3)
    assert found.timing.n >= 5
    assert found.timing.median_s == pytest.approx(2e-3)


def test_before_each_sample_something_can_be_done(clock):
    order = []
    sampled(
        lambda: order.append("call") or clock.call(1e-4)(),
        Effort(least=5, most=5),
        before=lambda: order.append("before"),
    )
    assert order == ["before", "call"] * 5


def test_short_calls_are_timed_in_batches(clock):
    found = sampled(clock.call(5e-6), Effort())
    assert found.timing.batch >= 20
    assert found.timing.median_s == pytest.approx(5e-6)
