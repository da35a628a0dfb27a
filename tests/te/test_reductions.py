"""Reductions of every kind, evaluated with NumPy, interpreted, and as machine code."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.simulate import interpret


def _check(outputs, arrays):
    """Compare machine code and interpreter with `te.evaluate`, and return its results."""
    expected = te.evaluate(outputs, arrays)
    s = te.create_schedule([tensor.op for tensor in outputs[:1]])
    args = [*arrays, *outputs]
    func = dlc.lower(s, args)
    kernel = dlc.build(s, args)
    for run in (lambda values: interpret(func, values), lambda values: kernel(*values)):
        results = [np.empty_like(array) for array in expected]
        run([*arrays.values(), *results])
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)
    return expected


def _numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


@pytest.fixture
def given():
    A = te.placeholder((4, 7), "float32", name="A")
    k = te.reduce_axis((0, 7), name="k")
    return A, k, _numbers((4, 7))


def test_product(given):
    A, k, a = given
    P = te.compute((4,), lambda i: te.prod(A[i, k], axis=k), name="P")
    (result,) = _check([P], {A: a})
    np.testing.assert_array_equal(result, a.prod(axis=1))


def test_where_skips_points(given):
    A, k, a = given
    P = te.compute((4,), lambda i: te.sum(A[i, k + 3], axis=k, where=k < 4), name="P")
    (result,) = _check([P], {A: a})
    np.testing.assert_array_equal(result, a[:, 3:].sum(axis=1))


def test_init_is_where_a_reduction_starts(given):
    A, k, a = given
    B = te.placeholder((4,), name="B")
    P = te.compute((4,), lambda i: te.max(A[i, k], axis=k, init=B[i]), name="P")
    b = np.array([9, -9, 9, -9], "float32")
    (result,) = _check([P], {A: a, B: b})
    np.testing.assert_array_equal(result, np.maximum(a.max(axis=1), b))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_reductions_take_the_first(given, name):
    A, k, a = given
    outputs = te.compute((4,), lambda i: getattr(te, name)(A[i, k], axis=k), name="R")
    position, value = _check(list(outputs), {A: a})
    np.testing.assert_array_equal(position, getattr(a, name)(axis=1))
    np.testing.assert_array_equal(value, getattr(a, name[3:])(axis=1))


def test_nan_never_wins(given):
    A, k, a = given
    a[0, :3], a[1] = np.nan, np.nan
    outputs = te.compute((4,), lambda i: te.argmax(A[i, k], axis=k), name="R")
    position, value = _check(list(outputs), {A: a})
    assert position[0] == 3 + a[0, 3:].argmax()
    assert (position[1], value[1]) == (-1, -np.inf)


def test_a_reduction_of_nothing_is_its_start():
    A = te.placeholder((4, 0), name="A")
    k = te.reduce_axis((0, 0), name="k")
    outputs = te.compute((4,), lambda i: te.argmin(A[i, k], axis=k), name="R")
    position, value = _check(list(outputs), {A: np.empty((4, 0), "float32")})
    assert set(position) == {-1}
    assert set(value) == {np.inf}


def test_a_reduction_of_several_values(given):
    """Mean and product at once, as a reduction of one's own."""
    A, k, a = given
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]),
        lambda p, q: (te.const(0, p), te.const(1, q)),
        name="both",
    )
    a = a[:, :5].copy()
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    outputs = te.compute((4,), lambda i: both((A[i, k], A[i, k] * 2.0), axis=k), name="R")
    total, product = _check(list(outputs), {A: a})
    np.testing.assert_array_equal(total, a.sum(axis=1))
    np.testing.assert_array_equal(product, (a * 2).prod(axis=1))


def test_every_old_value_is_read_before_a_result_is_stored():
    """Swapping two running values shows a result that is stored too early."""
    A = te.placeholder((5,), "int32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    cross = te.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]),
        lambda p, q: (te.const(1, p), te.const(0, q)),
        name="complex_product",
    )
    re, im = te.compute((), lambda: cross((A[k], te.const(1, "int32")), axis=k), name="R")
    a = np.arange(1, 6, dtype="int32")
    total = np.prod(a + 1j)
    real, imaginary = _check([re, im], {A: a})
    assert (real, imaginary) == (total.real, total.imag)


def test_plain_outputs_computed_together(given):
    A, _, a = given
    outputs = te.compute((4, 7), lambda i, j: (A[i, j] + 1.0, A[i, j].astype("int32")), name="P")
    assert [tensor.name for tensor in outputs] == ["P.v0", "P.v1"]
    plus, whole = _check(list(outputs), {A: a})
    np.testing.assert_array_equal(plus, a + 1)
    np.testing.assert_array_equal(whole, a.astype("int32"))


def test_the_nest_of_a_tuple_reduction(given, golden):
    A, k, _ = given
    swap = te.comm_reducer(
        lambda x, y: (te.maximum(x[0], y[0]), x[1] + y[1]),
        lambda p, q: (te.min_value(p), te.const(0, q)),
        name="max_and_sum",
    )
    R = te.compute((4,), lambda i: swap((A[i, k], A[i, k]), axis=k, where=k > 1), name="R")
    s = te.create_schedule(R[0].op)
    golden("tuple_reduction", str(dlc.lower(s, [A, *R])))


REFUSALS = {
    "one of two": "te.compute R: only one of the reduction's results is used",
    "swapped": "te.compute R: the outputs are not the results of one reduction",
    "mixed": "te.compute R: the outputs are not the results of one reduction",
    "init": "te.compute R: a reduction starts from a value that depends on the axis reduced over",
    "arity": "te.comm_reducer two: the function that combines: wrong number of values",
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case, given):
    A, k, _ = given
    two = te.comm_reducer(
        lambda x, y: (x[0],), lambda p, q: (te.const(0, p), te.const(0, q)), "two"
    )

    def body(i):
        pair = te.argmax(A[i, k], axis=k)
        match case:
            case "one of two":
                return pair[0]
            case "swapped":
                return pair[1], pair[0]
            case "mixed":
                return te.sum(A[i, k], axis=k), A[i, 0]
            case "init":
                return te.sum(A[i, k], axis=k, init=A[i, k])
        return two((A[i, k], A[i, k]), axis=k)

    with pytest.raises(ExpressionError) as error:
        te.compute((4,), body, name="R")
    assert str(error.value).startswith(REFUSALS[case])
