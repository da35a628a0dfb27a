"""`narrow_indices`: 32 bits where all values fit, on the way too."""

import pytest

from dlcompiler.passes import narrow_indices, simplify, vectorize_loops
from tests.passes.examples import after, keeps_results, shows
from tests.share import cases_of


def program(index, extent=64):
    return f"""\
def main(A: float32[{extent}], C: float32[16]):
    for i in range({extent}):
        C[0 : +16] = A[{index}]
"""


def test_the_example_of_its_docstring():
    shows(narrow_indices)


def test_a_vector_of_indices_as_values():
    text = program("0 : +16").replace("A[0 : +16]", "float32x16(i*5 : +16:5)")
    assert "float32x16(int32(i*5) : +16:5)" in after(narrow_indices, text)


@pytest.mark.parametrize(
    "index",
    [
        "i : +16",
        "(i : +16:3) + broadcast(i, 16)",
        "broadcast(i, 16) // broadcast(3, 16)",
        "i // 3 : +16",
    ],
)
def test_what_is_quick_stays(index):
    assert after(narrow_indices, program(index)) == program(index)


@pytest.mark.parametrize(
    ("index", "fits"),
    [
        ("(i*33554432 : +16) // broadcast(3, 16)", True),  # up to 63 * 2**25 + 15
        ("(i*34087042 : +16) // broadcast(3, 16)", False),  # 63 * 34087042 + 15 == 2**31 + 13
        ("(i : +16)*broadcast(40000000, 16) // broadcast(7, 16)", False),
        ("(i : +16)*broadcast(20000000, 16) // broadcast(7, 16)", True),
        ("(i : +16) // broadcast(4294967296, 16)", False),
        ("(i : +16) % broadcast(i, 16)", False),  # may be by 0
    ],
)
def test_what_may_not_fit_stays(index, fits):
    changed = after(narrow_indices, program(index))
    assert (changed != program(index)) == fits


def test_a_symbolic_loop_stays():
    text = program("(i : +16) // broadcast(3, 16)", "n")
    assert after(narrow_indices, text) == text


def test_results_stay_on_random_schedules():
    keeps_results(narrow_indices, cases_of(range(400, 460)), prepare=(simplify, vectorize_loops))
