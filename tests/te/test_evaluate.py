"""te.evaluate against NumPy written by hand, and against the interpreter."""

import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, ExpressionError, ProgramError
from dlcompiler.simulate import interpret
from dlcompiler.te.evaluation import stages

rng = np.random.default_rng(7)


def _random(*shape, dtype="float32"):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def _placeholder(array, name):
    return te.placeholder(array.shape, array.dtype.name, name=name)


@pytest.fixture(params=["whole", "blocks"])
def block_points(request, monkeypatch):
    """Evaluate in one piece, and in pieces of 7 points."""
    if request.param == "blocks":
        monkeypatch.setattr(stages, "BLOCK_POINTS", 7)


def _matmul(n, m, depth, dtype="float32", acc=None):
    A = te.placeholder((n, depth), dtype, name="A")
    B = te.placeholder((depth, m), dtype, name="B")
    k = te.reduce_axis((0, depth), name="k")
    acc = acc or dtype
    body = lambda i, j: te.sum(A[i, k].astype(acc) * B[k, j].astype(acc), axis=k)  # noqa: E731
    return A, B, te.compute((n, m), body, name="C")


# -- by hand --------------------------------------------------------------------------------------


def test_matmul():
    A, B, C = _matmul(13, 7, 31)
    a, b = _random(13, 31), _random(31, 7)
    got = te.evaluate(C, {A: a, B: b})
    assert (got.dtype, got.shape) == (np.float32, (13, 7))
    np.testing.assert_allclose(got, a.astype("float64") @ b, atol=1e-5)
    np.testing.assert_array_equal(te.evaluate(C, [a, b]), got)


def test_batched_matmul_with_axes_in_any_order(block_points):
    a, b = _random(3, 5, 4), _random(6, 4, 3)
    A, B = _placeholder(a, "A"), _placeholder(b, "B")
    k = te.reduce_axis((0, 4))
    C = te.compute((6, 3, 5, 2), lambda j, n, i, t: te.sum(A[n, i, k] * B[j, k, n], axis=k))
    expected = np.einsum("nik,jkn->jni", a, b)[..., None].repeat(2, axis=3)
    np.testing.assert_allclose(te.evaluate(C, [a, b]), expected, atol=1e-5)


def test_a_product_that_is_not_worth_a_matrix_product(block_points):
    a, b = _random(9, 8), _random(9, 8)
    A, B = _placeholder(a, "A"), _placeholder(b, "B")
    k = te.reduce_axis((0, 8))
    C = te.compute((9,), lambda i: te.sum(A[i, k] * B[i, k], axis=k))
    np.testing.assert_allclose(te.evaluate(C, [a, b]), (a * b).sum(1), atol=1e-5)


def test_an_axis_that_only_one_factor_has(block_points):
    a, b = _random(6, 5, 4), _random(4, 7)
    A, B = _placeholder(a, "A"), _placeholder(b, "B")
    k, r = te.reduce_axis((0, 4)), te.reduce_axis((0, 5))
    C = te.compute((6, 7), lambda i, j: te.sum(A[i, r, k] * B[k, j], axis=[k, r]))
    np.testing.assert_allclose(te.evaluate(C, [a, b]), np.einsum("irk,kj->ij", a, b), atol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integer_matmul_wraps(dtype):
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, (9, 40), dtype, endpoint=True)
    b = rng.integers(info.min, info.max, (40, 11), dtype, endpoint=True)
    _, _, C = _matmul(9, 11, 40, dtype)
    with np.errstate(over="ignore"):
        expected = (a[:, :, None] * b[None]).sum(1, dtype=dtype)
    np.testing.assert_array_equal(te.evaluate(C, [a, b]), expected)


def test_int8_matmul_accumulates_in_int32():
    a, b = _random(9, 40, dtype="int8"), _random(40, 11, dtype="int8")
    _, _, C = _matmul(9, 11, 40, "int8", acc="int32")
    np.testing.assert_array_equal(te.evaluate(C, [a, b]), a.astype("int32") @ b.astype("int32"))


def test_float16_rounds_its_products():
    a, b = np.full((1, 4), 300, "float16"), np.full((4, 1), 300, "float16")
    _, _, C = _matmul(1, 1, 4, "float16")
    assert te.evaluate(C, [a, b]).tolist() == [[np.inf]]
    _, _, C = _matmul(1, 1, 4, "float16", acc="float32")
    assert te.evaluate(C, [a, b]).tolist() == [[360000.0]]


