"""Notation read, written, and refused."""

import ast
import builtins

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Cast, Const, Not, compare, structural_equal
from dlcompiler.te.notation_scan import FUNCTIONS

A, B = (4, 8), (8, 5)
N = ((4, 8), "int8")


# -- reading --------------------------------------------------------------------------------------


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
    assert read.op.reduce_axis[0].dom == range(first, end)


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
    assert (C.dtype, C.op.reduce_axis[0].dom) == ("int32", range(1, 3))
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


# -- refusing -------------------------------------------------------------------------------------


def _refused(text, **declarations):
    with pytest.raises(ExpressionError) as error:
        te.notation(text, **declarations)
    return str(error.value)


def test_disagreeing_extents():
    assert _refused("C[i, j] += A[i, k] * B[k, j]", A=A, B=(9, 5)) == (
        "te.notation: the extents of the axis k disagree\n"
        "  got       9 in dimension 0 of B\n"
        "  expected  8, as in dimension 1 of A\n"
        "  hint      if a part is meant, give the extent: te.notation(…, k=n)\n"
        "  excerpt   C[i, j] += A[i, k] * B[k, j]\n"
        "                                   ^"
    )


def test_an_unknown_extent():
    assert _refused("C[i] = A[i + 1, 0]", A=A) == (
        "te.notation: the extent of the axis i is not known\n"
        "  hint      give it: te.notation(…, i=n)\n"
        "  excerpt   C[i] = A[i + 1, 0]\n"
        "              ^"
    )


def test_an_unknown_tensor():
    assert _refused("C[i, j] += A[i, k] * B[k, j]", A=A) == (
        "te.notation: nothing is said of B\n"
        '  hint      declare it: te.notation(…, B=((…), "float32")), or a Tensor\n'
        "  excerpt   C[i, j] += A[i, k] * B[k, j]\n"
        "                                 ^"
    )


def test_errors_of_the_language_point_at_their_place():
    assert _refused("C[i, j] = A[i, j] + 300", A=N) == (
        "literal 300: does not fit int8\n"
        "  got       300\n"
        "  expected  -128 to 127\n"
        "  hint      cast the other operand to a wider type with .astype(…)\n"
        "  excerpt   C[i, j] = A[i, j] + 300\n"
        "                              ^"
    )


def test_a_caret_in_a_long_line():
    text = "C[i, j] = " + " + ".join(["A[i, j]"] * 30) + " + bad(i)" + " + A[i, j]" * 10
    (*_, line, caret) = _refused(text, A=A).splitlines()
    assert line[caret.index("^") :].startswith("bad(i)")
    assert len(line) <= 100


def test_a_caret_below_wide_text_and_later_lines():
    (*_, line, caret) = _refused("é[i] = (A[i, 0] +\n  ßß(i))", A=A).splitlines()
    assert line[caret.index("^") :] == "ßß(i))"


