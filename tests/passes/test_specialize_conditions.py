"""`specialize_conditions`: a body of its own for sizes that fulfil conditions."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.arith import Interval
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import index_const, specialize
from dlcompiler.passes import specialize_conditions
from dlcompiler.passes.specialize_conditions import facts_of
from dlcompiler.simulate import interpret
from tests.passes.examples import shows
from tests.passes.reading import read

TEXT = """\
def main(A: float32[m, n], C: float32[m, n]):
    for i in range((m + 3) // 4):
        for ii in range(4):
            if i*4 + ii < m:
                for j in range(max(n, 8)):
                    if j < n:
                        C[i*4 + ii, j] = A[i*4 + ii, j]*2.0
"""


def symbols(func):
    return {symbol.name: symbol for symbol in func.variables}


def specialized(conditions):
    """Return a function with the conditions that a function of its symbols gives."""

    def run(func):
        return specialize_conditions(func, conditions=conditions(**symbols(func)))

    return run


def test_the_example_of_its_docstring():
    shows(specialize_conditions, specialized(lambda m: [m % 4 == 0]))


def first_body(conditions):
    """Return the lines of the body for sizes that fulfil conditions."""
    lines = str(specialized(conditions)(read(TEXT))).splitlines()
    return lines[1].strip(), "\n".join(lines[2 : lines.index("    else:")])


@pytest.mark.parametrize(
    ("conditions", "head", "has", "lacks"),
    [
        (lambda m, n: [m % 4 == 0], "if m % 4 == 0:", ["range(m // 4)"], ["< m"]),
        (lambda m, n: [m % 8 == 0], "if m % 8 == 0:", ["range(m // 8*2)"], ["< m"]),
        (lambda m, n: [m % 4 == 0, m % 6 == 0], "if m % 4 == 0 and m % 6 == 0:",
         ["range(m // 12*3)"], ["< m"]),
        (lambda m, n: [m % 2 == 0], "if m % 2 == 0:", ["< m"], []),
        (lambda m, n: [n >= 8], "if n >= 8:", ["range(n)"], ["max"]),
        (lambda m, n: [index_const(8) <= n], "if 8 <= n:", ["range(n)"], ["max"]),
        (lambda m, n: [n > 7, m % 4 == 0], "if n > 7 and m % 4 == 0:", ["range(n)"], ["max", "if"]),
        (lambda m, n: [te.all(n > 7, m % 4 == 0)], "if n > 7 and m % 4 == 0:", [], ["max", "if"]),
        (lambda m, n: [n <= 8], "if n <= 8:", ["range(8)", "j < n"], ["max"]),
        (lambda m, n: [n == 8, m == 12], "if n == 8 and m == 12:", ["range(3)"], ["if", "max"]),
        (lambda m, n: [m - 8 >= 0, m + 1 < 12, m % 8 == 0], "if m - 8 >= 0 and m + 1 < 12 and m "
         "% 8 == 0:", ["range(2)"], ["< m"]),
        (lambda m, n: [3 - n <= -5], "if 3 - n <= -5:", ["range(n)"], ["max"]),
    ],
)  # fmt: skip
def test_what_conditions_prove_is_left_out(conditions, head, has, lacks):
    test, body = first_body(conditions)
    assert test == head
    assert all(text in body for text in has)
    assert not any(text in body for text in lacks)


@pytest.mark.parametrize("m", [0, 1, 4, 7, 8, 12, 13])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9])
def test_results_stay(m, n):
    func = read(TEXT)
    own = specialized(lambda m, n: [m % 4 == 0, n >= 8])(func)
    values = {symbols(func)["m"]: m, symbols(func)["n"]: n}
    a = np.arange(m * n, dtype="float32").reshape(m, n)
    for program in (func, own):
        c = np.full((m, n), np.nan, "float32")
        interpret(specialize(program, values), [a, c])
        assert (c == a * 2).all()


def test_nothing_given_changes_nothing():
    func = read(TEXT)
    assert specialize_conditions(func, conditions=()) is func


def test_what_is_known_of_a_symbol():
    func = read(TEXT)
    m, n = symbols(func).values()
    facts = facts_of(func, [m % 4 == 0, m % 6 == 0, m >= 10, n < 5])
    assert (facts[m].divisor, facts[m].range.low, facts[m].multiples.low) == (12, 10, 1)
    assert facts[n].range == Interval(0, 4)
    assert [facts[m].nearest(number) for number in (0, 12, 13)] == [12, 12, 24]
    assert [facts[n].nearest(number) for number in (0, 3, 13)] == [0, 3, 4]


@pytest.mark.parametrize(
    "condition",
    [
        lambda m, n: m >= n,
        lambda m, n: m * 2 >= 7,
        lambda m, n: m != 4,
        lambda m, n: m % 4 == 1,
        lambda m, n: m % n == 0,
        lambda m, n: m // 4 == 3,
        lambda m, n: te.any(m >= 4, n >= 4),
        lambda m, n: m * n >= 4,
        lambda m, n: m,
        lambda m, n: True,
        lambda m, n: "m >= 4",
    ],
)
def test_refuses_what_no_proof_can_use(condition):
    func = read(TEXT)
    wrong = condition(**symbols(func))
    with pytest.raises(ScheduleError) as caught:
        specialize_conditions(func, conditions=[wrong])
    assert str(caught.value) == (
        "specialize main: a condition of this form is not supported\n"
        f"  got       {wrong}\n"
        "  expected  n >= 128, n <= 7, n == 64, or m % 4 == 0, of symbols n and m"
    )


def test_refuses_symbols_of_other_functions():
    with pytest.raises(ScheduleError) as caught:
        specialize_conditions(read(TEXT), conditions=[te.var("k") >= 4])
    assert str(caught.value) == (
        "specialize main: k is not a symbol of the function\n  expected  m, n"
    )


@pytest.mark.parametrize(
    ("conditions", "name"),
    [
        (lambda m, n: [m > 4, m < 5], "m"),
        (lambda m, n: [n < 0], "n"),
        (lambda m, n: [m >= 5, m <= 7, m % 4 == 0], "m"),
        (lambda m, n: [n == 3, n % 2 == 0], "n"),
    ],
)
def test_refuses_what_no_size_fulfils(conditions, name):
    func = read(TEXT)
    with pytest.raises(ScheduleError, match=f"no {name} fulfils all conditions\n  got       "):
        specialized(conditions)(func)