def _conv(data, weight, pad):
    n, c, h, w = data.shape
    o, _, r, _ = weight.shape
    D, W = _placeholder(data, "D"), _placeholder(weight, "W")
    P = te.compute(
        (n, c, h + 2 * pad, w + 2 * pad),
        lambda b, ch, y, x: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < w + pad), D[b, ch, y - pad, x - pad], 0.0
        ),
        name="P",
    )
    ch, ry, rx = te.reduce_axis((0, c)), te.reduce_axis((0, r)), te.reduce_axis((0, r))
    return te.compute(
        (n, o, h + 2 * pad - r + 1, w + 2 * pad - r + 1),
        lambda b, f, y, x: te.sum(P[b, ch, y + ry, x + rx] * W[f, ch, ry, rx], axis=[ch, ry, rx]),
        name="O",
    )


def _conv_numpy(data, weight, pad):
    padded = np.pad(data.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    r = weight.shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (r, r), axis=(2, 3))
    return np.einsum("bcyxrs,fcrs->bfyx", windows, weight)


def test_padded_convolution(block_points):
    data, weight = _random(2, 3, 6, 5), _random(4, 3, 3, 3)
    got = te.evaluate(_conv(data, weight, 1), [data, weight])
    np.testing.assert_allclose(got, _conv_numpy(data, weight, 1), atol=1e-4)


def test_max_pooling_propagates_nan(block_points):
    data = _random(4, 6)
    data[1, 2] = np.nan
    D = _placeholder(data, "D")
    r, c = te.reduce_axis((0, 2)), te.reduce_axis((0, 2))
    P = te.compute((2, 3), lambda y, x: te.max(D[2 * y + r, 2 * x + c], axis=[r, c]))
    expected = data.reshape(2, 2, 3, 2).max(axis=(1, 3))
    np.testing.assert_array_equal(te.evaluate(P, [data]), expected)
    assert np.isnan(expected).sum() == 1


