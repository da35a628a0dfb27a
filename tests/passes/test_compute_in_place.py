"""`compute_in_place`: results take the places of operands that nobody needs any more."""

import pytest

from dlcompiler.passes import compute_in_place
from dlcompiler.target import resolve
from tests.passes.examples import after, shows

VTA = resolve("vta-pynq")
TEXT = """\
def main(A: int32[4, 16], B: int32[4, 16], C: int32[4, 16]):
    allocate S: int32[4, 16] in {scope}
    allocate T: int32[4, 16] in {scope}
    for i in range(4):
        for j in range(16):
            S[i, j] = A[i, j]
{work}
    for i in range(4):
        for j in range(16):
            C[i, j] = {result}
"""
SHIFTED = """\
    for i in range(4):
        for j in range(16):
            T[i, j] = {value}"""


def in_place(func, target=VTA):
    return compute_in_place(func, target=target)


def text(value="S[i, j] >> 8", result="T[i, j]", scope="vta-pynq.acc", work=SHIFTED, target=VTA):
    whole = TEXT.format(work=work.format(value=value), result=result, scope=scope)
    return after(lambda func: in_place(func, target), whole)


def test_the_example_of_its_docstring():
    shows(compute_in_place, in_place)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"result": "T[i, j] + S[i, j]"}, "the operand is read later"),
        ({"value": "S[-i + 3, j] >> 8"}, "it is read at another place"),
        ({"value": "5 - S[i, j]"}, "an instruction writes over its first operand"),
        ({"scope": "local"}, "no elementwise instruction writes this memory"),
        ({"target": resolve("cpu")}, "a CPU has no such instructions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_must_stay(options, why):
    assert "allocate T" in text(**options), why


def test_an_operand_that_another_iteration_reads_stays():
    work = """\
    for k in range(2):
        for i in range(4):
            for j in range(16):
                T[i, j] = {value}"""
    assert "allocate T" in text("S[i, j] >> 8", work=work)


def test_an_operand_that_is_made_in_the_same_loop_and_read_shifted_stays():
    work = """\
    for i in range(4):
        for j in range(16):
            S[i, j] = B[i, j]
            T[i, j] = {value}"""
    assert "allocate T" in text("S[i, j] >> 8", work=work)
