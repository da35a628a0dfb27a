"""Several statements, several results, reductions with conditions and starts, symbols."""

import ast
import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Buffer, Load, TensorLoad, rewrite
from dlcompiler.ir.structural import structural_key
from dlcompiler.te.notation.line import names_of
from tests.fuzz.expressions import TEMPLATES, random_expression
from tests.fuzz.recurrences import TEMPLATES as RECURRENCES

A = (4, 8)


def _array(*shape, dtype="float32"):
    return np.random.default_rng(3).integers(-5, 6, shape).astype(dtype)


def test_later_statements_read_earlier_ones():
    S, M, P = te.notation(
        """
        S[i] += A[i, k]
        M[i, j] = A[i, j] / S[i]
        P[i] = max(M[i, k], axis=k)
        """,
        A=A,
    )
    assert [op.name for op in te.post_order([P])] == ["A", "S", "M", "P"]
    assert te.post_order([M])[0].output(0) in S.op.input_tensors
    a = np.arange(1, 33, dtype="float32").reshape(4, 8)
    np.testing.assert_allclose(te.evaluate(P, [a]), (a / a.sum(1, keepdims=True)).max(1), 1e-6)


REDUCTIONS = {
    "C[i] = prod(A[i, k], axis=k)": lambda a: a.prod(1),
    "C[i] = sum(A[i, k], axis=k, where=A[i, k] > 0)": lambda a: a.clip(0).sum(1),
    "C[i] = max(A[i, k], axis=k, init=3)": lambda a: a.max(1).clip(3),
    "C[i] = sum(A[i, k], axis=k, init=B[i])": lambda a: a.sum(1) + 1,
    "C[i] = min(A[i, k], k, where=k > 2, init=-1)": lambda a: a[:, 3:].min(1).clip(None, -1),
}


@pytest.mark.parametrize("text", REDUCTIONS)
def test_conditions_and_starts(text):
    has_b = "B[" in text
    C = te.notation(text, A=A, **({"B": (4,)} if has_b else {}))
    a = _array(*A)
    given = [a, np.ones(4, "float32")] if has_b else [a]
    np.testing.assert_array_equal(te.evaluate(C, given), REDUCTIONS[text](a))
    _reads_back(C)


def test_what_a_condition_guards_may_lie_outside():
    C = te.notation("C[i] = sum(A[i, k - 1], axis=k, where=k >= 1)", A=A, k=5)
    a = _array(*A)
    np.testing.assert_array_equal(te.evaluate(C, [a]), a[:, :4].sum(1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_and_value(name):
    P, V = te.notation(f"P[i], V[i] = {name}(A[i, k], axis=k)", A=A)
    a = _array(*A)
    position, value = te.evaluate([P, V], [a])
    np.testing.assert_array_equal(position, getattr(a, name)(1))
    np.testing.assert_array_equal(value, getattr(a, name[3:])(1))
    assert te.notation_text(P) == f"P_V_v0[i], P_V_v1[i] = {name}(A[i, k], axis=k)"
    _reads_back(P, V)


def test_results_side_by_side():
    P, Q = te.notation("P[i], Q[i] = A[i, 0] + 1, int8(i) if i < 2 else 0", A=A)
    assert (P.dtype, Q.dtype, P.op is Q.op) == ("float32", "int8", True)
    _reads_back(P, Q)


def test_a_reduction_of_ones_own():
    closest = te.comm_reducer(
        lambda x, y: te.select(te.abs(x) < te.abs(y), x, y),
        lambda dtype: te.const(1000, dtype),
        name="closest",
    )
    C = te.notation("C[i] = closest(A[i, k], axis=k, where=k < 7)", A=A, closest=closest)
    assert te.notation_text(C) == "C[i] = closest(A[i, k], axis=k, where=k < 7)"
    _reads_back(C)
    with pytest.raises(ExpressionError, match=r"a reducer made by te\.comm_reducer has no text"):
        te.notation_python(C)


def test_a_reduction_of_ones_own_of_several_values():
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.maximum(x[1], y[1])),
        lambda a, b: (te.const(0, a), te.min_value(b)),
        name="both",
    )
    k = te.reduce_axis((0, 8), name="k")
    X = te.placeholder(A, name="A")
    S, M = te.compute((4,), lambda i: both((X[i, k], X[i, k] * 2), axis=k), name="C")
    text = te.notation_text(S, M)
    assert text == "C_v0[i], C_v1[i] = both((A[i, k], A[i, k]*2.0), axis=k)"
    _reads_back(S, M)


def test_a_reducer_that_only_has_the_name_of_another():
    own = te.comm_reducer(lambda x, y: x + y, lambda dtype: te.const(0, dtype), name="sum")
    k, X = te.reduce_axis((0, 8), name="k"), te.placeholder(A, name="A")
    C = te.compute((4,), lambda i: own(X[i, k], axis=k), name="C")
    assert te.notation_text(C) == "C[i] = sum_(A[i, k], axis=k)"
    _reads_back(C)


# -- symbols --------------------------------------------------------------------------------------


def test_extents_that_are_symbols():
    C = te.notation("C[i, j] += A[i, k] * B[k, j]", A=("n", "m"), B=("m", 4))
    n, four = C.shape
    assert (str(n), four, str(C.op.reduce_axis[0].extent)) == ("n", 4, "m")
    assert n.is_symbol
    assert len(te.symbols_of([C])) == 2
    _reads_back(C)