# text -> (part of the problem, what the caret points at; None where there is no place)
HOSTILE = {
    "C[i] = __import__('os').system('id')": ("an attribute", ".system"),
    "C[i] = open(A[i, 0])": ("unknown function 'open'", "open"),
    "C[i] = eval('1')": ("unknown function 'eval'", "eval"),
    "C[i] = A.shape": ("an attribute", ".shape"),
    "C[i] = A[i, 0].op": ("an attribute", ".op"),
    "C[i] = A.op[i]": ("an attribute", ".op[i]"),
    "C.x[i] = A[i, 0]": ("the left side is not an element", "C.x"),
    "C[i] = (lambda: 1)()": ("a lambda", "lambda"),
    "C[i] = lambda: 1": ("a lambda", "lambda"),
    "C[i] = [A[i, 0]]": ("a list", "[A"),
    "C[i] = [x for x in A]": ("a comprehension", "[x"),
    "C[i] = {x for x in A}": ("a comprehension", "{x"),
    "C[i] = {x: x for x in A}": ("a comprehension", "{x"),
    "C[i] = sum(A[i, k] for k in B)": ("sum needs axes", "sum"),
    "C[i] = exp(x for x in A)": ("a comprehension", "(x for"),
    "C[i] = {}": ("a dict", "{}"),
    "C[i] = {1}": ("a set", "{1}"),
    "C[i] = (1, 2)": ("a tuple", "(1"),
    "C[i] = ()": ("a tuple", "()"),
    "C[i] = 'text'": ("a string", "'text'"),
    "C[i] = b'text'": ("a string", "b'text'"),
    "C[i] = f'{A}'": ("a string", "f'{A}'"),
    "C[i] = None": ("None is not a number", "None"),
    "C[i] = ...": ("Ellipsis is not a number", "..."),
    "C[i] = 1j": ("1j is not a number", "1j"),
    "C[i] = 1e999": ("the number is too large", "1e999"),
    "C[i] = 99999999999999999999": ("does not fit 64 bits", "9999"),
    "C[i] = 2 * 9999999999999999999": ("does not fit 64 bits", "* 99"),
    "C[i] = 1e308 * 10": ("the number is too large", "* 10"),
    "C[i] = 1 / 0": ("division by zero", "/ 0"),
    "C[i] = 1 % 0": ("division by zero", "% 0"),
    "C[i] = (x := 1)": ("an assignment inside an expression", "x := 1"),
    "C[i] = exp(*A)": ("a starred argument", "*A"),
    "C[i] = exp(**A)": ("takes no named argument", "**A"),
    "C[i] = exp(x=1)": ("takes no named argument", "x=1"),
    "C[i] = sum(A[i, k], axis=k, y=1)": ("an argument that is not understood", "axis=k"),
    "C[i] = sum(A[i, k], where=k)": ("an argument that is not understood", "where=k"),
    "C[i] = sum(A[i, k], axis='k')": ("sum reduces over axes", "'k'"),
    "C[i] = max(A[i, k], axis=k + 1)": ("max reduces over axes", "+ 1"),
    "C[i] = max(A[i, k], axis=i)": ("the axis i is on the left", "i)"),
    "C[i] = sum(A[i, k], axis=[k, k])": ("needs axes to reduce over, each once", "sum"),
    "C[i] = sum(A[i, k])": ("sum needs axes", "sum"),
    "C[i] = max(A[i, k])": ("max needs axes", "max"),
    "C[i] = 1 + sum(A[i, k], k)": ("the sum stands inside another expression", "sum"),
    "C[i] = 1 + max(A[i, 0], 1, 2)": ("stands inside another expression", "max"),
    "C[i] = exp(1, 2)": ("exp takes 1 argument", "exp"),
    "C[i] = pow(A[i, 0])": ("pow takes 2 arguments", "pow"),
    "C[i] = int8(1, 2)": ("int8 takes 1 argument", "int8"),
    "C[i] = float32x4(1)": ("unknown function 'float32x4'", "float32x4"),
    "C[i] = A[i, 0] ** 2": ("not an operator", "** 2"),
    "C[i] = (A[i, 0] + 1) @ 2": ("not an operator", "@ 2"),
    "C[i] = i << 2": ("not an operator", "<< 2"),
    "C[i] = ~A[i, 0]": ("UnaryOp is not part", "~A"),
    "C[i] = i is 3": ("not a comparison", "i is"),
    "C[i] = i in A": ("not a comparison", "i in"),
    "C[i] = A[i, :]": ("a slice", ":"),
    "C[i] = A[i, 1:2]": ("a slice", "1:2"),
    "C[i] = A[i][0]": ("only a name can be called or indexed", "A[i][0]"),
    "C[i] = A(i, 0)(1)": ("unknown function 'A'", "A(i"),
    "C[i] = await A": ("await", "await"),
    "C[i] = A": ("if A is a tensor, index it", "A"),
    "C[i] = A[i, 0] + A": ("A is a tensor", "A"),
    "C[i] = A[i]": ("A has 2 dimensions", "A[i]"),
    "C[i] = A[i, 0] + C[i]": ("C is defined by this statement", "C[i]"),
    "C[i] = A[i, k]": ("the axis k is not on the left", "k]"),
    "C[i] += A[i, 0]": ("adds up over axes that are not on the left", "C[i]"),
    "C[i] -= A[i, 0]": ("only '=' and '+=' are understood", "C[i]"),
    "C[i] = A[i, 0] if 1 < 2 if i else 3": ("not readable", None),
    "C[i]: int = A[i, 0]": ("not an assignment", "C[i]"),
    "C[i] = D[i] = A[i, 0]": ("not an assignment", "C[i]"),
    "C = A[0, 0]": ("the left side is not an element", "C"),
    "C[i], D[i] = A[i, 0]": ("the left side is not an element", "C[i], D"),
    "C[i, i] = A[i, 0]": ("the axis i stands twice", "i]"),
    "C[i + 1] = A[i, 0]": ("must be the name of an axis", "+ 1"),
    "C[0] = A[0, 0]": ("must be the name of an axis", "0]"),
    "C[C] = A[0, 0]": ("must be the name of an axis", "C]"),
    "C[inf] = A[0, 0]": ("must be the name of an axis", "inf"),
    "C[i:3] = A[0, 0]": ("must be the name of an axis", "i:3"),
    "import os": ("not an assignment", "import"),
    "def f(): pass": ("not an assignment", "def"),
    "print(A)": ("not an assignment", "print"),
    "del A": ("not an assignment", "del"),
    "C[i] = 1; D[i] = 2": ("not one statement", "D[i]"),
    "": ("not one statement", None),
    "# nothing": ("not one statement", None),
    "C[i] = (A[i, 0]": ("not readable: '(' was never closed", "(A"),
    "C[i] = 1 +": ("not readable: invalid syntax", None),
    "C[i] = 0b12": ("not readable", None),
    "C[i] = A[i, 0]\0": ("not readable", None),
    "C[i] = \ud800": ("not readable", None),
    "C[i] = " + "9" * 5000: ("not readable", None),
    "C[i] = A[i, 0] and 1": ("the condition is not a bool", "A[i, 0] and"),
    "C[i] = not A[i, 0]": ("the condition is not a bool", "not A"),
    "C[i] = A[i, 0] if i else 1": ("the condition is not a bool", "A[i, 0] if"),
    "C[i] = (i < 1) + (i < 2)": ("arithmetic on bool", "+ (i"),
    "C[i] = A[i, 0.5]": ("an index must be an integer", "A[i, 0.5]"),
    "C[i] = A[i, True]": ("an index must be an integer", "A[i, True]"),
    "C[i] = A[i, 9]": ("lies outside A", None),
    "C[i] = A[i, 0] // 2": ("defined for integers only", "// 2"),
    "C[i] += i < 3": ("adds up over axes", "C"),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text(text):
    problem, pointed = HOSTILE[text]
    message = _refused(text, i=4, **({"A": A} if "A" in text else {}))
    assert problem in message
    if pointed is not None:
        *_, line, caret = message.splitlines()
        assert line[caret.index("^") :].startswith(pointed), message


DEEP = {
    "parentheses": "(" * 3000 + "A[i, 0]" + ")" * 3000,
    "beyond the limit of length": "(" * 10_000 + "A[i, 0]" + ")" * 10_000,
    "signs": "-" * 9_000 + "A[i, 0]",
    "not": "not " * 2_000 + "A[i, 0]",
    "calls": "exp(" * 190 + "A[i, 0]" + ")" * 190,
    "more calls": "exp(" * 1900 + "A[i, 0]" + ")" * 1900,
    "sums": "A[i, 0]" + "+1" * 2000,
    "indices": "A[" * 190 + "0" + "]" * 190,
    "choices": "A[i, 0] if i < 1 else " * 300 + "0",
    "lambdas": "lambda: " * 1000 + "0",
    "attributes": "A" + ".x" * 4000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_text(name):
    message = _refused(f"C[i] = {DEEP[name]}", A=A)
    assert any(
        part in message
        for part in ("nested too deeply", "too long", "too many nested parentheses", "not readable")
    ), message


DECLARATIONS = {
    "te.notation: not a text": (5, {}),
    "te.notation: Z is declared, but does not occur": ("C[i] = A[i, 0]", {"A": A, "Z": 3}),
    "te.notation, A: not a shape": ("C[i] = A[i, 0]", {"A": "float32"}),
    "te.notation, A: an extent must be an integer": ("C[i] = A[i, 0]", {"A": (4, 0.5)}),
    "te.notation, A: an extent must not be negative": ("C[i] = A[i, 0]", {"A": (4, -1)}),
    "read a dtype: not the name of a data type": ("C[i] = A[i, 0]", {"A": (A, "float")}),
    "te.placeholder A: not the dtype of a tensor": ("C[i] = A[i, 0]", {"A": (A, "index")}),
    "te.notation, i: not the domain of an axis": ("C[i] = A[i, 0]", {"A": A, "i": "4"}),
    "te.notation, i: an extent must be an integer": ("C[i] = A[i, 0]", {"A": A, "i": True}),
    "te.notation, k: the domain is empty": ("C[i] += A[i, k]", {"A": A, "k": (3, 2)}),
    "te.notation: the axis i is on the left, and must start at 0": (
        "C[i] = A[i, 0]",
        {"A": A, "i": (1, 3)},
    ),
    "te.notation: the axis i goes beyond A": ("C[i] = A[i, 0]", {"A": A, "i": 5}),
    "te.notation: the axis k goes beyond A": ("C[i] += A[i, k]", {"A": A, "k": (-1, 3)}),
    "te.notation: the axis i is declared twice": (
        "C[i] = A[i, 0]",
        {"A": A, "i": 3, "C": ((4,), "float32")},
    ),
    "te.notation: C is declared with 2 dimensions": ("C[i] = A[i, 0]", {"A": A, "C": (4, 4)}),
    "te.notation: C is declared as another dtype than it has": (
        "C[i, j] = A[i, j] * A[i, j]",
        {"A": N, "C": ((4, 8), "int32")},
    ),
    "te.notation, C: not a shape": (
        "C[i] = A[i, 0]",
        {"A": A, "C": te.placeholder((4,), name="C")},
    ),
}


@pytest.mark.parametrize("problem", DECLARATIONS)
def test_declarations_that_do_not_fit(problem):
    text, declarations = DECLARATIONS[problem]
    assert _refused(text, **declarations).splitlines()[0] == problem


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_read_or_refused(text):
    try:
        te.notation(text, A=A)
    except ExpressionError as error:
        _ = str(error)


PIECES = [
    "A[i, j]", "A[i, k]", "B[k]", "i", "j", "k", "0", "1.5", "+", "-", "*", "//", "(", ")", "<",
    " if ", " else ", " and ", " not ", "max(", "exp(", "sum(", ", ", "axis=k", ".x", "[", "]",
    "'", "lambda: ", ":=", "=", "inf", "int8(", "True",
]  # fmt: skip


@given(st.sampled_from(["=", "+="]), st.lists(st.sampled_from(PIECES), max_size=9))
@settings(max_examples=400)
@example("=", ["A[i, j]", "+", "A[i, k]"])
def test_any_pieces_are_read_or_refused(sign, pieces):
    try:
        C = te.notation(f"C[i, j] {sign} {''.join(pieces)}", A=(3, 3), B=(3,), i=3, j=3, k=3)
    except ExpressionError as error:
        _ = str(error)
        return
    assert C.shape == (3, 3)


def test_nothing_of_the_language_is_reached_by_other_names():
    for name, value in {**vars(builtins), **vars(te)}.items():
        if callable(value) and name not in {*FUNCTIONS, "sum", "bool"}:
            assert "unknown function" in _refused(f"C[i] = {name}(A[i, 0])", A=A)


# -- writing --------------------------------------------------------------------------------------


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
@settings(max_examples=200)
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
