"""300 refusals that are forced show what they speak of; ``python -m tests.refusals`` does more."""

import itertools

import pytest

from tests.refusals.searching import refusals_of

COUNT, PARTS, ALLOWED = 300, 6, 0.01


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_semantic_refusals_are_right(part):
    found = itertools.chain.from_iterable(
        refusals_of(seed) for seed in itertools.count(1000 * part)
    )
    refusals = list(itertools.islice(found, COUNT // PARTS))
    unexplained = [refusal for refusal in refusals if not refusal.evidence]
    assert len(unexplained) <= ALLOWED * len(refusals), "\n".join(map(str, unexplained))
