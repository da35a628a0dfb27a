"""`partition_loops`: guards cut at the outermost loop that decides them."""

from functools import partial

import pytest

from dlcompiler.passes import partition_loops
from tests.passes.examples import after, keeps_results, shows

TILED = """\
def main(A: float32[{n}], C: float32[{n}]):
    for i.outer in {outer}({outer_extent}):
        for i.inner in {inner}(32):
            if i.outer*32 + i.inner < {n}:
                C[i.outer*32 + i.inner] = A[i.outer*32 + i.inner]
"""


def tiled(outer="range", inner="range", n=100, outer_extent=4):
    return TILED.format(outer=outer, inner=inner, n=n, outer_extent=outer_extent)


def test_the_example_of_its_docstring():
    shows(partition_loops)


def test_the_rest_of_a_vectorized_loop_is_a_shorter_vector():
    text = after(partition_loops, tiled(inner="vectorized"))
    assert "for i.inner in vectorized(32):" in text
    assert "for i.inner in vectorized(4):" in text
    assert "if " not in text


def test_a_parallel_loop_stays_whole():
    text = after(partition_loops, tiled("parallel"))
    assert "for i.outer in parallel(4):\n        if i.outer < 3:" in text
    assert "for i.inner in range(4):" in text


def test_a_symbolic_extent_has_symbolic_ends():
    text = after(partition_loops, tiled(n="n", outer_extent="(n + 31) // 32"))
    assert (
        "for i.outer in range(n // 32):\n        for i.inner in range(32):\n            C" in text
    )
    assert "if " not in text


def test_a_symbolic_vectorized_rest_keeps_its_guard():
    text = after(partition_loops, tiled("range", "vectorized", "n", "(n + 31) // 32"))
    assert text.count("vectorized(32)") == 2
    assert text.count("if ") == 1


CHAIN = """\
def main(A: float32[12], B: float32[12], C: float32[32]):
    for i in range(32):  # loop_partition_hint = 1
        C[i] = if_then_else(i < 3, A[i], if_then_else(i < 7, B[i - 3], if_then_else(i < 20, 1.0, 2.0)))
"""  # noqa: E501
CASES = """\
def main(A: float32[12], B: float32[12], C: float32[32]):
    for i in range(3):  # loop_partition_hint = 1
        C[i] = A[i]
    for i in range(4):  # loop_partition_hint = 1
        C[i + 3] = B[i]
    for i in range(13):  # loop_partition_hint = 1
        C[i + 7] = 1.0
    for i in range(12):  # loop_partition_hint = 1
        C[i + 20] = 2.0
"""
CHAIN_OF_VECTORS = """\
def main(A: float32[64], C: float32[64]):
    for i in range(8):  # loop_partition_hint = 1
        for lane in vectorized(8):
            C[i*8 + lane] = if_then_else(i*8 + lane < 12, A[i*8 + lane], if_then_else(i*8 + lane < 24, 1.0, if_then_else(i*8 + lane < 40, 2.0, 3.0)))
"""  # noqa: E501


CLAMPED = """\
def main(A: float32[20], C: float32[40]):
    for i in range(5):  # loop_partition_hint = {hint}
        for lane in vectorized(8):
            C[i*8 + lane] = A[max((i*8 + lane - 5), 0)] + A[min(i*4 + lane//2 + 2, 19)]
"""


def test_an_index_that_is_clamped_at_the_edges_is_not_inside():
    text = after(partition_loops, CLAMPED.format(hint=1))
    assert "for i in range(3):" in text
    assert "C[i*8 + lane + 8] = A[i*8 + lane + 3] + A[i*4 + lane // 2 + 6]" in text
    assert (text.count("max("), text.count("min(")) == (1, 1)
    assert "for i in range(5):" in after(partition_loops, CLAMPED.format(hint=0))


def test_a_chain_of_choices_gets_a_loop_for_each_case():
    assert after(partition_loops, CHAIN) == CASES


def test_a_vector_that_two_cases_share_keeps_their_choice():
    text = after(partition_loops, CHAIN_OF_VECTORS)
    assert text.count("if_then_else") == 1
    assert "C[lane + 8] = if_then_else(lane + 8 < 12, A[lane + 8], 1.0)" in text


