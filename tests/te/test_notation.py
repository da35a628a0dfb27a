"""Notation read: what a text means."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.ir import Cast, Not, compare, structural_equal
from dlcompiler.ir.expr import Range

A, B = (4, 8), (8, 5)


def test_matmul():
    X, Y = te.placeholder((4, 8), name="A"), te.placeholder((8, 5), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.notation("C[i, j] += A[i, k] * B[k, j]", A=X, B=Y)
    written = te.compute((4, 5), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k))
    assert structural_equal(C.op.body, written.op.body)
    assert (C.name, C.dtype, C.shape) == ("C", "float32", (4, 5))
    assert [axis.name for axis in (*C.op.axis, *C.op.reduce_axis)] == ["i", "j", "k"]
    assert [tensor.name for tensor in C.op.input_tensors] == ["A", "B"]


ELEMENTWISE = {
    "A[i, j] + 1": lambda A, i, j: A[i, j] + 1,
    "A[i, j] * 2 - 0.5 / A[i, j]": lambda A, i, j: A[i, j] * 2 - 0.5 / A[i, j],
    "-A[i, j] + +A[i, j]": lambda A, i, j: -A[i, j] + A[i, j],
    "A[3 - i, (j + 1) % 8]": lambda A, i, j: A[3 - i, (j + 1) % 8],
    "A[i, j // 2 * 2]": lambda A, i, j: A[i, j // 2 * 2],
    "A[i, 1 + 2 * 3]": lambda A, i, j: A[i, 7],
    "max(A[i, j], 0)": lambda A, i, j: te.maximum(A[i, j], 0),
    "minimum(maximum(A[i, j], 0), 6)": lambda A, i, j: te.minimum(te.maximum(A[i, j], 0), 6),
    "exp(A[i, j]) / (1 + exp(A[i, j]))": lambda A, i, j: te.exp(A[i, j]) / (1 + te.exp(A[i, j])),
    "sigmoid(A[i, j]) * rsqrt(A[i, j])": lambda A, i, j: te.sigmoid(A[i, j]) * te.rsqrt(A[i, j]),
    "pow(A[i, j], 2)": lambda A, i, j: te.power(A[i, j], 2),
    "int8(A[i, j])": lambda A, i, j: A[i, j].astype("int8"),
    "int8(3) + 4": lambda A, i, j: te.const(3, "int8") + 4,
    "float32(i) * 0.5": lambda A, i, j: i.astype("float32") * 0.5,
    "i * 8 + j": lambda A, i, j: i * 8 + j,
    "A[i, j] if i < 2 else 0": lambda A, i, j: te.if_then_else(i < 2, A[i, j], 0),
    "if_then_else(i < 2, A[i, j], 0)": lambda A, i, j: te.if_then_else(i < 2, A[i, j], 0),
    "select(A[i, j] >= 0, 1.5, inf)": lambda A, i, j: te.select(A[i, j] >= 0, 1.5, float("inf")),
    "A[i - 1, j] if i >= 1 and i < 3 and not j == 2 else 0": lambda A, i, j: te.if_then_else(
        te.all(i >= 1, i < 3, Not(j == 2)), A[i - 1, j], 0
    ),
    "1 if i < 1 or j != 2 or A[i, j] > 0 else 0": lambda A, i, j: te.if_then_else(
        te.any(i < 1, j != 2, A[i, j] > 0), 1, 0
    ),
    "3 if 1 <= i + 0 < 3 else 4": lambda A, i, j: te.if_then_else(
        te.all(compare("le", 1, i + 0), i + 0 < 3), 3, 4
    ),
    "all(i < 1, any(j < 2, True))": lambda A, i, j: te.all(
        i < 1, te.any(j < 2, te.const(True, "bool"))
    ),
    "truncdiv(int32(i) - 2, 3)": lambda A, i, j: te.truncdiv(i.astype("int32") - 2, 3),
    "1e-5 * -2": lambda A, i, j: te.const(1e-5 * -2, "float32"),
}


@pytest.mark.parametrize("text", ELEMENTWISE)
def test_elementwise(text):
    make = ELEMENTWISE[text]
    X = te.placeholder((4, 8), name="A")
    read = te.notation(f"C[i, j] = {text}", i=4, j=8, **({"A": X} if "A[" in text else {}))
    written = te.compute((4, 8), lambda i, j: make(X, i, j))
    assert structural_equal(read.op.body, written.op.body), f"{read.op.body}, {written.op.body}"


REDUCTIONS = {
    "C[i] += A[i, k]": (te.sum, (0, 8)),
    "C[i] = sum(A[i, k], axis=k)": (te.sum, (0, 8)),
    "C[i] = sum(A[i, k], k)": (te.sum, (0, 8)),
    "C[i] = max(A[i, k], k)": (te.max, (0, 8)),
    "C[i] = max(A[i, k], axis=k)": (te.max, (0, 8)),
    "C[i] = min(A[i, k], axis=[k])": (te.min, (0, 8)),
}


@pytest.mark.parametrize("text", REDUCTIONS)
@pytest.mark.parametrize("domain", [None, (2, 6), 5])
def test_reductions(text, domain):
    reduce, whole = REDUCTIONS[text]
    given_axis = {} if domain is None else {"k": domain}
    first, end = whole if domain is None else (0, domain) if domain == 5 else domain
    X = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((first, end), name="k")
    read = te.notation(text, A=X, **given_axis)
    written = te.compute((4,), lambda i: reduce(X[i, k], axis=k))
    assert structural_equal(read.op.body, written.op.body)
    assert read.op.reduce_axis[0].dom == Range(first, end - first)


def test_reducing_over_several_axes():
    C = te.notation("C[()] += A[i, k]", A=A)
    assert [axis.name for axis in C.op.reduce_axis] == ["i", "k"]
    C = te.notation("C[()] = max(A[i, k], axis=(k, i))", A=A)
    assert [axis.name for axis in C.op.reduce_axis] == ["k", "i"]
    C = te.notation("C[j] = sum(1.0, axis=k)", j=3, k=4)
    assert te.evaluate(C, []).tolist() == [4.0] * 3


def test_a_maximum_of_two_values_is_no_reduction():
    C = te.notation("C[i, k] = max(A[i, k], A[0, k])", A=A)
    assert C.shape == (4, 8)
    C = te.notation("C[i] = max(A[i, 0], i)", A=A)
    assert not C.op.reduce_axis


def test_extents_come_from_where_they_are_known():
    assert te.notation("C[i, j] = A[j, i]", A=A).shape == (8, 4)
    assert te.notation("C[i] = A[i + 1, 0]", A=A, i=3).shape == (3,)
    assert te.notation("C[i] = A[i + 1, 0]", A=A, C=((3,), "float32")).shape == (3,)
    assert te.notation("C[i] = A[i, 0]", A=A, i=2).shape == (2,)
    assert te.notation("C[i] = A[i, 0] if i < 4 else 0", A=A, i=9).shape == (9,)
    assert te.notation("C[i] = A[i, 0] if i < 3 else 0", A=A).shape == (4,)
    guarded = te.notation("C[i] = A[i, 0] if i < 4 else B[i, 0]", A=A, B=B, i=8)
    assert guarded.shape == (8,)


def test_tensors_may_be_given():
    X = te.placeholder((4, 8), "float64", name="X")
    S = te.notation("S[i] += A[i, k]", A=X)
    M = te.notation("M[i, j] = X[i, j] / S[i]", X=X, S=S)
    assert [op.name for op in te.post_order([M])] == ["X", "S", "M"]
    x = np.arange(1, 33, dtype="float64").reshape(4, 8)
    np.testing.assert_allclose(te.evaluate(M, [x]), x / x.sum(1, keepdims=True))


def test_declarations_as_json_has_them():
    C = te.notation("C[i] += A[i, k]", A=[[4, 8], "int32"], k=[1, 3])
    assert (C.dtype, C.op.reduce_axis[0].dom) == ("int32", Range(1, 2))
    assert te.notation("C[i] = A[i, 0]", A=[4, 8]).dtype == "float32"


def test_integers_read_from_tensors_are_indices():
    C = te.notation("C[i] = T[R[i]]", T=((9,), "float32"), R=((4,), "int64"))
    assert isinstance(C.op.body.indices[0], Cast)


def test_zero_dimensions_and_zero_extents():
    assert te.notation("C[()] = A[()] * 2", A=()).shape == ()
    assert te.notation("C[i] += A[i, k]", A=(4, 0)).op.reduce_axis[0].extent == 0


def test_names_of_any_script():
    C = te.notation("Σ[α] += Ä[α, β]", Ä=A)
    assert (C.name, C.op.axis[0].name) == ("Σ", "α")


def test_space_and_line_ends_do_not_matter():
    C = te.notation("\n   C[i,j]=(A[i,j]\n  +1)\r\n", A=A)
    assert te.notation_text(C) == "C[i, j] = A[i, j] + 1.0"
