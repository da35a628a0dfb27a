"""Python asks an expression for its value: nothing is decided, and nothing dropped, silently."""

import math
import operator
import warnings

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError

n, m = te.var("n"), te.var("m")
k, later = te.reduce_axis((0, 8), name="k"), te.reduce_axis((2, 8), name="later")
A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
a = A[n, m]

TRUTH = (
    "truth value of an expression: it is known only when the program runs\n"
    "  got       n\n"
    "  hint      combine conditions with te.all(a, b) or te.any(a, b), choose with "
    "te.if_then_else(condition, a, b)"
)


def _refused(ask):
    with pytest.raises(ExpressionError) as error:
        ask()
    return str(error.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: te.select(n and n < 4, 1, 2),
        lambda: te.select(n or m < 4, 1, 2),
        lambda: not n,
        lambda: 1 if n else 2,
        lambda: any([n, m]),
        lambda: all(x for x in (n, m)),
        lambda: list(filter(None, [n])),
        lambda: np.any([n, m]),
        lambda: np.bool_(n),
        lambda: np.count_nonzero([n]),
        lambda: np.logical_and([n], [m]),
    ],
)
def test_a_variable_has_no_truth_value(ask):
    assert _refused(ask) == TRUTH


@pytest.mark.parametrize("value", [k, later, A, A[n], a, n + 1, te.const(True), n < 4])
def test_nothing_else_has_one(value):
    assert _refused(lambda: bool(value)).startswith("truth value of an expression")
    assert _refused(lambda: value and 1).startswith("truth value of an expression")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: min(n, m),
        lambda: max(A, B),
        lambda: sorted([n, m]),
        lambda: sorted([A, B]),
        lambda: 0 <= k < 4,
        lambda: n in [1, 2],
        lambda: n in range(4),
        lambda: np.max([n, m]),
        lambda: np.max([A, B]),
        lambda: np.clip(a, 0, 1),
        lambda: np.where(n < 3, 1, 2),
    ],
)
def test_comparisons_that_python_decides(ask):
    assert _refused(ask).startswith("truth value of an expression")


def test_handles_are_compared_by_identity():
    assert (n in [m, n], [m, n].index(n), n in [m]) == (True, 1, False)
    assert (k in [k], bool(k == n), bool(k != n)) == (True, False, True)
    assert (A in [B, A], A != B, [B, A].index(A)) == (True, True, 1)


NUMBERS = {
    "int() of an expression": lambda: int(a),
    "float() of an expression": lambda: math.sqrt(a),
    "complex() of an expression": lambda: complex(a),
    "an expression in the place of an integer": lambda: range(n),
    "round() of an expression": lambda: round(a, 2),
    "math.floor() of an expression": lambda: math.floor(a),
    "math.ceil() of an expression": lambda: math.ceil(k),
    "math.trunc() of an expression": lambda: math.trunc(A),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_an_expression_is_no_number_of_python(what):
    text = _refused(NUMBERS[what])
    assert text.startswith(f"{what}: it is known only when the program runs\n  got       ")
    assert "\n  hint      " in text


def test_the_hint_names_what_is_for_expressions():
    assert _refused(lambda: float(a)) == (
        "float() of an expression: it is known only when the program runs\n"
        "  got       A[n, m]\n"
        "  hint      convert in the program, x.astype('float32'); te.sqrt, te.exp … take "
        "expressions where those of math take numbers"
    )
    assert _refused(lambda: [1, 2][n]) == (
        "an expression in the place of an integer: it is known only when the program runs\n"
        "  got       n\n"
        "  hint      range(), a size and the index of a list take numbers: use an axis in place "
        "of a loop of Python, and te.if_then_else to choose"
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda: math.gcd(n, 4),
        lambda: operator.index(k),
        lambda: np.zeros(n),
        lambda: np.float32(a),
        lambda: np.array(a, dtype=float),
        lambda: chr(n),
    ],
)
def test_other_ways_to_ask_for_a_number(ask):
    assert "it is known only when the program runs" in _refused(ask)


@pytest.mark.parametrize("ask", [lambda: len(A), lambda: A @ B])
def test_what_python_refuses_itself(ask):
    with pytest.raises(TypeError):
        ask()


def test_what_python_may_write():
    assert [str(x) for x in divmod(n, 4)] == ["n // 4", "n % 4"]
    assert [str(x) for x in divmod(9, n)] == ["9 // n", "9 % n"]
    assert (str(abs(a)), str(np.float32(2) * a)) == ("abs(A[n, m])", "2.0*A[n, m]")
    assert (str(sum([a, a])), str(np.sum([a, a]))) == (
        "0.0 + A[n, m] + A[n, m]",
        "A[n, m] + A[n, m]",
    )


def test_a_literal_is_a_number():
    assert (int(te.const(3)), float(te.const(2.5)), list(range(te.const(2)))) == (3, 2.5, [0, 1])
    assert _refused(lambda: range(te.const(2.5))).startswith("an expression in the place")


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: np.float32(2) * a, "2.0*A[n, m]"),
        (lambda: np.float32(3) < a, "3.0 < A[n, m]"),
        (lambda: np.int64(3) == n, "3 == n"),
        (lambda: np.multiply(a, 2), "A[n, m]*2.0"),
        (lambda: np.array(3) - n, "3 - n"),
    ],
)
def test_numbers_of_numpy_are_operands(ask, expected):
    assert str(ask()) == expected


@pytest.mark.parametrize(
    "ask", [lambda: a == np.arange(3), lambda: np.arange(3) != n, lambda: np.arange(3) == A]
)
def test_an_array_of_numpy_is_not_compared(ask):
    assert _refused(ask).startswith("expression: not something that can be computed with")


def test_a_tensor_is_no_number():
    assert ((np.float32(3) == A), (np.float32(3) != A)) == (False, True)


@pytest.mark.parametrize("ask", [lambda: np.exp(a), lambda: np.exp(A), lambda: np.exp(1 + n)])
def test_functions_of_numpy_take_no_expressions(ask):
    text = _refused(ask)
    assert text.startswith("np.exp of an expression: it is known only when the program runs")
    assert "as te.exp where there is one; those of topi take tensors" in text


def test_a_condition_of_a_constant_is_an_integer_of_python():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert operator.index(te.const(True)) == 1
