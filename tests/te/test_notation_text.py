"""Notation written, and read back."""

import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Const, Not, structural_equal
from tests.share import share_of


def test_texts(golden):
    X = te.placeholder((4, 8), name="A.local")
    I8 = te.placeholder((4, 8), "int8", name="N")
    k, r = te.reduce_axis((0, 8), name="k"), te.reduce_axis((1, 5), name="r")
    unused = te.reduce_axis((0, 3), name="u")
    tensors = {
        "names": te.compute((4, 8), lambda exp, *y: X[exp, y[0]] + 1, name="if"),
        "sum": te.compute((4,), lambda i: te.sum(X[i, k] * 2, axis=k), name="S"),
        "start": te.compute((4,), lambda i: te.max(X[i, r] * r, axis=r), name="S"),
        "order": te.compute((), lambda: te.sum(X[r - 1, k], axis=[k, r]), name="S"),
        "unused": te.compute((4,), lambda i: te.sum(X[i, 0], axis=unused), name="S"),
        "literals": te.compute(
            (4, 8),
            lambda i, j: te.if_then_else(
                te.const(3, "int8") + te.const(4, "int8") < I8[i, j], te.const(0.1, "float64"), -1.5
            ),
            name="L",
        ),
        "converted": te.compute(
            (4, 8), lambda i, j: te.const(1, "int32").astype("float32") + I8[i, j] + i, name="L"
        ),
        "infinite": te.compute((4, 8), lambda i, j: te.maximum(X[i, j], float("-inf")), name="L"),
        "negative": te.compute((4, 8), lambda i, j: -(X[i, j] - -X[i, j]) * -2 - -3, name="L"),
        "choices": te.compute(
            (4, 8),
            lambda i, j: (
                te.if_then_else(
                    te.all(te.any(i < 1, j < 2), Not(i == j)),
                    te.if_then_else(i < 2, X[i, j], 0),
                    te.select(i < 2, X[i, j], te.const(1, "float32")),
                )
                * 2
            ),
            name="P",
        ),
        "functions": te.compute(
            (4, 8), lambda i, j: te.power(te.exp(X[i, j]), te.abs(X[i, j])), name="P"
        ),
        "integers": te.compute(
            (4, 8), lambda i, j: te.truncdiv(I8[i, j] // 3, 2) - te.truncmod(I8[i, j], 5), name="P"
        ),
        "gather": te.compute((4, 8), lambda i, j: X[I8[i, j] % 4, j * 2 // 2], name="G"),
        "bool": te.compute((4, 8), lambda i, j: te.all(i < 2, te.const(True, "bool")), name="M"),
        "scalar": te.compute((), lambda: te.const(2, "int64"), name="M"),
    }
    golden("texts", "\n".join(f"{name:11}{te.notation_text(t)}" for name, t in tensors.items()))
    for tensor in tensors.values():
        _reads_back(tensor)


def _reads_back(tensor):
    """Read a tensor's text with its own inputs, and compare."""
    text, arguments = te.notation_text(tensor), te.notation_arguments(tensor)
    ast.literal_eval(repr(arguments))
    again = te.notation(text, **arguments)
    assert (again.shape, again.dtype) == (tensor.shape, tensor.dtype)
    assert te.notation_text(again) == text
    names = [name for name, value in arguments.items() if isinstance(value[1], str)]
    inputs = dict(zip(names, tensor.op.input_tensors, strict=True))
    same = te.notation(text, **{**arguments, **inputs})
    assert structural_equal(same.op.body, tensor.op.body), f"{text}\n{same.op.body}"
    assert [a.dom for a in same.op.reduce_axis] == [a.dom for a in tensor.op.reduce_axis]


@given(st.data())
@settings(max_examples=share_of(200))
def test_what_is_written_reads_back(random_tensor, data):
    tensor, _, _ = random_tensor(data, "guards", "functions", "decisions", "reductions")
    _reads_back(tensor)


def test_several_stages():
    X = te.placeholder((4, 8), name="x")
    k, q = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="k")
    M = te.compute((4,), lambda i: te.max(X[i, k], axis=k), name="x")
    E = te.compute((4, 8), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((4,), lambda i: te.sum(E[i, q], axis=q), name="E")
    Y = te.compute((4, 8), lambda i, j: E[i, j] / S[i], name="Y")
    assert te.notation_text(Y) == (
        "x_1[i] = max(x[i, k], axis=k)\n"
        "E[i, j] = exp(x[i, j] - x_1[i])\n"
        "E_1[i] += E[i, k]\n"
        "Y[i, j] = E[i, j] / E_1[i]"
    )
    assert te.signature_text(Y) == (
        "x: float32[4, 8]\nx_1: float32[4]\nE: float32[4, 8]\nE_1: float32[4]\nY: float32[4, 8]"
    )


def test_python_code_makes_the_same_tensor():
    X = te.placeholder((4, 8), name="X")
    k = te.reduce_axis((1, 8), name="k")
    S = te.compute((4,), lambda i: te.sum(X[i, k], axis=k), name="S")
    Y = te.compute((3, 8), lambda i, j: X[i + 1, j] / S[i], name="Y")
    code = te.notation_python(Y)
    assert code == (
        'X = te.placeholder((4, 8), "float32", name="X")\n'
        'S = te.notation("S[i] += X[i, k]", X=X, k=(1, 8))\n'
        'Y = te.notation("Y[i, j] = X[i + 1, j] / S[i]", X=X, S=S, i=(0, 3))'
    )
    scope = {"te": te}
    exec(code, scope)
    x = np.arange(1, 33, dtype="float32").reshape(4, 8)
    np.testing.assert_array_equal(te.evaluate(scope["Y"], [x]), te.evaluate(Y, [x]))


def test_a_placeholder_has_no_line():
    X = te.placeholder((4, 8), name="X")
    assert te.notation_text(X) == ""
    assert te.notation_arguments(X) == {}
    assert te.signature_text(X) == "X: float32[4, 8]"


def test_an_expression_that_is_too_large():
    X = te.placeholder((4,), name="X")

    def tower(i):
        value = X[i]
        for _ in range(100):
            value = value + value
        return value

    Y = te.compute((4,), tower, name="Y")
    with pytest.raises(ExpressionError) as error:
        te.notation_text(Y)
    assert str(error.value) == (
        "write Y as notation: the expression is too large\n"
        "  expected  at most 5000 nodes\n"
        "  hint      split it into several te.compute"
    )


def test_a_number_alone_keeps_its_dtype():
    for dtype in ("int8", "int32", "uint64", "float16", "float32", "float64"):
        C = te.notation(f"C[i] = {dtype}(3)", i=2)
        assert isinstance(C.op.body, Const)
        assert C.dtype == dtype
        assert te.notation(te.notation_text(C), i=2).dtype == dtype
