"""Planning of batches: the expected improvement, and sets of points that differ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler.autotune.tuners.planning import diverse, expected_improvement


def test_expected_improvement_is_that_of_a_normal_variable():
    draws = np.random.default_rng(0).normal(1.0, 2.0, 400_000)
    sampled = np.maximum(draws - 1.5, 0.0).mean()
    (computed,) = expected_improvement(np.array([1.0]), np.array([2.0]), 1.5)
    assert computed == pytest.approx(sampled, rel=0.01)


def test_more_uncertain_and_better_points_promise_more():
    same, wide, better = expected_improvement(
        np.array([0.0, 0.0, 1.0]), np.array([0.1, 1.0, 0.1]), 1.0
    )
    assert same < better < wide + 1
    assert same < wide


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(0, 4), st.integers(1, 50), st.integers(0, 100))
def test_a_choice_has_each_point_once_and_the_best_first(n, knobs, count, seed):
    generator = np.random.default_rng(seed)
    scores = generator.random(n)
    chosen = diverse(scores, generator.integers(0, 4, (n, knobs)), count)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, count)
    assert chosen[0] == np.argmax(scores)
