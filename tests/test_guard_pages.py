"""guard_pages: thousands of arrays do not use up the mappings that a process may have."""

import numpy as np

from tests.build_cycles import mappings
from tests.guard_pages import guarded_array


def test_pages_go_with_their_array():
    before = mappings()
    for number in range(100):
        array = guarded_array((3, 5), "float32", at_end=number % 2 == 0)
        array[...] = 1
        assert guarded_array((0,), np.float16).size == 0
    assert mappings() < before + 10
