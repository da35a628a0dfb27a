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
        lambda: np.array([a], "float32"),
        lambda: np.full(2, A, "float32"),
        lambda: np.bool_(n),
        lambda: np.asarray(A),
        lambda: np.array([A, B]),
        lambda: np.max([A, B]),
        lambda: np.ones(3)[A],
        lambda: chr(n),
    ],
)
def test_other_ways_to_ask_for_a_number(ask):
    assert "it is known only when the program runs" in _refused(ask)


def test_an_array_of_a_tensor_is_refused_with_the_way_to_its_values():
    assert _refused(lambda: np.asarray(A)) == (
        "an array of NumPy from an expression: it is known only when the program runs\n"
        "  got       Tensor(A: float32[8, 8])\n"
        "  hint      te.evaluate, or a kernel that is built, gives the values of a tensor; an "
        "array of objects holds expressions: np.array([x, y], dtype=object)"
    )
    assert "wrong number of indices" in _refused(lambda: np.asarray(A[n]))


def test_an_array_of_objects_holds_expressions():
    assert np.array([a, n])[0] is a
    assert np.array([A, B], dtype=object)[1] is B
    assert str((np.array([[a, a]]) @ np.array([2, 3]))[0]) == "A[n, m]*2.0 + A[n, m]*3.0"


def test_a_literal_is_a_number_of_numpy():
    np.testing.assert_array_equal(np.array([te.const(1), te.const(2)], "int8"), [1, 2])
    assert np.asarray(te.const(2.5)) == 2.5
    assert np.float32(te.const(2.5)) == 2.5


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("round", lambda x: np.round(x)),
        ("round", lambda x: np.round(x, 2)),
        ("clip", lambda x: np.clip(x, 0, 1)),
        ("where", lambda x: np.where(x, 1, 2)),
        ("mean", lambda x: np.mean(x)),
        ("sum", lambda x: np.sum(x)),
        ("size", lambda x: np.size(x)),
        ("argmax", lambda x: np.argmax(x)),
        ("sort", lambda x: np.sort(x)),
        ("reshape", lambda x: np.reshape(x, (2,))),
        ("concatenate", lambda x: np.concatenate([x, x])),
        ("zeros_like", lambda x: np.zeros_like(x)),
        ("dot", lambda x: np.dot(x, x)),
        ("matmul", lambda x: np.ones((2, 2)) @ x),
    ],
)
@pytest.mark.parametrize("value", [a, n, k, A, A[n], a < 1, te.const(2.5)])
def test_a_function_of_numpy_says_where_the_one_for_expressions_is(name, ask, value):
    text = _refused(lambda: ask(value))
    assert text.startswith(f"np.{name} of an expression: it is known only when the program runs")
    assert f"as te.{name} where there is one; those of topi take tensors" in text


def test_the_shape_of_a_tensor_is_known():
    assert (np.shape(A), np.ndim(A)) == ((8, 8), 2)


@pytest.mark.parametrize("ask", [lambda: A @ B, lambda: a @ n, lambda: 2 @ a])
def test_there_is_no_operator_for_products_of_matrices(ask):
    assert _refused(ask).startswith("@ of expressions: a product of matrices is not one operation")


def test_what_python_refuses_itself():
    with pytest.raises(TypeError):
        len(A)


def test_what_python_may_write():
    assert [str(x) for x in divmod(n, 4)] == ["n // 4", "n % 4"]
    assert str(pow(n, 2, 3)) == "n*n % 3"
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
    assert _refused(ask).startswith("expression: cannot be used in an expression")


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
