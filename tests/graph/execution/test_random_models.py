"""Models of random graphs compute what the graphs mean, whatever their arena held before."""

import pytest

from tests.graph.execution.executed_graphs import check
from tests.share import share_of

CASES = share_of(2000, at_least=100)
PER_TEST = 5


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.campaign) for n in range(PER_TEST, CASES, PER_TEST))],
)
def test_models_of_random_graphs_compute_what_the_graphs_mean(first):
    for seed in range(first, min(first + PER_TEST, CASES)):
        check(seed)
