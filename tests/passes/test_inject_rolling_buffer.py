"""`inject_rolling_buffer`: what two iterations share is computed once."""

import numpy as np
import pytest

from dlcompiler.passes import inject_rolling_buffer, partition_loops, simplify, unroll_loops
from dlcompiler.simulate import interpret
from tests.passes.examples import after, example, shows
from tests.passes.reading import read

TEXT = example(inject_rolling_buffer, "Before")


def results(func, rows=17):
    a = np.arange(rows * 16, dtype="float32").reshape(rows, 16)
    c = np.zeros((8, 16), "float32")
    interpret(func, [a, c])
    return c


def test_the_example_of_its_docstring():
    shows(inject_rolling_buffer)


def test_partitioning_leaves_a_steady_loop_over_what_is_new():
    text = after(lambda f: partition_loops(simplify(inject_rolling_buffer(f))), TEXT)
    assert "if " not in text
    assert "for y in range(7):\n        for P.y in range(2):" in text


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text,
        lambda text: text.replace("for y in range(8)", "for y in unrolled(8)"),
        lambda text: text.replace("for P.y in range(3)", "for P.y in parallel(3)"),
        lambda text: text.replace("for x in range(16):\n                P[",
                                  "for x in parallel(16):\n                P["),
        lambda text: text.replace(
            "        for P.y in range(3):\n",
            "        for r in range(3):\n            for x in range(16):\n"
            "                P[r, x] = 5.0\n        for P.y in range(3):\n",
        ).replace("*2.0", "*2.0 + P[P.y, x]*2.0"),
    ],
)  # fmt: skip
def test_results_stay(edit):
    func = read(edit(TEXT))
    expected = results(func)
    rolled = inject_rolling_buffer(func)
    assert rolled is not func
    for change in (lambda f: f, simplify, lambda f: unroll_loops(partition_loops(simplify(f)))):
        assert (results(change(rolled)) == expected).all()


def test_two_buffers_of_one_loop():
    func = read("""\
def main(A: float32[17, 16], C: float32[8, 16]):
    for y in range(8):
        allocate P: float32[4, 16], rolling by [1, 0] per y
        allocate Q: float32[3, 16], rolling by [1, 0] per y
        for P.y in range(4):
            for x in range(16):
                P[P.y, x] = A[y + P.y, x]*2.0
        for Q.y in range(3):
            for x in range(16):
                Q[Q.y, x] = P[Q.y, x] + P[Q.y + 1, x]
        for x in range(16):
            C[y, x] = Q[0, x]*3.0 + Q[2, x]
""")
    rolled = inject_rolling_buffer(func)
    assert "P[(y*1 + P.y) % 4, x] = A[y + P.y, x]*2.0" in str(rolled)
    assert "rolling" not in str(rolled)
    assert (results(rolled) == results(func)).all()


def test_a_buffer_inside_another_part_is_made_again_in_each_copy():
    func = read("""\
def main(A: float32[17, 16], C: float32[8, 16]):
    for y in range(8):
        allocate P: float32[3, 16], rolling by [1, 0] per y
        for P.y in range(3):
            allocate D: float32[16]
            for x in range(16):
                D[x] = A[y + P.y, x]*2.0
            for x in range(16):
                P[P.y, x] = D[15 - x]
        for x in range(16):
            C[y, x] = P[0, x] + P[2, x]
""")
    rolled = inject_rolling_buffer(func)
    assert "if P.y >= 2:\n                    allocate D: float32[16]" in str(rolled)
    assert (results(rolled) == results(func)).all()


def test_the_loop_of_a_buffer_may_be_gone():
    text = TEXT.replace("for y in range(8)", "for z in range(3)")
    text = text.replace(
        "    for z in range(3):", "    for y in range(1):\n        for z in range(3):"
    )
    lines = text.splitlines()
    body = "\n".join(lines[:3] + [f"    {line}" for line in lines[3:]]) + "\n"
    func = simplify(read(body))
    assert "for y" not in str(func)
    assert inject_rolling_buffer(func) is not None
    assert (results(inject_rolling_buffer(func)) == results(func)).all()
