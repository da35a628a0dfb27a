"""`serialize_vectorized_loops`: lanes one after another, marked."""

import pytest

from dlcompiler.passes import serialize_vectorized_loops
from tests.passes.examples import after, keeps_results, shows

PLAIN = """\
def main(A: float32[4, 2], C: float32[4, 2]):
    for i in parallel(4):
        for j in unrolled(2):
            C[i, j] = A[i, j]
"""


def test_the_example_of_its_docstring():
    shows(serialize_vectorized_loops)


def test_other_loops_stay():
    assert after(serialize_vectorized_loops, PLAIN) == PLAIN


@pytest.mark.campaign
def test_no_result_changes():
    assert keeps_results(serialize_vectorized_loops, range(60)) >= 5
