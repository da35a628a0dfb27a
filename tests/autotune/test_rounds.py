"""How well predictions ranked what was measured."""

import math
import random
import statistics

import pytest

from dlcompiler.autotune import Result, Trial, rank_correlation, recall
from dlcompiler.autotune.run.rounds import Round
from dlcompiler.space import Config


def trial(index, seconds, predicted_s):
    result = Result("crashed") if seconds is None else Result("ok", (seconds,))
    return Trial(index, index, Config({}, ""), result, 0.0, 1.0, predicted_s=predicted_s)


def test_rank_correlation_is_that_of_ranks():
    generator = random.Random(0)
    predicted = [generator.random() for _ in range(50)]
    measured = [value**3 + generator.gauss(0, 0.05) for value in predicted]

    def ranks(values):
        order = sorted(values)
        return [float(order.index(value)) for value in values]

    expected = statistics.correlation(ranks(predicted), ranks(measured))
    assert rank_correlation(predicted, measured) == pytest.approx(expected)
    assert rank_correlation(predicted, [-value for value in predicted]) == -1.0


def test_equal_values_share_their_rank():
    # Ranks 0.5, 0.5, 2 and 0, 1, 2.
    assert rank_correlation([1, 1, 2], [1, 2, 3]) == pytest.approx(math.sqrt(3) / 2)
    assert rank_correlation([1.0, 2.0], [math.inf, math.inf]) is None


@pytest.mark.parametrize("predicted", [[], [1.0]])
def test_too_few_have_no_correlation(predicted):
    assert rank_correlation(predicted, predicted) is None
    assert recall(predicted, predicted, 1) is None


def test_recall_is_the_share_of_the_fastest():
    measured = [5.0, 1.0, 2.0, math.inf, 3.0, 4.0]
    assert recall([9, 1, 2, 3, 8, 7], measured, 2) == 1.0
    assert recall([9, 1, 8, 0, 2, 7], measured, 2) == 0.5
    assert recall([0, 9, 9, 0, 9, 9], measured, 2) == 0.0
    assert recall([1, 2, 3], [math.inf] * 3, 1) is None


def test_a_complete_round_says_how_well_it_was_predicted():
    begun = Round(3, 16, 8, 0.1, (4, 5), 16)
    trials = [trial(16 + n, None if n == 7 else 1.0 + n, 2.0 + n) for n in range(8)]
    done = begun.completed([*trials, trial(24, 1.0, None)])
    assert (done.number, done.first, done.count, done.walkers) == (3, 16, 9, (4, 5))
    assert done.is_complete
    assert done.correlation == 1.0
    assert done.recall == 1.0
    assert begun.completed([trial(0, 1.0, None)]).correlation is None
