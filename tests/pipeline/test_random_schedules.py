"""Random schedules of random expressions compute what the expressions say.

2,000 cases; ``make fuzz`` tries others for as long as one likes. A failure prints the smallest case
that it found, and the line that repeats it.
"""

import pytest

from tests.fuzz.campaign import attempt
from tests.share import share_of

pytestmark = pytest.mark.campaign
CASES, AT_ONCE = 2000, 40


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_random_schedules(first):
    for seed in range(first, first + share_of(AT_ONCE, at_least=20)):
        result = attempt(seed)
        assert not result.kind, result.text
