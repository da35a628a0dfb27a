"""`vectorize_loops`: vectors where they are right, masks where lanes differ, loops where not."""

import textwrap

import numpy as np
import pytest

from dlcompiler.ir import verify_func
from dlcompiler.passes import instrument_bounds, simplify, vectorize_loops
from dlcompiler.simulate import interpret
from tests.passes.examples import after, shows
from tests.passes.reading import read


def vectorized(text, outputs=("C",)):
    return after(lambda func: simplify(vectorize_loops(func)), text, outputs)


def becomes(before, expected, outputs=("C",)):
    assert vectorized(before, outputs) == textwrap.dedent(expected).lstrip("\n")


def agrees(text, *shapes, outputs=("C",), dtype="float32", values=None):
    """Interpret a program before and after, with its accesses checked, too."""
    func = read(textwrap.dedent(text), outputs)
    vector = vectorize_loops(func)
    results = []
    for program in (func, vector, instrument_bounds(vector)):
        verify_func(program)
        rng = np.random.default_rng(3)
        arrays = [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]
        interpret(program, [*arrays, *(values or ())])
        results.append([array.tolist() for array in arrays])
    assert results[0] == results[1] == results[2]
    return str(vector)


def test_the_example_of_its_docstring():
    shows(vectorize_loops, lambda func: simplify(vectorize_loops(func)))


def test_a_guard_runs_a_vector_where_it_holds_for_all_lanes_and_a_mask_where_for_some():
    becomes(
        """
        def main(A: float32[30], C: float32[30]):
            for i in range(4):
                for j in vectorized(8):
                    if i*8 + j < 30:
                        C[i*8 + j] = A[i*8 + j]
        """,
        """
        def main(A: float32[30], C: float32[30]):
            for i in range(4):
                if i*8 + 7 < 30:
                    C[i*8 : +8] = A[i*8 : +8]
                else:
                    j.on = (i*8 : +8) < broadcast(30, 8)
                    C[i*8 : +8] = (A[i*8 : +8] where j.on) where j.on
        """,
    )


def test_narrow_elements_of_a_tail_are_taken_one_by_one():
    text = vectorized(
        """
        def main(A: int8[30], C: int8[30]):
            for i in range(4):
                for j in vectorized(8):
                    if i*8 + j < 30:
                        C[i*8 + j] = A[i*8 + j]
        """
    )
    assert "for j in range(8):" in text
    assert "where" not in text


def test_a_guard_from_both_sides():
    agrees(
        """
        def main(A: float32[30], s: float32[3], C: float32[30]):
            for i in range(4):
                for j in vectorized(8):
                    if i*8 + j < 30 and i*8 + j >= 3 and i < 3:
                        C[i*8 + j] = A[i*8 + j]*s[i]
                    else:
                        if i*8 + j < 30:
                            C[i*8 + j] = s[0] - A[i*8 + j]
        """,
        (30,),
        (3,),
        (30,),
    )


def test_extents_are_cut_into_powers_of_two():
    becomes(
        """
        def main(A: float32[103], C: float32[103]):
            for i in vectorized(7):
                C[i] = A[i]
            for i in vectorized(96):
                C[i + 7] = A[i + 7]
        """,
        """
        def main(A: float32[103], C: float32[103]):
            C[0 : +4] = A[0 : +4]
            C[4 : +2] = A[4 : +2]
            C[6] = A[6]
            for i.round in range(3):
                C[i.round*32 + 7 : +32] = A[i.round*32 + 7 : +32]
        """,
    )


def test_a_long_prime_extent_leaves_a_rest():
    text = agrees(
        """
        def main(A: float32[131], C: float32[131]):
            for i in vectorized(131):
                C[i] = A[i] + 1.0
        """,
        (131,),
        (131,),
    )
    assert "for i.round in range(2):" in text


def test_an_extent_known_at_run_time_ends_in_a_mask():
    program = """
        def main(n: index, A: float32[n], C: float32[n]):
            for i in vectorized(n):
                C[i] = A[i]
        """
    becomes(
        program,
        """
        def main(n: index, A: float32[n], C: float32[n]):
            for i.round in range(n // 16):
                C[i.round*16 : +16] = A[i.round*16 : +16]
            if n // 16*16 < n:
                i.lane.on = (n // 16*16 : +16) < broadcast(n, 16)
                C[n // 16*16 : +16] = (A[n // 16*16 : +16] where i.lane.on) where i.lane.on
        """,
    )
    func = vectorize_loops(read(textwrap.dedent(program)))
    for n in (0, 1, 15, 16, 17, 37):
        a, c = np.arange(n, dtype="float32"), np.full(n, 7, "float32")
        interpret(func, [n, a, c])
        assert c.tolist() == a.tolist()


def test_a_choice_that_guards_a_load_is_a_load_under_a_mask():
    becomes(
        """
        def main(A: float32[7], C: float32[4, 8]):
            for i in range(4):
                for j in vectorized(8):
                    C[i, j] = if_then_else(j >= 1, A[j - 1], 0.0)
        """,
        """
        def main(A: float32[7], C: float32[4, 8]):
            for i in range(4):
                j.on = (0 : +8) >= broadcast(1, 8)
                C[i, 0 : +8] = (A[-1 : +8] where j.on)
        """,
    )


