"""Tolerances for rounding errors: magnitudes, roundings, and the tolerance made of them."""

import numpy as np
import pytest

from dlcompiler import te

rng = np.random.default_rng(11)


def _random(*shape, dtype="float32"):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def _placeholder(array, name):
    return te.placeholder(array.shape, array.dtype.name, name=name)


def test_the_bound_of_a_matrix_product():
    x, y = _random(4, 30), _random(30, 5)
    X, Y = _placeholder(x, "X"), _placeholder(y, "Y")
    k = te.reduce_axis((0, 30))
    product = te.compute((4, 5), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k))
    bound = te.absolute_bound(product, [x, y])
    assert bound.dtype == np.float64
    np.testing.assert_allclose(bound, np.abs(x).astype("float64") @ np.abs(y), rtol=1e-12)
    assert te.rounding_depth(product) == 31
    np.testing.assert_allclose(te.tolerance(product, [x, y]), 31 * 2.0**-24 * bound, rtol=1e-12)


def test_accumulating_in_float64():
    x = np.array([1e8, 1.0, -1e8, 0.1], "float32")
    X = _placeholder(x, "X")
    k = te.reduce_axis((0, 4))
    S = te.compute((), lambda: te.sum(X[k] * 0.1, axis=k))
    got = te.evaluate(S, [x], accumulate="float64")
    assert got.dtype == np.float64
    np.testing.assert_allclose(
        got, (1 + float(np.float32(0.1))) * float(np.float32(0.1)), rtol=1e-7
    )


def test_bounds_by_operation():
    x, y = np.array([3.0, -0.5], "float32"), np.array([-3.0, 4.0], "float32")
    X, Y = _placeholder(x, "X"), _placeholder(y, "Y")

    def bound(make):
        return te.absolute_bound(
            te.compute((2,), lambda i: make(X[i], Y[i])), {X: x, Y: y}
        ).tolist()

    exp = np.exp(x.astype("float64"))
    assert bound(lambda p, q: p + q + 0 * q) == [6.0, 4.5]
    assert bound(lambda p, q: (p - p) * q) == [18.0, 4.0]
    assert bound(lambda p, q: (p + q - p) / q) == [(3 + 3 + 3) / 3, (0.5 + 4 + 0.5) / 4]
    assert bound(lambda p, q: te.maximum(p - p, q)) == [6.0, 4.0]
    assert bound(lambda p, q: te.if_then_else(p > 0, p - p, q)) == [6.0, 4.0]
    assert bound(lambda p, q: te.exp(p) + 0 * q) == pytest.approx((exp * (1 + np.abs(x))).tolist())
    assert bound(lambda p, q: te.floor(p - p) + 0 * q) == [6.0, 1.0]
    assert bound(lambda p, q: p.astype("int32").astype("float32") + 0 * q) == [3.0, 0.0]


def test_bounds_pass_through_stages():
    x = _random(6)
    X = _placeholder(x, "X")
    D = te.compute((6,), lambda i: X[i] - X[i], name="D")
    k = te.reduce_axis((0, 6))
    S = te.compute((), lambda: te.sum(D[k], axis=k))
    np.testing.assert_allclose(te.absolute_bound(S, [x]), 2 * np.abs(x).astype("float64").sum())
    assert te.rounding_depth(S) == 7


def test_copies_and_integers_must_be_exact():
    X = te.placeholder((3,), name="X")
    copied = te.compute((3,), lambda i: te.maximum(X[2 - i], 0.0))
    assert te.tolerance(copied, [_random(3)]).tolist() == [0, 0, 0]
    N = te.placeholder((3,), "int8", name="N")
    squared = te.compute((3,), lambda i: N[i] * N[i])
    assert te.tolerance(squared, [_random(3, dtype="int8")]).tolist() == [0, 0, 0]


def test_the_coarsest_float_that_is_rounded_to_counts():
    H = te.placeholder((3,), "float16", name="H")
    widened = te.compute((3,), lambda i: H[i].astype("float32") * 3)
    narrowed = te.compute((3,), lambda i: (H[i].astype("float32") * 3).astype("float16"))
    h = np.ones(3, "float16")
    assert te.tolerance(widened, [h])[0] == pytest.approx(3 * 2.0**-24)
    assert te.tolerance(narrowed, [h])[0] == pytest.approx(2 * 3 * 2.0**-11, rel=1e-3)


def test_a_maximum_where_a_condition_holds_has_a_bound():
    A = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    M = te.compute((3,), lambda i: te.max(A[i, k] * 2.0, axis=k, where=k <= i))
    values = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(te.evaluate(M, {A: values}), [0, 10, 20])
    assert np.all(te.tolerance(M, {A: values}) < 1e-5)