def test_two_long_cases_get_loops_beside_a_tail():
    text = after(partition_loops, """\
def main(A: float32[43, 500], C: float32[43, 1000]):
    for i in range(43):
        for j in range(32):  # loop_partition_hint = 1
            for lane in vectorized(32):
                if j*32 + lane < 1000:
                    C[i, j*32 + lane] = if_then_else(j*32 + lane < 500, A[i, j*32 + lane], 0.0)
""")  # fmt: skip
    assert "C[i, j*32 + lane] = A[i, j*32 + lane]" in text
    assert "C[i, j*32 + lane + 512] = 0.0" in text
    assert text.count("for j in range(15):") == 2
    assert (text.count("if_then_else"), text.count("if ")) == (1, 0)


def test_a_border_is_split_from_all_rows_of_an_image():
    text = after(partition_loops, """\
def main(A: float32[56, 56], C: float32[59, 59]):
    for i in range(59):  # loop_partition_hint = 1
        for j in range(8):  # loop_partition_hint = 1
            for lane in vectorized(8):
                if j*8 + lane < 59:
                    C[i, j*8 + lane] = if_then_else(i >= 1 and i < 57 and j*8 + lane >= 1 and j*8 + lane < 57, A[i - 1, j*8 + lane - 1], 0.0)
""")  # noqa: E501  # fmt: skip
    assert "for i in range(56):" in text
    assert "C[i + 1, j*8 + lane + 8] = A[i, j*8 + lane + 7]" in text
    assert "if " not in text


def test_a_guard_at_both_ends_leaves_two_rims():
    text = after(partition_loops, """\
def main(A: float32[64], C: float32[66]):
    for i in range(66):
        C[i] = 0.0
        if i >= 1 and i < 65:
            C[i] = A[i - 1]
""")  # fmt: skip
    assert "if " not in text
    assert "for i in range(64):\n        C[i + 1] = 0.0\n        C[i + 1] = A[i]" in text


def test_a_triangular_loop_gets_its_bound():
    assert after(partition_loops, """\
def main(A: float32[64, 64], C: float32[64]):
    for i in range(64):
        for k in range(64):
            if k <= i:
                C[i] += A[i, k]
""").endswith("        for k in range(i + 1):\n            C[i] += A[i, k]\n")  # fmt: skip


@pytest.mark.parametrize(
    "guard", ["i.inner*i.inner < 100", "A[i.outer] < 0.5", "i.outer % 2 < 1", "i.outer == 2"]
)
def test_other_conditions_stay(guard):
    text = tiled().replace("i.outer*32 + i.inner < 100", guard)
    assert after(partition_loops, text) == text


def test_a_condition_that_a_loop_changes_stays():
    text = """\
def main(A: int32[4], C: int32[64]):
    for i in range(64):
        if int32(i) < C[0]:
            C[0] = A[0]
"""
    assert after(partition_loops, text) == text


def test_a_guard_that_rarely_holds_is_not_worth_a_copy():
    text = """\
def main(A: float32[64], C: float32[64]):
    for i in range(64):
        C[i] = 0.0
        for k in range(32):
            if i + k < 40:
                C[i] += A[i + k]
"""
    assert "for k in range(max(min(32, -i + 40), 0)):" in after(partition_loops, text)


def test_copies_stop_where_the_program_would_grow_too_much():
    text = after(partial(partition_loops, max_growth=1.2), tiled())
    assert "for i.outer in range(4):\n        for i.inner in range(min(32, " in text


def test_padding_is_split_on_request():
    text = """\
def main(A: float32[64], C: float32[66]):
    for i in range(66):
        C[i] = if_then_else(i >= 1 and i < 65, A[i - 1], 0.0)
"""
    assert after(partition_loops, text) == text
    hinted = after(
        partition_loops, text.replace("range(66):", "range(66):  # loop_partition_hint = 1")
    )
    assert hinted.endswith("C[i + 1] = A[i]\n    C[65] = 0.0\n")
    assert "if_then_else" not in hinted


@pytest.mark.campaign
def test_results_stay_on_random_schedules():
    assert keeps_results(partition_loops, range(400, 440), is_idempotent=False)
