"""`split_host_accelerator`: what runs on an accelerator, and what its host computes."""

from dlcompiler.passes.split_host_accelerator import split_host_accelerator
from tests.passes.examples import example
from tests.passes.reading import read

TEXT = """\
def main(A: int8[64], C: int8[64]):
    allocate T: int32[64] in vta-pynq.acc
    for i in range(64):
        T[i] = int32(A[i])
    allocate P: int8[64]
    for i in range(64):
        P[i] = A[-i + 63]
    for i in range(64):
        C[i] = int8(T[i]) + P[i]
"""


def test_the_example_of_its_docstring():
    program = split_host_accelerator(read(example(split_host_accelerator, "Before")))
    assert str(program.kernels[1]) == example(split_host_accelerator, "After")
    assert [buffer.name for buffer in program.temporaries] == ["P"]


def test_a_stage_of_the_host_between_two_of_the_accelerator_is_inside_its_part():
    program = split_host_accelerator(read(TEXT))
    # T is needed on both sides: the accelerator keeps it, so that its part goes on.
    assert len(program.kernels) == 1


def test_neighbours_are_one_program():
    twice = "".join(TEXT.splitlines(keepends=True)[:4]) + (
        "    for i in range(64):\n        C[i] = int8(T[i])\n"
    )
    program = split_host_accelerator(read(twice))
    assert len(program.kernels) == 1
