"""Divisions by the constant 0, and shifts that move all bits out, are refused where written."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.dtypes import bits
from dlcompiler.errors import DLCompilerError, ExpressionError

A = te.placeholder((4,), "int32", name="A")
N = te.placeholder((4,), "int8", name="N")
k = te.reduce_axis((0, 4), name="k")
DIVIDED = {
    "//": lambda i: A[i] // 0,
    "%": lambda i: A[i] % 0,
    "div": lambda i: te.div(A[i], 0),
    "truncdiv": lambda i: te.truncdiv(A[i], 0),
    "truncmod": lambda i: te.truncmod(A[i], 0),
    "ceildiv": lambda i: te.ceildiv(A[i], 0),
    "divmod": lambda i: divmod(A[i], 0)[1],
    "an index": lambda i: A[i // 0],
    "another dtype": lambda i: A[i] // te.const(0, "int64"),
    "NumPy's number": lambda i: A[i] % np.int8(0),
    "inside": lambda i: te.if_then_else(i < 2, A[i] % 0 + 1, 3),
    "reduced": lambda i: te.sum(A[k] % 0, axis=k),
}
SHIFTED = {
    "int8 << 8": lambda i: N[i] << 8,
    "int8 >> -1": lambda i: N[i] >> -1,
    "int32 << 10**9": lambda i: A[i] << 10**9,
    "int32 >> 32": lambda i: te.right_shift(A[i], 32),
    "1 << 64": lambda i: te.const(1, "int64") << 64,
}


@pytest.mark.parametrize("name", DIVIDED)
def test_a_division_by_the_constant_0(name):
    with pytest.raises(ExpressionError) as caught:
        te.compute((4,), DIVIDED[name], name="C")
    text = str(caught.value)
    assert text.startswith("te.compute C: an integer is divided by the constant 0\n  got  ")
    assert "because   such a division gives 0 in every element, and so does its remainder" in text


@pytest.mark.parametrize("name", SHIFTED)
def test_a_shift_by_a_constant_that_is_too_large(name):
    with pytest.raises(ExpressionError, match=r"is shifted by -?\d+, but has \d+ bits") as caught:
        te.compute((4,), SHIFTED[name], name="C")
    assert "expected  a distance from 0 to " in str(caught.value)


def test_operations_on_whole_tensors():
    with pytest.raises(ExpressionError, match="floordiv of tensors: an integer is divided by"):
        A // 0
    with pytest.raises(ExpressionError, match="shl of tensors: int8 is shifted by 8"):
        N << 8


def test_notation():
    with pytest.raises(DLCompilerError, match="divided by the constant 0"):
        te.notation("C[i] = A[i] % 0", A=A)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_the_largest_distance_and_the_smallest_divisor_are_allowed(dtype):
    X = te.placeholder((4,), dtype, name="X")
    te.compute((4,), lambda i: (X[i] << bits(dtype) - 1) // 1)
    te.compute((4,), lambda i: X[i] // X[i] << X[i])


def test_floats_are_divided_by_0_as_before():
    F = te.placeholder((2,), name="F")
    C = te.compute((2,), lambda i: F[i] / 0)
    np.testing.assert_array_equal(te.evaluate(C, [np.array([1, -1], "float32")]), [np.inf, -np.inf])


def test_a_literal_that_a_conversion_changes_is_not_judged():
    te.compute((4,), lambda i: N[i] << te.const(257, "int32").astype("int8"))


def test_nothing_is_divided_where_there_is_no_element():
    te.compute((0, 4), lambda i, j: A[j // 0 + i])
