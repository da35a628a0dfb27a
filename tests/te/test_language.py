"""What the language builds, and the exact texts of what it refuses."""

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.compat import tvm
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Cast, Const, format_expr

A = te.placeholder((4, 8), name="A")
N = te.placeholder((4, 8), "int8", name="N")
U = te.placeholder((4, 8), "uint8", name="U")
D = te.placeholder((4, 8), "float64", name="D")
k = te.reduce_axis((0, 8), name="k")


def _refused(make):
    with pytest.raises(ExpressionError) as error:
        make()
    return str(error.value)


def _body(make, shape=(4, 8)):
    return te.compute(shape, make, name="C").op.body


# -- tensors --------------------------------------------------------------------------------------


def test_a_placeholder():
    assert (A.name, A.shape, A.dtype, A.ndim, A.op.input_tensors) == ("A", (4, 8), "float32", 2, ())
    assert repr(A) == "Tensor(A: float32[4, 8])"
    assert te.placeholder(5).shape == (5,)
    assert te.placeholder((2.0, np.int64(3), 0)).shape == (2, 3, 0)
    assert te.placeholder(()).shape == ()


def test_unnamed_placeholders_and_axes_get_different_names():
    assert te.placeholder((1,)).name != te.placeholder((1,)).name
    assert te.reduce_axis((0, 1)).name != te.reduce_axis((0, 1)).name


def test_a_computation_names_its_axes_after_the_parameters():
    C = te.compute((4, 8), lambda row, column: A[row, column], name="C")
    assert [axis.name for axis in C.op.axis] == ["row", "column"]
    assert [axis.extent for axis in C.op.axis] == [4, 8]
    starred = te.compute((4, 8), lambda *i: A[i], name="S")
    assert [axis.name for axis in starred.op.axis] == ["i0", "i1"]
    mixed = te.compute((4, 8), lambda row, *rest: A[row, rest[0]], name="S")
    assert [axis.name for axis in mixed.op.axis] == ["row", "rest0"]


def test_a_reduction():
    C = te.compute((4,), lambda i: te.sum(A[i, k] * 2, axis=k), name="C")
    assert C.op.reduce_axis == (k,)
    assert format_expr(C.op.body) == "sum(A[i, k]*2.0, axis=[k])"
    assert C.op.input_tensors == (A,)
    assert C.dtype == "float32"


def test_what_reads_what():
    B = te.compute((4, 8), lambda i, j: A[i, j] + N[i, j], name="B")
    C = te.compute((4, 8), lambda i, j: B[i, j] * A[i, j], name="C")
    assert [op.name for op in te.post_order([C])] == ["A", "N", "B", "C"]