CHOICES = {
    "two sides": "if_then_else(j < 3, A[j] + 1.0, A[j - 3]*2.0)",
    "minus zero": "if_then_else(j < 3, A[j], -0.0)",
    "nested": "if_then_else(j >= 2, if_then_else(A[j - 2] > 0.0, A[j - 2], A[j + 1]), A[0])",
    "by data": "if_then_else(A[j] > 0.0, A[j], s[0])",
    "gather": "if_then_else(A[j] >= 0.0 and A[j] < 8.0, B[index(A[j])], 1.0)",
    "or": "if_then_else(j < 2 or A[j - 2] > 0.0, 1.0, A[j - 2])",
    "one element for all": "if_then_else(j < 3, s[2], 0.0)",
    "an element that exists for no lane": "if_then_else(j >= 8, s[9], 2.0)",
    "shared condition, data inside": "if_then_else(s[0] > 0.0, "
    "if_then_else(A[j] > 0.0, B[j], s[1]), B[j])",
    "shared and lane": "if_then_else(s[0] > 0.0 and j < 3, A[j], B[j])",
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name):
    text = agrees(
        f"""
        def main(A: float32[16], B: float32[8], s: float32[3], C: float32[8]):
            for j in vectorized(8):
                C[j] = {CHOICES[name]}
        """,
        (16,),
        (8,),
        (3,),
        (8,),
    )
    assert "for" not in text


def test_a_condition_on_data_masks_an_update():
    text = agrees(
        """
        def main(A: float32[8, 5], C: float32[8]):
            for i in vectorized(8):
                C[i] = 0.0
            for i in vectorized(8):
                for k in range(5):
                    if A[i, k] > 0.0:
                        C[i] += A[i, k]
        """,
        (8, 5),
        (8,),
    )
    assert "for k in range(5):\n        i.on = A[0 : +8, k] > broadcast(0.0, 8)" in text
    assert "where i.on" in text


def test_values_of_two_results():
    text = agrees(
        """
        def main(A: float32[8, 5], P: float32[8], V: float32[8]):
            for i in vectorized(8):
                P[i] = 0.0
                V[i] = A[i, 0]
            for k in range(4):
                for i in vectorized(8):
                    p = select(A[i, k + 1] > V[i], 1.0, P[i])
                    v = max(A[i, k + 1], V[i])
                    P[i] = p
                    V[i] = v
        """,
        (8, 5),
        (8,),
        (8,),
        outputs=("P", "V"),
    )
    assert "P[0 : +8] = p" in text


def test_a_buffer_inside_the_loop_gets_a_copy_for_each_lane():
    text = agrees(
        """
        def main(A: float32[12, 3], C: float32[12]):
            for i in vectorized(12):
                allocate t: float32[3] in local
                for k in range(3):
                    t[k] = A[i, k]*2.0
                C[i] = t[0] - t[2]
        """,
        (12, 3),
        (12,),
    )
    assert "allocate t: float32[3, 12] in local" in text
    assert "t[k, 0 : +8] = " in text


def test_one_prefetch_for_each_line():
    text = vectorized(
        """
        def main(A: float32[99], C: float32[32]):
            for j in vectorized(32):
                prefetch A[j + 32]
                C[j] = A[j]
        """
    )
    assert "    prefetch A[32]\n    prefetch A[48]\n    C[0 : +32]" in text


SERIAL = {
    "one element for all lanes": "C[0] = A[j]",
    "an inner loop by lane": "for k in range(j):\n                    C[j] = A[k]",
    "an assertion by lane": "assert A[j] < 99.0, 'large'",
}


@pytest.mark.parametrize("name", SERIAL)
def test_what_has_no_vector_form_stays_a_loop(name):
    text = vectorized(
        f"""
        def main(A: float32[8], C: float32[8]):
            for j in vectorized(8):
                C[j] = A[j]
                {SERIAL[name]}
        """
    )
    assert "C[0 : +8] = A[0 : +8]\n    for j in range(8):\n" in text


def test_an_assertion_by_lane_under_a_mask_keeps_the_whole_guard_a_loop():
    text = agrees(
        """
        def main(A: float32[8], C: float32[8]):
            for j in vectorized(8):
                C[j] = 0.0
            for j in vectorized(8):
                if A[j] > 0.0:
                    C[j] = A[j]
                    assert A[j] > 0.0, 'not positive'
        """,
        (8,),
        (8,),
    )
    assert "    for j in range(8):\n        if A[j] > 0.0:" in text


def test_vectors_hold_no_more_than_machines_can():
    text = vectorized(
        """
        def main(A: float64[64], C: float64[64]):
            for j in vectorized(64):
                C[j] = A[j]
        """
    )
    assert "C[0 : +32]" in text
    assert "C[32 : +32]" in text
