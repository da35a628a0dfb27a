"""The figures of parallel loops are measured as they say."""

import pytest

from dlcompiler.bench import threads
from dlcompiler.runtime.threads import set_num_threads


@pytest.mark.parametrize("count", [1, 3])
def test_launches_are_timed_inside_the_kernel(count):
    set_num_threads(count)
    try:
        found = threads.dispatch(rounds=5)
    finally:
        set_num_threads(None)
    assert 0 <= found.spinning_s < 30
    assert 0 < found.meeting_asleep_s < 30


def test_both_products_are_measured_alone_and_in_turn():
    found = threads._alternation(size=64, groups=1, calls=4)
    assert min(found.own_alone_s, found.numpy_alone_s) > 0
    assert found.own == found.own_in_turn_s / found.own_alone_s
    assert found.numpy == found.numpy_in_turn_s / found.numpy_alone_s
