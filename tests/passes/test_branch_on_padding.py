"""`branch_on_padding`: copies under branches, with conditions that are equal in all lanes."""

import pytest

from dlcompiler.passes import branch_on_padding
from tests.passes.examples import after, shows

COPY = """\
def main(A: float32[{n}], C: float32[64]):
    for x in threadIdx.x(16):
        allocate T: float32[64] in {scope}
        for v in {kind}(4):{pragma}
            T[x*4 + v] = if_then_else({condition}, A[x*4 + v], {other})
        for v in vectorized(4):
            C[x*4 + v] = T[x*4 + v]
"""


def copy(
    condition="x*4 + v < 60", kind="vectorized", scope="shared", n=64, other="0.0", is_marked=True
):
    pragma = "  # async_copy = 1" if is_marked and kind == "range" else ""
    text = COPY.format(condition=condition, kind=kind, scope=scope, n=n, other=other, pragma=pragma)
    return after(branch_on_padding, text)


def test_the_example_of_its_docstring():
    shows(branch_on_padding)


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("x*4 + v < 60", "x*4 < 60"),
        ("x*4 + v <= 59", "x*4 <= 59"),
        ("x*4 + v >= 8", "x*4 >= 8"),
        ("x*4 + v > 7", None),  # lane 0 compares 8 > 7, written as 4*x - 8 + v >= 0
        ("60 > x*4 + v", "60 > x*4"),
        ("x*4 + v < 60 and x > 2", "x*4 < 60 and x > 2"),
        ("x % 8*4 + v < 28", "x % 8*4 < 28"),
    ],
)
def test_conditions_that_are_the_same_in_all_lanes(condition, same):
    text = copy(condition)
    assert "if_then_else" not in text
    if same is not None:
        assert f"if {same}:" in text


@pytest.mark.parametrize(
    "condition",
    ["x*4 + v < 61", "x*3 + v < 60", "x*4 + v >= 7", "(x*4 + v) % 3 < 1", "v < 2", "x*4 - v < 60"],
)
def test_conditions_that_differ_between_lanes_stay(condition):
    assert f"if_then_else({condition}" in copy(condition)


def test_only_asynchronous_copies_to_shared_memory_branch_outside_vectors():
    assert "if_then_else" not in copy(kind="range")
    assert "if_then_else" in copy(kind="range", is_marked=False)
    assert "if_then_else" in copy(kind="range", scope="local")
    assert "if_then_else" not in copy(scope="local")


def test_a_choice_between_two_elements_stays():
    assert "if_then_else" in copy(other="A[x]")
