import random

import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.te.notation.program import program_text, read_program

MATMUL = """
# a product
C[i, j] += A[i, k] * B[k, j]   # for all k
A: float32[512, 256]
  B: [256, 128]  # float32
"""


def test_statements_and_shapes():
    program = read_program(MATMUL)
    assert repr(program.args) == (
        "(Tensor(A: float32[512, 256]), Tensor(B: float32[256, 128]), Tensor(C: float32[512, 128]))"
    )
    assert [tensor.name for tensor in program.outputs] == ["C"]


def test_the_order_of_the_lines_is_that_of_the_parameters():
    program = read_program("B: [4]\nA: [4]\nC[i] = A[i] - B[i]\nD[i] = C[i] + 1.0\nE[i] = A[i]")
    assert [tensor.name for tensor in program.args] == ["B", "A", "D", "E"]


def test_axes_symbols_and_numbers():
    program = read_program("C[i] += A[i, k] * a\nA: float64[n, min(m, 8)]\nk: 2 .. 5\na: float64")
    assert program.outputs[0].dtype == "float64"
    assert [str(extent) for extent in program.args[0].shape] == ["n", "min(m, 8)"]
    assert program.outputs[0].op.reduce_axis[0].start == 2


def test_what_keywords_say_beside_the_text():
    program = read_program("C[i] = A[i] + B[i]\nB: [4]", A=((4,), "float32"))
    assert [tensor.name for tensor in program.args] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("C[i, j] += A[i, k] * \nA: [4, 4]", (1, 21), "not readable"),
        ("A: [4, 4]\n\n  C[i] = A[i, j]", (3, 15), "the axis j is not on the left"),
        ("A: [4]\nC[i] = A[i] + open(1)", (2, 15), ""),
        ("C[i] = A[i]\nA: float31[4]", (2, 4), "no such dtype: float31"),
        ("C[i] = A[i]\n  A: [4,,4]", (2, 6), "an extent is missing"),
        ("C[i] = A[i]\nA: ", (2, 4), "the declaration of A cannot be read"),
        ("C[i] = A[i]\nA: [4]\nA: [5]", (3, 1), "A is declared twice"),
        ("C[i] = A[i]\nA: [4]\n B: [5]", (3, 2), "B is declared, but does not occur"),
        ("C[i] = A[i]\nA: [-4]", (2, 1), ""),
        ("C[i] = A[i]\n A: [8, y", (2, 5), "not an extent: [8, y"),
        ("C[i] = A[i]", (1, 8), "A is not declared"),
        ("C[i] = A[i, i]\nA: [4]", (1, 8), "A has 1 dimension"),
        ("(C[i] =\n   ]", (2, 4), ""),
    ],
)
def test_errors_point_at_the_character(text, place, problem):
    with pytest.raises(ExpressionError) as caught:
        read_program(text)
    error = caught.value
    assert problem in error.problem
    assert error.place == place, error
    line, column = place
    first, caret = error.excerpt.splitlines()
    shown = text.splitlines()[line - 1]
    assert first.strip() == shown.strip()
    assert caret.index("^") - (len(first) - len(first.lstrip())) == column - 1 - (
        len(shown) - len(shown.lstrip())
    )


@pytest.mark.parametrize(
    "text",
    ["", "A: [4]", "x" * 20_000, "C[i] = A[i]\nA: [" + "9" * 30 + "]", "\x00",
     "A: [n)(]\nC[i]=A[i]",
     "C[i] = __import__('os')\ni: 4", "C[i] = A[i]\nA: [__import__('os')]",
     "C[i] = A[i]\nA: [4]\ni: 0 .. 0x10"],
)  # fmt: skip
def test_refuses_what_is_no_program(text):
    with pytest.raises(ExpressionError):
        read_program(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("C[i] = A[i]", "declare it: a line such as A: float32[512, 512]"),
        ("C[i] = 2.0", "give it: a line such as i: 8"),
    ],
)
def test_hints_tell_of_lines(text, hint):
    with pytest.raises(ExpressionError) as caught:
        read_program(text)
    assert caught.value.hint == hint


def test_what_is_written_reads_back():
    for text in (MATMUL, "C[i] += A[i + k]\nA: float64[9]\nk: 2 .. 5\ni: 4",
                 "P[i], V[i] = argmax(A[i, k], axis=k)\nA: int32[n, 8]"):  # fmt: skip
        program = read_program(text)
        written = program_text(*program.outputs)
        again = read_program(written)
        assert program_text(*again.outputs) == written
        assert te.notation_text(*again.outputs) == te.notation_text(*program.outputs)


def test_random_texts_are_read_or_refused():
    rng = random.Random(3)
    for _ in range(400):
        characters = list(MATMUL)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(characters))
            characters[place] = rng.choice(
                ["", "[", "]", ":", "\n", "=", "9", "k", "(", '"', "..", "\t"]
            )
        text = "".join(characters)
        line, column = _place_of_error(text)
        lines = text.splitlines()
        assert 1 <= line <= len(lines), text
        assert 1 <= column <= len(lines[line - 1].expandtabs()) + 2, (text, line, column)


def _place_of_error(text):
    try:
        read_program(text)
    except ExpressionError as error:
        return error.place or (1, 1)
    return 1, 1
