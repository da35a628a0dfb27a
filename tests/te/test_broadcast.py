"""Operators between whole tensors: values as NumPy's, shapes aligned as NumPy aligns them."""

import operator

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError

OPERATORS = ["add", "sub", "mul", "truediv", "lt", "le", "gt", "ge"]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 1), (4,)), ((), (3,))]


def _values(shape, start):
    return np.arange(start, start + np.prod(shape, dtype=int), dtype="float32").reshape(shape)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_two_tensors(name, left, right):
    A, B = te.placeholder(left, name="A"), te.placeholder(right, name="B")
    a, b = _values(left, -3), _values(right, 1)
    apply = getattr(operator, name)
    C = apply(A, B)
    np.testing.assert_array_equal(te.evaluate(C, {A: a, B: b}), apply(a, b))
    assert C.shape == apply(a, b).shape


@pytest.mark.parametrize("scalar", [3, np.float32(3), te.const(3, "float32")])
def test_a_scalar_on_either_side(scalar):
    A = te.placeholder((4,), name="A")
    a = _values((4,), 1)
    np.testing.assert_array_equal(te.evaluate(scalar - A, {A: a}), 3 - a)
    np.testing.assert_array_equal(te.evaluate(A / scalar, {A: a}), a / np.float32(3))


def test_integers_negation_and_conversion():
    A = te.placeholder((4,), "int32", name="A")
    a = np.array([-7, -1, 0, 7], "int32")
    np.testing.assert_array_equal(te.evaluate(-A // 3 + A % 3, {A: a}), -a // 3 + a % 3)
    assert (A / 2).dtype == "float32"
    assert A.astype("int8").dtype == "int8"


def test_tensors_are_still_compared_by_identity():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    i = te.reduce_axis((0, 4), name="i")
    assert A in [B, A]
    assert [B, A].index(A) == 1
    assert A not in [B, i]
    assert i not in [A, B]


def test_shapes_that_do_not_fit():
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((3,), name="B")
    with pytest.raises(ExpressionError) as caught:
        A + B
    assert str(caught.value) == (
        "T_add: the shapes differ in dimension 1, counted from the last\n"
        "  got       (4, 8) and (3,)\n"
        "  expected  equal extents, or one of them 1"
    )


@pytest.mark.parametrize("factor", [1, 2])
def test_two_symbols_are_not_known_to_be_equal(factor):
    n, m = te.var("n"), te.var("m")
    A, B = (te.placeholder((size * factor,), name=name) for size, name in ((n, "A"), (m, "B")))
    assert (A + A).shape == A.shape
    with pytest.raises(ExpressionError, match="the shapes differ"):
        A + B


def test_a_whole_tensor_beside_an_element_of_a_computation():
    A = te.placeholder((4,), name="A")
    with pytest.raises(ExpressionError, match="cannot be combined"):
        te.compute((4,), lambda i: A + A[i])