REFUSALS = {
    "te.placeholder A: the tensor is too large\n"
    "  got       1152921504606846976 elements\n"
    "  expected  ≤ 1099511627776": lambda: te.placeholder((2**30, 2**30), name="A"),
    "te.placeholder A: an extent must not be negative\n  got       (4, -1)": lambda: te.placeholder(
        (4, -1), name="A"
    ),
    "te.placeholder A: an extent must be an integer\n  got       2.5": lambda: te.placeholder(
        (2.5,), name="A"
    ),
    "te.placeholder A: an extent must be an integer\n  got       nan": lambda: te.placeholder(
        (float("nan"),), name="A"
    ),
    "te.placeholder A: an extent must be an integer\n  got       inf": lambda: te.placeholder(
        (float("inf"),), name="A"
    ),
    "te.placeholder A: an extent must be an integer\n  got       True": lambda: te.placeholder(
        (True,), name="A"
    ),
    "te.placeholder A: an extent must be an integer\n  got       '4'": lambda: te.placeholder(
        ("4",), name="A"
    ),
    "te.placeholder: not usable as a name\n"
    "  got       'a b'\n"
    "  expected  letters, digits, '_' and '.'": lambda: te.placeholder((4,), name="a b"),
    "te.placeholder A: not the dtype of a tensor\n"
    "  got       index\n"
    "  expected  float32 …": lambda: te.placeholder((4,), "index", name="A"),
    "te.placeholder A: not the dtype of a tensor\n"
    "  got       float32x4\n"
    "  expected  float32 …": lambda: te.placeholder((4,), "float32x4", name="A"),
    "te.reduce_axis k: the domain is not a pair\n  got       8\n  expected  (0, n)": lambda: (
        te.reduce_axis(8, name="k")
    ),
    "te.reduce_axis k: the domain ends before it starts\n"
    "  got       (3, 2)\n"
    "  expected  (0, n)": lambda: te.reduce_axis((3, 2), name="k"),
    "te.compute C: the function's number of parameters differs from the number of dimensions\n"
    "  got       1 parameters (i)\n"
    "  expected  2": lambda: te.compute((4, 8), lambda i: A[i, 0], name="C"),
    "te.compute C: no expression of an element is given\n  got       []": lambda: te.compute(
        (4,), lambda i: [], name="C"
    ),
    "te.compute C: a reduction stands inside another expression\n"
    "  got       sum(A[i, k], axis=[k])\n"
    "  hint      give the reduction its own te.compute and use its elements": lambda: te.compute(
        (4,), lambda i: te.sum(A[i, k], axis=k) + 1, name="C"
    ),
    "te.compute C: the axis k does not belong to this computation\n"
    "  got       A[i, k]\n"
    "  hint      reduce over it with te.sum(…, axis=…)": lambda: te.compute(
        (4,), lambda i: A[i, k], name="C"
    ),
    "te.sum: can only reduce over reduction axes\n"
    "  got       8\n"
    "  expected  an axis made by te.reduce_axis, or a list of them": lambda: te.sum(
        A[0, k], axis=8
    ),
    "te.max: each axis must be given once\n  got       ()": lambda: te.max(A[0, k], axis=[]),
    "te.sum: cannot reduce conditions\n"
    "  got       k < 3\n"
    "  hint      use .astype('int32'), or te.comm_reducer with te.all or te.any": lambda: te.sum(
        k < 3, axis=k
    ),
    "te.compute C: A[i + 1, j] lies outside A at i=3\n"
    "  got       index 4 in dimension 0\n"
    "  expected  0 to 3, as A has the shape (4, 8)\n"
    "  hint      guard it: te.if_then_else(condition, element, other)": lambda: _body(
        lambda i, j: A[i + 1, j]
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_tensor_refusals(text):
    assert _refused(REFUSALS[text]) == text


def test_a_deep_expression_is_refused():
    def deep(i):
        value = A[i, 0]
        for _ in range(10_000):
            value = value + 1
        return value

    assert _refused(lambda: te.compute((4,), deep, name="C")) == (
        "te.compute C: the expression is nested too deeply\n"
        "  got       10002 levels\n"
        "  expected  at most 128\n"
        "  hint      split it into several te.compute, or reduce over an axis instead of adding "
        "terms"
    )


# -- indexing -------------------------------------------------------------------------------------


def test_indices_may_come_one_by_one():
    B = te.compute((4, 8), lambda i, j: A[i][j] + A(i)[j], name="B")
    assert str(B.op.body) == "A[i, j] + A[i, j]"


i, j = Axis("i", 4, "data"), Axis("j", 8, "data")

INDEX_REFUSALS = {
    "index A: wrong number of indices\n"
    "  got       1: A[3]\n"
    "  expected  2, one for each dimension of (4, 8)": lambda: A[3] + 1,
    "index A: wrong number of indices\n"
    "  got       0: A[]\n"
    "  expected  2, one for each dimension of (4, 8)": lambda: A[()],
    "index 1 of A: slices are not supported\n"
    "  got       slice(None, 3, None)": lambda: A[0, :3],
    "index 0 of A: slices are not supported\n  got       Ellipsis": lambda: A[..., 0],
    "index 0 of A: a bool is not an index\n  got       True": lambda: A[True, 0],
    "index 0 of A: a bool is not an index\n  got       np.True_": lambda: A[np.True_, 0],
    "index 0 of A: an index must be an integer\n"
    "  got       1.5 (float32)": lambda: A[1.5, 0],
    "index 0 of A: an index must be an integer\n"
    "  got       A[0, 0] (float32)": lambda: A[A[0, 0], 0],
    "iterate over A: a tensor cannot be iterated over\n"
    "  because   its values are not known while the program is defined\n"
    "  hint      index it with axes inside te.compute: A[i, j]": lambda: list(A),
    "output 1 of A: no such output\n  got       1\n  expected  0": lambda: A.op.output(1),
    "expression: cannot be used in an expression\n"
    "  got       Tensor(A: float32[4, 8]) (Tensor)\n"
    "  expected  an expression, an axis, or a number\n"
    "  hint      index a tensor to use its elements: A[i, j]": lambda: te.all(A),
    "expression: cannot be used in an expression\n"
    "  got       'x' (str)\n"
    "  expected  an expression, an axis, or a number": lambda: te.exp("x"),
}  # fmt: skip


@pytest.mark.parametrize("text", INDEX_REFUSALS)
def test_index_refusals(text):
    assert _refused(INDEX_REFUSALS[text]) == text


def test_indexing():
    assert str(A[i, j]) == str(A(i, j)) == "A[i, j]"
    assert str(A[np.int64(3), 2]) == "A[3, 2]"
    assert str(A[N[i, j], 0]) == "A[index(N[i, j]), 0]"


# -- conditions -----------------------------------------------------------------------------------

PYTHON_BOOL = (
    ": the condition is a Python bool, decided before the program runs\n"
    "  got       False\n"
    "  expected  a comparison of axes or tensor elements\n"
    "  hint      use te.all(a, b) and te.any(a, b) instead of 'and' and 'or'; "
    "te.const(True, 'bool') if a constant is meant"
)


def test_a_python_bool_is_no_condition():
    assert _refused(lambda: te.if_then_else(False, 1, 2)) == "te.if_then_else" + PYTHON_BOOL
    assert _refused(lambda: te.select(np.bool_(False), 1, 2)).startswith("te.select: the condition")
    assert _refused(lambda: te.all(i < 3, False)) == "te.all" + PYTHON_BOOL
    assert _refused(lambda: te.any(False)) == "te.any" + PYTHON_BOOL


def test_a_condition_must_be_one():
    assert _refused(lambda: te.if_then_else(A[i, j], 1, 2)) == (
        "te.if_then_else: the condition is not a bool\n"
        "  got       A[i, j] (float32)\n"
        "  hint      compare it: x != 0"
    )
    assert _refused(te.all) == "te.all: no condition given"


def test_python_decides_nothing():
    text = (
        "truth value of an expression: it is known only when the program runs\n"
        "  got       i < 3\n"
        "  hint      combine conditions with te.all(a, b) or te.any(a, b), choose with "
        "te.if_then_else(condition, a, b)"
    )
    assert _refused(lambda: (i < 3) and (j < 3)) == text
    assert _refused(lambda: 1 if i < 3 else 2) == text
    assert _refused(lambda: 0 < i < 3).startswith("truth value")
    assert _refused(lambda: i == 0 and j == 0).startswith("truth value")
    assert _refused(lambda: not A[i, j]).startswith("truth value")
    assert _refused(lambda: bool(A[i, j] == A[i, j])).startswith("truth value")


def test_axes_are_compared_by_identity():
    assert i in [j, i]
    assert [j, i].index(i) == 1
    assert i not in [j]
    assert {i: 1}[i] == 1
    assert (i == 3).dtype == "bool"


def test_choices_promote_their_sides():
    assert te.if_then_else(i < 3, N[i, j], 0).dtype == "int8"
    assert te.if_then_else(i < 3, 0.5, N[i, j]).dtype == "float32"
    assert te.select(i < 3, A[i, j], D[i, j]).dtype == "float64"
    assert te.if_then_else(i < 3, i < 1, i < 2).dtype == "bool"


# -- arithmetic -----------------------------------------------------------------------------------


def test_promotion():
    assert (A[i, j] + N[i, j]).dtype == "float32"
    assert (A[i, j] + D[i, j]).dtype == "float64"
    assert (N[i, j] + U[i, j]).dtype == "int16"
    assert (N[i, j] * 2).dtype == "int8"
    assert (N[i, j] * 0.5).dtype == "float32"
    assert (N[i, j] / 2).dtype == "float32"
    assert (D[i, j] / 3).dtype == "float64"
    assert (i + N[i, j]).dtype == "int8"
    assert (i + 1).dtype == (1 + i).dtype == (i * j).dtype == "index"
    assert (2 - A[i, j]).dtype == "float32"
    assert te.exp(N[i, j]).dtype == "float32"
    assert te.power(N[i, j], 2).dtype == "int8"
    assert te.power(N[i, j], N[i, j]).dtype == te.power(N[i, j], -1).dtype == "float32"
    assert te.power(D[i, j], 2).dtype == "float64"


ARITHMETIC_REFUSALS = {
    "add of conditions: arithmetic on bool is not defined\n"
    "  got       i < 3 and j < 3\n"
    "  hint      combine with te.all/te.any, or convert with .astype('int32')": lambda: (
        (i < 3) + (j < 3)
    ),
    "floordiv of floats: defined for integers only\n"
    "  got       A[i, j] and 2.0 (float32)\n"
    "  hint      te.floor(a / b) and te.fmod(a, b) are for floats": lambda: A[i, j] // 2,
    "promote dtypes: no data type holds the values of both\n"
    "  got       uint64 and int64\n"
    "  hint      cast one of them: x.astype('int64') or x.astype('uint64')": lambda: (
        te.const(1, "uint64") + te.const(1, "int64")
    ),
    "literal 300: does not fit int8\n"
    "  got       300\n"
    "  expected  -128 to 127\n"
    "  hint      cast the other operand to a wider type with .astype(…)": lambda: N[i, j] + 300,
    "literal 1e+39: does not fit float32\n"
    "  got       1e+39\n"
    "  expected  -3.4028234663852886e+38 to 3.4028234663852886e+38\n"
    "  hint      cast the other operand to a wider type with .astype(…)": lambda: A[i, j] * 1e39,
    "literal 0.5: not an integer, as int32 needs\n  got       0.5": lambda: te.const(0.5, "int32"),
    "literal nan: not an integer, as int32 needs\n"
    "  got       nan": lambda: te.const(float("nan"), "int32"),
    "literal: not a number\n  got       '1'": lambda: te.const("1", "float32"),
    "literal: not a number\n  got       1j": lambda: te.const(1j, "float32"),
    "read a dtype: not the name of a data type\n"
    "  got       'float'\n"
    "  expected  bool, index, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
    "bfloat16, float32, float64, or one of them with lanes: float32x8\n"
    "  hint      did you mean 'float64'?": lambda: A[i, j].astype("float"),
}  # fmt: skip


@pytest.mark.parametrize("text", ARITHMETIC_REFUSALS)
def test_arithmetic_refusals(text):
    assert _refused(ARITHMETIC_REFUSALS[text]) == text


def test_literals():
    assert (te.const(True, "bool").value, te.const(2.0, "int8").value) == (True, 2)
    assert te.const(float("inf"), "float16").value == float("inf")
    assert te.const(np.float32(0.5), "float32").value == 0.5
    assert te.min_value("float32").value == float("-inf")
    assert (te.min_value("int8").value, te.max_value("uint8").value) == (-128, 255)
    with pytest.raises(ExpressionError, match="does not fit float64"):
        te.const(10**400, "float64")
    with pytest.raises(ExpressionError, match="does not fit int64"):
        te.const(10**400, "int64")


@pytest.mark.parametrize("make", [te.const, tvm.tir.const, tvm.const])
def test_a_literal_has_the_dtype_of_its_value(make):
    values = [4, 4.0, True, np.uint8(3), np.float64(0.5), np.float16(0.5), np.bool_(False)]
    kinds = ["int32", "float32", "bool", "uint8", "float64", "float16", "bool"]
    made = [make(value) for value in values]
    assert [literal.dtype for literal in made] == kinds
    assert [literal.value for literal in made] == values
    assert make(np.int64(2**40)).value == 2**40
    assert make(dtypes.to_numpy("bfloat16").type(1.5)).dtype == "bfloat16"


LITERAL_REFUSALS = {
    "te.const: the value does not fit int32, the default dtype of an int\n"
    "  got       1099511627776\n"
    "  hint      give a dtype: te.const(value, 'int64')": lambda: te.const(2**40),
    "literal 300: does not fit int8\n"
    "  got       300\n"
    "  expected  -128 to 127\n"
    "  hint      cast the other operand to a wider type with .astype(…)": lambda: te.const(
        300, "int8"
    ),
    "literal nan: not an integer, as int8 needs\n  got       nan": lambda: te.const(
        float("nan"), "int8"
    ),
    "literal 2: does not fit bool\n"
    "  got       2\n"
    "  expected  0 or 1\n"
    "  hint      compare it: x != 0": lambda: te.const(2, "bool"),
    "te.const: a literal is one number, not a vector\n"
    "  got       float32x4\n"
    "  expected  one lane": lambda: te.const(1, "float32x4"),
    "te.const: an index must fit 64 bits\n  got       9223372036854775808": lambda: te.const(
        2**63, "index"
    ),
}


@pytest.mark.parametrize("text", LITERAL_REFUSALS)
def test_literal_refusals(text):
    assert _refused(LITERAL_REFUSALS[text]) == text


def test_numbers_on_indices_fold():
    body = _body(lambda i, j: A[0 * 3 + 1, j])
    assert str(body) == "A[1, j]"


def test_an_index_as_a_result_is_int32():
    body = _body(lambda i, j: i * 8 + j)
    assert isinstance(body, Cast)
    assert body.dtype == "int32"


def test_absolute_value_by_family():
    assert str(te.abs(A[i, j])) == "abs(A[i, j])"
    assert str(te.abs(N[i, j])) == "max(N[i, j], -N[i, j])"
    assert str(te.abs(U[i, j])) == "U[i, j]"


def test_absolute_values_of_all_integers():
    for dtype, values, expected in [
        ("int8", [-128, -1, 5], [-128, 1, 5]),
        ("uint8", [0, 5, 255], [0, 5, 255]),
    ]:
        X = te.placeholder((3,), dtype, name="X")
        Y = te.compute((3,), lambda i: te.abs(X[i]))  # noqa: B023
        assert te.evaluate(Y, [np.array(values, dtype)]).tolist() == expected


def test_negation_of_zero():
    X = te.placeholder((2,), name="X")
    Y = te.compute((2,), lambda i: 1 / -X[i])
    got = te.evaluate(Y, [np.array([0.0, -0.0], "float32")])
    assert got.tolist() == [float("-inf"), float("inf")]


def test_compound_functions():
    x = np.array([0.25, 1.0, 4.0], "float32")
    X = te.placeholder((3,), name="X")
    for function, expected in {
        te.rsqrt: 1 / np.sqrt(x),
        te.sigmoid: 1 / (1 + np.exp(-x)),
        te.round: np.rint(x),
        te.trunc: np.trunc(x),
    }.items():
        Y = te.compute((3,), lambda i: function(X[i]))  # noqa: B023
        np.testing.assert_allclose(te.evaluate(Y, [x]), expected, rtol=1e-6)


def test_division_by_function():
    n = te.const(-7, "int32")
    assert [str(f(n, 2)) for f in (te.floordiv, te.truncdiv, te.indexmod)] == [
        "-7 // 2",
        "truncdiv(-7, 2)",
        "-7 % 2",
    ]
    assert isinstance(te.div(n, 2).a, Cast | Const)


def test_what_computes_must_be_a_function():
    assert _refused(lambda: te.compute((4,), 5, name="C")) == (
        "te.compute C: not a function of the axes\n  got       5"
    )


def test_a_literal_of_too_many_digits_is_refused():
    for dtype in ("int8", "int64", "float32", "float64", "bool", "index", None):
        with pytest.raises(ExpressionError, match="an integer of 16610 bits"):
            te.const(10**5000, dtype)
