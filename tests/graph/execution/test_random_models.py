"""Models of random graphs compute what the graphs mean, whatever their arena held before.

These are the first of the 2,000 that ``make random-models`` tries; its last output is kept here.
"""

import re
from pathlib import Path

import pytest

from tests.graph.execution.executed_graphs import check
from tests.share import share_of

KEPT = Path(__file__).with_name("random_models.txt")
CASES = share_of(400, at_least=100)
PER_TEST = 5
LATER = pytest.mark.campaign


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=LATER) for n in range(PER_TEST, CASES, PER_TEST))],
)
def test_models_of_random_graphs_compute_what_the_graphs_mean(first):
    for seed in range(first, min(first + PER_TEST, CASES)):
        check(seed)


def test_all_random_models_were_right_when_they_were_last_tried():
    assert re.search(r"^2000 cases, 0 failed$", KEPT.read_text(encoding="utf-8"), re.MULTILINE)
