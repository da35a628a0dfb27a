"""`inject_double_buffer`: one half is filled while the other is read."""

import textwrap
from functools import partial

import numpy as np
import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.passes import inject_double_buffer, partition_loops, simplify, unroll_loops
from dlcompiler.simulate import interpret
from tests.passes.examples import after, example, shows
from tests.passes.reading import read

TEXT = example(inject_double_buffer, "Before")


def results(func, n=64):
    a, c = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    interpret(func, [a, c])
    return c


def test_the_example_of_its_docstring():
    shows(inject_double_buffer)


def test_partitioning_leaves_a_steady_loop():
    text = after(lambda f: partition_loops(simplify(inject_double_buffer(f))), TEXT)
    assert "if " not in text
    assert "for i in range(7):" in text
    assert text.count("B[0, j] = A[j]") == 1


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text,
        lambda text: text.replace("range(8):\n        alloc", "range(7):\n        alloc"),
        lambda text: text.replace(
            "        for j in range(8):\n            B[j] = A[i*8 + j]\n",
            "        for j in range(8):\n            B[j] = 1.0\n"
            "        for j in range(8):\n            B[j] = B[j] + A[i*8 + j]\n",
        ),
        lambda text: text.replace("B[j] =", "D[j] =").replace(
            "        for j in range(8):\n            C",
            "        for j in range(8):\n            B[j] = D[j]\n"
            "        for j in range(8):\n            C",
        ).replace("twice per i", "twice per i\n        allocate D: float32[8]"),
    ],
)  # fmt: skip
def test_results_stay(group, edit):
    func = read(edit(TEXT))
    if "D[" in str(func):
        with pytest.raises(ScheduleError, match="it needs D, which the loop i computes"):
            inject_double_buffer(func)
        return
    doubled = inject_double_buffer(func, split_loop=group)
    expected = results(func)
    for change in (lambda f: f, simplify, lambda f: unroll_loops(partition_loops(simplify(f)))):
        assert (results(change(doubled)) == expected).all()


def test_conditions_between_loop_and_buffer_are_those_of_the_next_iteration():
    func = read("""\
def main(A: float32[64], C: float32[64]):
    for i in range(64):
        C[i] = 0.0
    for i in range(8):
        if i >= 2 and i < 7:
            allocate B: float32[8], twice per i
            for j in range(8):
                B[j] = A[i*8 + j]
            for j in range(8):
                C[i*8 + j] = B[7 - j]*2.0
""")
    doubled = inject_double_buffer(func)
    assert "if i + 1 < 8 and (i + 1 >= 2 and i + 1 < 7):" in str(doubled)
    assert (results(doubled) == results(func)).all()


def test_two_buffers_of_one_loop():
    func = read("""\
def main(A: float32[64], C: float32[64]):
    for i in range(8):
        allocate B: float32[8], twice per i
        allocate D: float32[8], twice per i
        for j in range(8):
            B[j] = A[i*8 + j]
        for j in range(8):
            D[j] = A[63 - i*8 - j]
        for j in range(8):
            C[i*8 + j] = B[7 - j] + D[j]
""")
    doubled = inject_double_buffer(func)
    assert str(doubled).count("float32[2, 8]") == 2
    assert (results(doubled) == results(func)).all()


def test_what_only_the_fill_needs_may_be_written_in_two_statements():
    func = read("""\
def main(A: float32[64], C: float32[64]):
    allocate D: float32[8]
    for i in range(8):
        allocate B: float32[8], twice per i
        for j in range(4):
            D[j] = A[i*8 + j]
        for j in range(4):
            D[j + 4] = A[i*8 + j + 4]
        for j in range(8):
            B[j] = D[j]
        for j in range(8):
            C[i*8 + j] = B[7 - j]*2.0
""")
    doubled = inject_double_buffer(func)
    assert str(doubled).count("float32[2, 8]") == 1
    assert (results(doubled) == results(func)).all()


def test_symbolic_loops_may_run_never():
    text = TEXT.replace("range(8):\n        alloc", "range(n):\n        alloc")
    text = text.replace("A: float32[64]", "A: float32[n*8]").replace(
        "C: float32[64]", "D: float32[n], C: float32[64]"
    )
    doubled = after(inject_double_buffer, text)
    assert "if 0 < n:\n        for j" in doubled


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("for i in range(8)", "for i in parallel(8)", "the iterations of i run at once"),
        ("B[j] = A[i*8 + j]", "B[j] = C[i]", "it needs C, which the loop i computes"),
        ("        allocate B: float32[8], twice per i\n",
         "        if i < 4:\n            allocate B: float32[8], twice per i\n"
         "            for j in range(8):\n                B[j] = A[j]\n"
         "            for j in range(8):\n                C[j] = B[7 - j]\n"
         "        allocate B: float32[8], twice per i\n",
         "each part of the loop i has one of its own, under a condition"),
        ("B[7 - j]*2.0", "B[7 - j]*2.0\n            B[j] = 1.0",
         "what fills it is not apart from what reads it"),
    ],
)  # fmt: skip
def test_refusals(old, new, because):
    with pytest.raises(ScheduleError) as caught:
        inject_double_buffer(read(TEXT.replace(old, new)))
    assert str(caught.value).startswith(
        f"double buffer B: it cannot be filled one iteration ahead\n  because   {because}"
    )


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("for i in range(8)", "for i in range(1)"),
        TEXT.replace("for i in range(8)", "for i in range(0)"),
        textwrap.dedent("""\
            def main(A: float32[8], C: float32[8]):
                allocate B: float32[8], twice per i
                for j in range(8):
                    B[j] = A[j]
                for j in range(8):
                    C[j] = B[7 - j]*2.0
            """),
        TEXT.replace("B[7 - j]*2.0", "1.0"),
        # a fill that never happens, and was simplified away
        textwrap.dedent("""\
            def main(A: float32[8], C: float32[8]):
                for i in range(8):
                    allocate B: float32[1], twice per i
                    C[i] = if_then_else(i % 2 == 0 and i % 2 == 1, B[0], 0.0)
            """),
        # nothing reads it, since that was simplified away; a stage inside its fill is left
        textwrap.dedent("""\
            def main(A: float32[8], C: float32[8]):
                for i in range(8):
                    allocate B: float32[1] in shared, twice per i
                    allocate D: float32[1] in warp
                    for j in threadIdx.x(4):
                        if j < 1:
                            D[0] = A[i]
                        barrier
                        if j < 1:
                            B[j] = D[j]
                    C[i] = 1.0
            """),
    ],
)
def test_without_a_next_iteration_a_buffer_stays_single(text):
    assert after(inject_double_buffer, text) == text.replace(", twice per i", "")


def test_groups_of_two_have_fixed_places():
    run = partial(inject_double_buffer, split_loop=2)
    text = after(lambda f: simplify(unroll_loops(simplify(run(f)))), TEXT)
    assert "% 2" not in text
