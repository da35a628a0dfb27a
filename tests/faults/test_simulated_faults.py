"""Faults of a program for a GPU: the simulated GPU refuses each, and runs the next program."""

import numpy as np
import pytest

from dlcompiler.errors import ProgramError
from dlcompiler.pipeline import build_program
from tests.passes.reading import read

RIGHT = """\
def main(A: float32[32], C: float32[32]):
    for b in blockIdx.x(4):
        allocate S: float32[8] in shared
        for t in threadIdx.x(8):
            S[t] = A[b*8 + t]
            barrier
            C[b*8 + t] = S[7 - t]
"""
BARRIER = "            barrier\n"
FAULTS = {
    "a missing barrier": (BARRIER, "", "S[7] is read before it is written"),
    "a missing barrier between blocks of work": (
        BARRIER, "            barrier\n            S[t] = 1.0\n", "race on S[",
    ),
    "a divergent barrier": (
        "            C[b*8 + t] = S[7 - t]\n", "            if t < 4:\n                barrier\n",
        "barrier",
    ),
    "a store out of bounds": ("C[b*8 + t] =", "C[b*8 + t + 1] =", "C[32] is out of bounds"),
    "a store in the memory of another": ("S[t] =", "S[0] =", "race on S[0]"),
    "memory that nothing wrote": ("S[7 - t]", "C[b*8 + t]", "is read before it is written"),
}  # fmt: skip


def arrays():
    return np.arange(32, dtype="float32"), np.zeros(32, "float32")


def program(old="", new=""):
    return build_program(read(RIGHT.replace(old, new) if old else RIGHT), "gpu")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_an_error_and_the_next_program_runs(fault):
    old, new, words = FAULTS[fault]
    with pytest.raises(ProgramError) as caught:
        program(old, new)(*arrays())
    assert words in str(caught.value)
    a, c = arrays()
    program()(a, c)
    np.testing.assert_array_equal(c.reshape(4, 8), a.reshape(4, 8)[:, ::-1])


def test_a_loop_without_an_end_stops_after_a_number_of_steps():
    endless = program("C[b*8", "for k in range(1000000000000):\n                C[b*8")
    with pytest.raises(ProgramError, match="the program takes more than 1000 steps"):
        endless.simulate(*arrays(), max_steps=1000)
