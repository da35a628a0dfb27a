"""`eliminate_common_subexpressions`: what is computed once, and what must not be."""

from functools import partial

import pytest

from dlcompiler.passes import (
    eliminate_common_subexpressions,
    simplify,
    unroll_loops,
    vectorize_loops,
)
from tests.passes.examples import after, keeps_results, shows

share = partial(eliminate_common_subexpressions, min_cost=1)


def body(*lines):
    head = "def main(A: float32[64], B: float32[64], C: float32[64]):\n    for i in range(64):\n"
    return head + "".join(f"        {line}\n" for line in lines)


def test_the_example_of_its_docstring():
    shows(eliminate_common_subexpressions, outputs=("C", "D"))


def test_an_element_is_read_again_after_a_store():
    text = body("B[i] = A[i] + 1.0", "A[i] = B[i] + A[i]", "C[i] = A[i] + 1.0")
    changed = after(share, text, ("A", "B", "C"))
    assert changed.endswith("A[i] = B[i] + t1\n        C[i] = A[i] + 1.0\n")


@pytest.mark.parametrize(
    "value",
    [
        "if_then_else(i > 3, A[i - 4], 0.0) + if_then_else(i > 3, A[i - 4], 1.0)",
        "select(i > 3 and A[i - 4] > 0.5, 1.0, 0.0) + select(i > 3 and A[i - 4] > 0.5, 2.0, 1.0)",
    ],
)
def test_what_may_not_be_chosen_is_not_taken_out(value):
    changed = after(share, body(f"C[i] = {value}"))
    assert "= A[i - 4]\n" not in changed
    assert "t1 = i > 3" in changed


def test_what_is_computed_in_any_case_serves_the_choices_too():
    changed = after(share, body("C[i] = exp(A[i]) + if_then_else(i > 3, exp(A[i]), 0.0)"))
    assert "t1 = exp(A[i])\n        C[i] = t1 + if_then_else(i > 3, t1, 0.0)" in changed


def test_vectors_of_indices_stay():
    text = body("C[0 : +8] = A[i//8 % 4 : +8]", "B[0 : +8] = A[i//8 % 4 : +8]*2.0")
    text = text.replace("i//8", "i // 8").replace("*2.0", "*broadcast(2.0, 8)")
    changed = after(eliminate_common_subexpressions, text, ("B", "C"))
    assert "t1 = A[i // 8 % 4 : +8]\n        C[0 : +8] = t1\n" in changed


def test_loops_and_conditions_end_a_run():
    text = body("C[i] = exp(A[i])", "if i > 3:", "    B[i] = exp(A[i])")
    assert after(eliminate_common_subexpressions, text, ("B", "C")) == text


def test_cheap_expressions_stay():
    text = body("C[i*2 + 1] = A[i*2 + 1] + B[i*2 + 1]")
    assert after(eliminate_common_subexpressions, text) == text


@pytest.mark.campaign
def test_results_stay_on_random_schedules():
    late = (simplify, vectorize_loops, unroll_loops, simplify)
    assert keeps_results(share, range(400, 440))
    assert keeps_results(share, range(440, 460), prepare=late)