def test_formulas_of_symbols():
    C = te.notation("C[i] = A[i + 1] + A[i * 2]", A=("2*n + 1",), i="n")
    assert [str(extent) for extent in C.shape] == ["n"]
    assert str(te.notation("C[i] = 1", i="max(n // 2, 1)").shape[0]) == "max(n // 2, 1)"
    _reads_back(C)


def test_numbers_of_the_caller():
    Y = te.notation("Y[i] = a*X[i] + X[n - 1 - i]", X=("n",), a="float32")
    assert {x.name: x.dtype for x in te.symbols_of([Y])} == {"n": "index", "a": "float32"}
    _reads_back(Y)
    a = te.var("a", "float64")
    Z = te.notation("Z[i] = X[i] * a", X=((3,), "float64"), a=a)
    assert te.symbols_of([Z]) == (a,)


def test_symbols_of_tensors_that_are_given():
    n = te.var("n")
    X = te.placeholder((n, 3), name="X")
    C = te.notation("C[i] += X[i, k] * B[i]", X=X, B=("n",))
    assert te.symbols_of([C]) == (n,)
    D = te.notation("D[i] = X[i, 0]", X=X, i=n)
    assert D.shape == (n,)


def test_python_code_with_symbols():
    Y = te.notation("Y[i] = a*X[i + 1]", X=("n + 1",), a="float32", i="n")
    code = te.notation_python(Y)
    assert code == (
        'n = te.var("n")\na = te.var("a", "float32")\n'
        'X = te.placeholder((n + 1,), "float32", name="X")\n'
        'Y = te.notation("Y[i] = a*X[i + 1]", X=X, a=a, i=(0, n))'
    )
    scope = {"te": te}
    exec(code, scope)
    assert te.notation_text(scope["Y"]) == te.notation_text(Y)


def test_a_name_stands_for_one_domain_in_the_whole_text():
    X = te.placeholder((9,), name="X")
    U = te.compute((3,), lambda i: X[i + 1], name="U")
    V = te.compute((5,), lambda i: X[i] + U[0], name="V")
    assert te.notation_text(V) == "U[i] = X[i + 1]\nV[i_1] = X[i_1] + U[0]"
    assert te.notation_arguments(V) == {"X": ((9,), "float32"), "i": (0, 3), "i_1": (0, 5)}
    _reads_back(V)


# -- random expressions ---------------------------------------------------------------------------


def _reads_back(*outputs):
    """Read a text with nothing but what it needs; it makes the same operations."""
    text, arguments = te.notation_text(*outputs), te.notation_arguments(*outputs)
    ast.literal_eval(repr({n: x for n, x in arguments.items() if not callable(x)}))
    found = te.notation(text, **arguments)
    tensors = found if isinstance(found, tuple) else (found,)
    assert te.notation_text(*tensors) == text
    assert te.signature_text(*tensors[-1].op.outputs) or not text
    by_name = {tensor.name: tensor for op in te.post_order(tensors) for tensor in op.outputs}
    assert len(by_name) == sum(len(op.outputs) for op in te.post_order(outputs))
    for mine, other in zip(_computed(outputs), _computed(tensors), strict=True):
        for a, b in zip(mine.outputs, other.outputs, strict=True):
            assert (a.dtype, str(a.shape)) == (b.dtype, str(b.shape))
        for a, b in zip(mine.bodies, other.bodies, strict=True):
            assert _skeleton(a) == _skeleton(b), f"{text}\n{a}\n{b}"
    return tensors


def _computed(outputs):
    return [op for op in te.post_order(outputs) if isinstance(op, te.ComputeOp)]


def _skeleton(body):
    """Return a body with the identity of tensors left out."""
    buffers = {}

    def rule(node):
        if not isinstance(node, TensorLoad):
            return node
        tensor = node.tensor
        buffer = buffers.setdefault(tensor, Buffer("T", (1,) * tensor.ndim, tensor.dtype))
        return Load(buffer, node.indices)

    return structural_key(rewrite(body, rule), rename=True)


@pytest.mark.campaign
@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in RECURRENCES])
def test_random_expressions_read_back(template):
    for seed in range(4):
        expression = random_expression(random.Random(f"{template} {seed}"), template)
        tensors = _reads_back(*expression.outputs)
        if te.symbols_of(expression.outputs) or not expression.is_exact:
            continue
        names = names_of(expression.outputs).tensors
        arrays = expression.arrays(seed)
        by_name = {names[tensor]: array for tensor, array in arrays.items()}
        inputs = {
            op.output(0): by_name[op.name]
            for op in te.post_order(tensors)
            if isinstance(op, te.PlaceholderOp)
        }
        order = [names[t] for op in _computed(expression.outputs) for t in op.outputs]
        made = dict(zip(order, tensors, strict=True))
        wanted = te.evaluate(expression.outputs, arrays)
        found = te.evaluate([made[names[tensor]] for tensor in expression.outputs], inputs)
        for a, b in zip(wanted, found, strict=True):
            if a.dtype.name == "bfloat16":  # of which NumPy does not know that NaN is NaN
                a, b = a.astype("float32"), b.astype("float32")
            np.testing.assert_array_equal(a, b)
