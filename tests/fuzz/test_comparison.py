"""Wrong elements in right results: a part of the campaign of `tests.fuzz_comparison`."""

import collections

from tests.fuzz_comparison import attempt


def test_planted_wrong_results_are_refused():
    counts = collections.Counter()
    for seed in range(40):
        counts += attempt(seed)
    assert counts.total() > 300
    assert len(counts) >= 6
