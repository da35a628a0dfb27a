"""Random schedules for the threads of a device compute what the expressions say, in the simulator.

2,000 cases; ``python -m tests.fuzz_schedules --threads`` tries others.
"""

import pytest

from tests.fuzz.campaign import attempt
from tests.fuzz.threads import ThreadWalk
from tests.share import share_of

pytestmark = pytest.mark.campaign
CASES, AT_ONCE = 2000, 40


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_random_schedules(first):
    for seed in range(first, first + share_of(AT_ONCE, at_least=20)):
        result = attempt(seed, walk=ThreadWalk)
        assert not result.kind, result.text
