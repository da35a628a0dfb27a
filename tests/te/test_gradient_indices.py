"""Gradients where indices are not plain axes; each element gets what all that read it give."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from tests.te.gradients import check_gradient, finite_differences, inputs_of, values


def tensor(name, *shape, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


A, B = tensor("A", 4, 6), tensor("B", 4, 6)
PLAIN = {
    "transposed": ((6, 4), lambda i, j: A[j, i] * B[j, i]),
    "sliced": ((2, 3), lambda i, j: A[i + 1, j + 2] ** 2),
    "strided": ((2, 3), lambda i, j: A[i * 2 + 1, j * 2] ** 2),
    "reversed": ((4, 6), lambda i, j: A[3 - i, 5 - j] * B[i, j]),
    "flat": ((24,), lambda i: A[i // 6, i % 6] ** 2),
    "reshaped": ((3, 8), lambda i, j: A[(i * 8 + j) // 6, (i * 8 + j) % 6] ** 2),
    "packed": ((2, 3, 2, 2), lambda i, j, a, b: A[i * 2 + a, j * 2 + b] ** 2),
    "three digits": ((2, 3, 4), lambda i, j, k: A[i * 2 + j // 2, j % 2 * 3 + k // 2] ** 2),
    "repeated": ((8, 18), lambda i, j: A[i // 2, j // 3] * A[i // 2, 0]),
    "tiled": ((8, 18), lambda i, j: A[i % 4, j % 6] * 2),
    "a diagonal": ((4,), lambda i: A[i, i] * B[i, 0]),
    "a diagonal with steps": ((2,), lambda i: A[i + 1, i * 3] ** 2),
    "a constant": ((3,), lambda i: A[2, 3] * B[i, i]),
    "differences": ((4, 5), lambda i, j: A[i, j + 1] - A[i, j]),
    "neighbours around": ((4, 6), lambda i, j: A[(i + 1) % 4, (j + 5) % 6] * A[i, j]),
    "joined": ((8, 6), lambda i, j: te.if_then_else(i < 4, A[i, j], B[i - 4, j] * 2)),
    "joined by selection": (
        (8, 6),
        lambda i, j: te.select(i < 4, A[te.minimum(i, 3), j], B[te.maximum(i - 4, 0), j] * 2),
    ),
    "padded": (
        (6, 9),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 5, j >= 2, j < 8), A[i - 1, j - 2], 1.0),
    ),
    "a product of axes": ((2, 3), lambda i, j: A[i * j, i + j] ** 2),
    "one row": ((1, 6), lambda i, j: A[i, j] * B[i + 3, j]),
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", PLAIN)
def test_indices_of_axes(name):
    shape, element = PLAIN[name]
    check_gradient(te.compute(shape, element, name="C"))


@pytest.mark.parametrize(
    "name", ["transposed", "flat", "reshaped", "packed", "sliced", "neighbours around"]
)
def test_what_is_read_once_is_not_summed(name):
    shape, element = PLAIN[name]
    C = te.compute(shape, element, name="C")
    found = te.gradient(C, [A], tensor("H", *shape))
    for op in te.post_order(found):
        assert not op.reduce_axis, te.notation_text(*found)


def test_axes_that_do_not_start_at_0():
    k, m = te.reduce_axis((1, 4), name="k"), te.reduce_axis((2, 4), name="m")
    C = te.compute((3,), lambda i: te.sum(A[k - 1, m + i - 2] * B[k, m], axis=[k, m]), name="C")
    check_gradient(C)


def test_elements_chosen_by_a_tensor():
    G = tensor("G", 5, dtype="int32")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((5, 6), lambda i, j: te.sin(A[G[i], j]), name="C")
    (found,) = check_gradient(C)
    assert te.notation_text(found) == (
        "A_grad[ax0, j] = sum(H[i, j]*cos(A[G[i], j]), axis=i, where=index(G[i]) == ax0)"
    )
    D = te.compute((3,), lambda i: te.sum(A[G[k], k] * B[G[i], k + 1], axis=k), name="D")
    check_gradient(D)


def test_an_offset_read_from_a_tensor():
    G = tensor("G", 3, dtype="int32")
    C = te.compute((3, 2), lambda i, j: A[i, G[i].astype("index") + j], name="C")
    (found,) = check_gradient(C)
    assert te.notation_text(found) == (
        "A_grad[i, ax1] = H[i, ax1 - index(G[i])] if i < 3 and ax1 >= index(G[i]) "
        "and ax1 < index(G[i]) + 2 else 0.0"
    )
    D = te.compute((3, 2), lambda i, j: A[i, G[i] + j * 2 % 3], name="D")
    check_gradient(D, arrays={G: np.array([0, 3, 1], "int32")})


def test_a_place_that_is_guarded_by_a_place():
    """An index read at a shifted place: outside, it is neither read nor compared."""
    G = tensor("G", 4, dtype="int32")
    C = te.compute((4, 3), lambda i, j: A[i, G[i] + j], name="C")
    D = te.compute((3, 2), lambda i, j: C[i + 1, j + 1], name="D")
    check_gradient(D)
    E = te.compute((4, 3), lambda i, j: A[(i + 1) % 4, G[3 - i] + j] * A[3 - i, j], name="E")
    check_gradient(E)


@pytest.mark.parametrize("extent", [1, 2, 7])
def test_odd_extents(extent):
    X, W = tensor("X", extent, 5), tensor("W", 5, extent)
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((extent, extent), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="C")
    check_gradient(C)


# -- symbols --------------------------------------------------------------------------------------


def check_symbolic(output, sizes, everywhere=()):
    """Compare a gradient with symbols with finite differences, at some sizes."""
    H = te.placeholder(output.shape, "float64", name="H")
    inputs = [t for t in inputs_of(output) if t.dtype == "float64"]
    found = te.gradient(output, inputs, H)
    for bound in sizes:
        known = te.specialize([output, *found], bound)
        small = known[output]
        rng = np.random.default_rng(0)
        arrays = {known[t]: values(known[t], rng) for t in inputs_of(output)}
        head = rng.uniform(0.5, 1.5, small.static_shape)
        every = {**arrays, known.get(H): head}
        results = [known[d] for d in found]
        computed = te.evaluate(results, {t: every[t] for t in inputs_of(*results)})
        for tensor, result in zip(inputs, computed, strict=True):
            expected = finite_differences(small, known[tensor], arrays, head)
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    return found


def test_a_matrix_product_of_any_size():
    n, m, p = (te.var(name) for name in "nmp")
    X, W, k = tensor("X", n, m), tensor("W", m, p), te.reduce_axis((0, m), name="k")
    C = te.compute((n, p), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="C")
    found = check_symbolic(C, [{n: 3, m: 4, p: 2}, {n: 1, m: 1, p: 1}])
    assert te.notation_text(*found) == (
        "X_grad[i, k] += H[i, j]*W[k, j]\nW_grad[k, j] += H[i, j]*X[i, k]"
    )


def test_a_convolution_of_any_size():
    n = te.var("n")
    X, W, r = tensor("X", n + 2), tensor("W", 3), te.reduce_axis((0, 3), name="r")
    C = te.compute((n,), lambda x: te.sum(X[x + r] * W[r], axis=r), name="C")
    found = check_symbolic(C, [{n: 1}, {n: 2}, {n: 7}])
    assert te.notation_text(found[0]) == (
        "X_grad[ax0] = sum(H[ax0 - r]*W[r], axis=r, where=ax0 >= r and ax0 < r + n)"
    )


def test_a_stride_of_any_size():
    n = te.var("n")
    X, W, r = tensor("X", n * 2 + 1), tensor("W", 3), te.reduce_axis((0, 3), name="r")
    C = te.compute((n,), lambda x: te.sum(X[x * 2 + r] * W[r], axis=r), name="C")
    check_symbolic(C, [{n: 1}, {n: 2}, {n: 5}])


def test_a_kernel_of_any_size():
    n = te.var("n")
    X, W, r = tensor("X", n * 2 + 1), tensor("W", 3), te.reduce_axis((0, 3), name="r")
    C = te.compute((n,), lambda x: te.sum(X[x * 2 + r] * W[r], axis=r), name="C")
    H = tensor("H", n)
    found = te.gradient(C, [X, W], H)
    args = [X, W, H, *found]
    kernel = dlc.build(te.create_schedule([d.op for d in found]), args)
    for size in (1, 2, 7, 100):
        x, w, h = (np.random.default_rng(0).normal(size=s) for s in (2 * size + 1, 3, size))
        results = [np.full_like(array, np.nan) for array in (x, w)]
        kernel(x, w, h, *results)
        expected = te.evaluate(found, {X: x, W: w, H: h})
        for result, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-12)


def test_a_window_of_any_size():
    n, w = te.var("n"), te.var("w")
    X, W, r = tensor("X", n * 3 + w), tensor("W", w), te.reduce_axis((0, w), name="r")
    C = te.compute((n,), lambda x: te.sum(X[x * 3 + r] * W[r], axis=r), name="C")
    check_symbolic(C, [{n: 1, w: 1}, {n: 2, w: 2}, {n: 3, w: 3}, {n: 4, w: 5}])


def test_a_reshape_of_any_size():
    n, m = te.var("n"), te.var("m")
    X = tensor("X", n, m)
    check_symbolic(
        te.compute((n * m,), lambda i: X[i // m, i % m] ** 2, name="C"),
        [{n: 3, m: 4}, {n: 1, m: 2}],
    )


def test_softmax_of_any_size():
    n = te.var("n")
    X = tensor("X", 3, n)
    k, j = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="j")
    M = te.compute((3,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((3, n), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((3,), lambda i: te.sum(E[i, j], axis=j), name="S")
    Y = te.compute((3, n), lambda i, j: E[i, j] / S[i], name="Y")
    check_symbolic(Y, [{n: 1}, {n: 5}])