def test_softmax_in_stages(block_points):
    x = _random(5, 9)
    X = _placeholder(x, "X")
    k, q = te.reduce_axis((0, 9), name="k"), te.reduce_axis((0, 9), name="q")
    M = te.compute((5,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((5, 9), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((5,), lambda i: te.sum(E[i, q], axis=q), name="S")
    Y = te.compute((5, 9), lambda i, j: E[i, j] / S[i], name="Y")
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(te.evaluate(Y, [x]), e / e.sum(1, keepdims=True), rtol=1e-5)
    sums, result = te.evaluate([S, Y], {X: x})
    assert (sums.shape, result.shape) == ((5,), (5, 9))


def test_gather_and_transposition(block_points):
    table, rows = _random(5, 3), np.array([4, 0, 0, 2], "int64")
    T, R = _placeholder(table, "T"), _placeholder(rows, "R")
    G = te.compute((3, 4), lambda j, i: T[R[i], j])
    np.testing.assert_array_equal(te.evaluate(G, {T: table, R: rows}), table[rows].T)


def test_axes_that_start_elsewhere(block_points):
    x = _random(10)
    X = _placeholder(x, "X")
    k = te.reduce_axis((3, 8), name="k")
    S = te.compute((), lambda: te.sum(X[k] * k, axis=k))
    expected = (x[3:8] * np.arange(3, 8)).sum()
    np.testing.assert_allclose(te.evaluate(S, [x]), expected, rtol=1e-5)


def test_views_backwards_and_diagonal(block_points):
    x = _random(4, 9)
    X = _placeholder(x, "X")
    D = te.compute((4, 3), lambda i, j: X[3 - i, i + 2 * j])
    expected = [[x[3 - i, i + 2 * j] for j in range(3)] for i in range(4)]
    np.testing.assert_array_equal(te.evaluate(D, [x]), expected)


def test_a_scalar_and_a_constant():
    x = np.array(3.0, "float32")
    X = _placeholder(x, "X")
    assert te.evaluate(te.compute((), lambda: X[()] * 2), [x]) == 6
    np.testing.assert_array_equal(
        te.evaluate(te.compute((2, 3), lambda i, j: te.const(1.5, "float64")), []),
        np.full((2, 3), 1.5),
    )
    rows = te.evaluate(te.compute((3,), lambda i: i), [])
    assert (rows.tolist(), rows.dtype) == ([0, 1, 2], np.int32)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_empty_shapes(shape, dtype):
    x = np.zeros(shape, dtype)
    X = _placeholder(x, "X")
    k = te.reduce_axis((0, shape[1]))
    results = te.evaluate(
        [
            te.compute(shape, lambda i, j: X[i, j] + 1),
            te.compute(shape[:1], lambda i: te.sum(X[i, k], axis=k)),
            te.compute(shape[:1], lambda i: te.max(X[i, k], axis=k)),
            te.compute(shape[:1], lambda i: te.sum(X[i, k] * X[i, k], axis=k)),
        ],
        [x],
    )
    assert [r.shape for r in results] == [shape, shape[:1], shape[:1], shape[:1]]
    assert results[1].tolist() == [0.0] * shape[0]
    assert results[2].tolist() == [-np.inf if dtype == "float32" else -(2**31)] * shape[0]


def test_a_placeholder_is_its_own_value():
    x = _random(3)
    X = _placeholder(x, "X")
    got = te.evaluate(X, [x])
    assert got is not x
    np.testing.assert_array_equal(got, x)


def test_arrays_of_any_layout():
    base = _random(8, 10)
    x = base[::-2, 1::3].T
    X = te.placeholder(x.shape, name="X")
    np.testing.assert_array_equal(
        te.evaluate(te.compute(x.shape, lambda i, j: X[i, j] * 2), [x]), x * 2
    )


def test_a_condition_guards_only_where_it_holds(block_points):
    x = _random(5)
    X = _placeholder(x, "X")
    after = te.compute((5,), lambda i: te.if_then_else(i >= 4, 0.0, X[i + 1]))
    np.testing.assert_array_equal(te.evaluate(after, [x]), [*x[1:], 0])
    near = te.compute(
        (5,),
        lambda i: te.if_then_else(te.all(i >= 1, X[i - 1] > 0), X[i - 1], te.const(0.0, "float32")),
    )
    np.testing.assert_array_equal(te.evaluate(near, [x]), [0, *np.maximum(x[:-1], 0)])
    either = te.compute((5,), lambda i: te.any(i < 1, X[i - 1] > 0).astype("int32"))
    np.testing.assert_array_equal(te.evaluate(either, [x]), [1, *(x[:-1] > 0)])


def test_a_guarded_gather_from_an_empty_tensor():
    X = te.placeholder((0,), name="X")
    Y = te.compute((2,), lambda i: te.if_then_else(i < 0, X[i], 1.0))
    assert te.evaluate(Y, [np.zeros(0, "float32")]).tolist() == [1, 1]


def test_bfloat16_inside():
    x = np.array([1.01, 2.0, 257.0], "float32")
    X = _placeholder(x, "X")
    narrow = te.compute((3,), lambda i: X[i].astype("bfloat16"), name="N")
    wide = te.compute((3,), lambda i: narrow[i].astype("float32"), name="W")
    assert te.evaluate(wide, [x]).tolist() == [1.0078125, 2.0, 256.0]
    assert te.evaluate(narrow, [x]).dtype == ml_dtypes.bfloat16


def test_memory_and_time_stay_bounded():
    n = 256
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n))
    C = te.compute((n, n), lambda i, j: te.sum(te.maximum(A[i, k], B[k, j]), axis=k))
    a, b = _random(n, n), _random(n, n)
    start = time.perf_counter()
    got = te.evaluate(C, [a, b])
    assert time.perf_counter() - start < 20
    np.testing.assert_allclose(got[3, 4], np.maximum(a[3], b[:, 4]).sum(), rtol=1e-4)


def test_shared_graphs_are_linear():
    x = np.ones(3, "float32")
    X = _placeholder(x, "X")

    def tower(i):
        value = X[i]
        for _ in range(100):
            value = value + value
        return value

    def leaky(i):
        value = X[i]
        for _ in range(60):
            value = te.if_then_else(value > 0, value, value * 0.5)
        return value

    Y = te.compute((3,), leaky)
    assert te.evaluate(Y, [-x]).tolist() == [-(0.5**60)] * 3
    assert te.absolute_bound(Y, [-x]).tolist() == [0.5**60] * 3

    Y = te.compute((3,), tower)
    assert te.evaluate(Y, [x]).tolist() == [2.0**100] * 3
    assert te.absolute_bound(Y, [x]).tolist() == [2.0**100] * 3
    assert te.rounding_depth(Y) == 100


# -- errors ---------------------------------------------------------------------------------------


def test_an_unguarded_gather_is_refused(block_points):
    table, rows = _random(5, 3), np.array([4, 0, 5, 2], "int32")
    T, R = _placeholder(table, "T"), _placeholder(rows, "R")
    G = te.compute((4, 3), lambda i, j: T[R[i], j] + 1, name="G")
    with pytest.raises(ProgramError) as error:
        te.evaluate(G, {T: table, R: rows})
    assert str(error.value) == (
        "evaluate G: T[5, 0] is out of bounds\n"
        "  got       5 in dimension 0\n"
        "  expected  0 to 4\n"
        "  loops     i=2, j=0\n"
        "  hint      guard it with te.if_then_else, or make the tensor smaller\n"
        "  excerpt   G[i, j] = T[index(R[i]), j] + 1.0"
    )
    assert (error.value.kind, error.value.index) == ("out_of_bounds", (5, 0))


def test_a_guard_that_guards_too_little(block_points):
    x, limit = _random(5), np.array(6, "int32")
    X, L = _placeholder(x, "X"), _placeholder(limit, "L")
    k = te.reduce_axis((1, 4), name="k")
    Y = te.compute(
        (5,), lambda i: te.sum(te.if_then_else(i + k < L(), X[i + k], 0.0), axis=k), name="Y"
    )
    with pytest.raises(ProgramError) as error:
        te.evaluate(Y, {X: x, L: limit})
    assert error.value.problem == "X[5] is out of bounds"
    assert dict(error.value.loops)["i"] + dict(error.value.loops)["k"] == 5


def test_an_eager_choice_does_not_guard():
    x, rows = _random(5), np.array([9], "int32")
    X, R = _placeholder(x, "X"), _placeholder(rows, "R")
    Y = te.compute((1,), lambda i: te.select(R[i] < 5, X[R[i]], 0.0))
    with pytest.raises(ProgramError, match=r"X\[9\] is out of bounds"):
        te.evaluate(Y, {X: x, R: rows})


A, B, C = _matmul(2, 3, 4)
a, b = np.ones((2, 4), "float32"), np.ones((4, 3), "float32")
ROGUE = te.placeholder((2, 4), name="Z")


@pytest.mark.parametrize(
    ("given_arrays", "text"),
    [
        ({A: a}, "evaluate C: no array is given for B\n  expected  A, B"),
        (
            {A: a, B: b, ROGUE: a},
            "evaluate C: an array is given for a tensor that is not an input\n"
            "  got       Tensor(Z: float32[2, 4])\n"
            "  expected  A, B",
        ),
        ([a], "evaluate C: wrong number of arrays\n  got       1\n  expected  2: A, B"),
        (
            a,
            "evaluate C: the arrays are not in a mapping or a sequence\n"
            "  got       ndarray\n"
            "  hint      write {A: a, B: b} or [a, b]",
        ),
        (
            [a.T, b],
            "evaluate C: A has the wrong shape\n  got       (4, 2)\n  expected  (2, 4)",
        ),
        (
            [a, b.astype("float64")],
            "evaluate C: B has the wrong dtype\n"
            "  got       <f8\n"
            "  expected  float32\n"
            "  hint      convert it with B.astype('float32')",
        ),
        (
            [a.tolist(), b],
            "evaluate C: A is not a NumPy array\n"
            "  got       list\n"
            "  hint      convert it with numpy.asarray",
        ),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(given_arrays, text):
    with pytest.raises(CallError) as error:
        te.evaluate(C, given_arrays)
    assert str(error.value) == text


def test_what_is_not_a_tensor():
    with pytest.raises(ExpressionError, match="evaluate: not a tensor"):
        te.evaluate([], [])
    with pytest.raises(ExpressionError, match="evaluate: not a tensor"):
        te.evaluate([A[0, 0]], [])
    with pytest.raises(CallError, match="unknown way to accumulate"):
        te.evaluate(C, [a, b], accumulate="float128")


# -- against the interpreter ----------------------------------------------------------------------

INPUTS = [
    _random(4, 6),
    np.array([[0, 1, -1, 2, 5, 7], [2**31 - 1, -(2**31), 3, 4, -6, 9]] * 2, "int32"),
]


def _interpreted(tensor, given_arrays):
    func = dlc.lower(te.create_schedule(tensor.op), [*given_arrays, tensor])
    result = np.zeros(tensor.shape, tensor.dtype)
    interpret(func, [*given_arrays.values(), result])
    return result


@given(st.data())
@settings(max_examples=80)
def test_elementwise_expressions_agree_exactly(random_tensor, data):
    tensor, X, Y = random_tensor(data, "guards", "decisions")
    values = {X: INPUTS[0], Y: INPUTS[1]}
    used = {t: values[t] for t in (X, Y) if t in tensor.op.input_tensors}
    np.testing.assert_array_equal(te.evaluate(tensor, used), _interpreted(tensor, used))


@given(st.data())
@settings(max_examples=80)
def test_reductions_agree_within_the_tolerance(random_tensor, data):
    tensor, X, Y = random_tensor(data, "guards", "functions", "reductions")
    values = {X: INPUTS[0], Y: INPUTS[1]}
    used = {t: values[t] for t in (X, Y) if t in tensor.op.input_tensors}
    reference = te.evaluate(tensor, used, accumulate="float64")
    tolerance = te.tolerance(tensor, used)
    if not np.abs(te.absolute_bound(tensor, used)).max(initial=0) < 1e30:
        return  # float32 overflows where float64 does not
    for got in (te.evaluate(tensor, used), _interpreted(tensor, used)):
        with np.errstate(invalid="ignore"):
            is_near = np.abs(got.astype("float64") - reference) <= tolerance
        assert ((got == reference) | is_near).all()
