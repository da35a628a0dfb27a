"""Gradients of what networks are made of, against finite differences."""

import numpy as np
import pytest

from dlcompiler import te
from tests.te.gradients import check_gradient, inputs_of, run_everywhere


def tensor(name, *shape):
    return te.placeholder(shape, "float64", name=name)


def axes(**extents):
    return [te.reduce_axis((0, extent), name=name) for name, extent in extents.items()]


def test_a_chain_of_elementwise_stages():
    A, B = tensor("A", 3, 5), tensor("B", 3, 5)
    C = te.compute((3, 5), lambda i, j: te.exp(A[i, j]) * B[i, j] - A[i, j], name="C")
    D = te.compute((3, 5), lambda i, j: te.tanh(C[i, j]) / (1 + B[i, j] ** 2), name="D")
    check_gradient(D)


def test_a_matrix_product():
    A, B, (k,) = tensor("A", 5, 7), tensor("B", 7, 3), axes(k=7)
    C = te.compute((5, 3), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    dA, dB = check_gradient(C)
    assert [len(d.op.reduce_axis) for d in (dA, dB)] == [1, 1]
    assert dA.op.body.condition is None
    assert te.notation_text(dA, dB) == (
        "A_grad[i, k] += H[i, j]*B[k, j]\nB_grad[k, j] += H[i, j]*A[i, k]"
    )


def test_a_dense_layer_with_relu():
    X, W, b, (k,) = tensor("X", 4, 6), tensor("W", 3, 6), tensor("b", 3), axes(k=6)
    Y = te.compute((4, 3), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="Y")
    Z = te.compute((4, 3), lambda i, j: te.maximum(Y[i, j] - 4 * b[j], 0.0), name="Z")
    found = check_gradient(Z)
    assert te.notation_text(*found) == "\n".join(
        [
            "Y[i, j] += X[i, k]*W[j, k]",
            "Y_grad[i, j] = select(Y[i, j] - 4.0*b[j] >= 0.0, H[i, j], 0.0)",
            "X_grad[i, k] += Y_grad[i, j]*W[j, k]",
            "W_grad[j, k] += Y_grad[i, j]*X[i, k]",
            "b_grad[j] += select(Y[i, j] - 4.0*b[j] >= 0.0, -H[i, j]*4.0, 0.0)",
        ]
    )


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("size", "window", "stride", "padding", "dilation"),
    [(5, 3, 1, 0, 1), (5, 3, 1, 1, 1), (6, 3, 2, 1, 1), (7, 3, 1, 2, 2), (8, 2, 3, 0, 2),
     (9, 3, 2, 2, 3), (5, 1, 2, 0, 1)],
)  # fmt: skip
def test_a_convolution(size, window, stride, padding, dilation):
    X, W = tensor("X", 1, 2, size, size), tensor("W", 3, 2, window, window)
    c, r, s = axes(c=2, r=window, s=window)
    wide = size + 2 * padding
    out = (wide - dilation * (window - 1) - 1) // stride + 1

    def padded(n, c, y, x):
        inside = [y >= padding, y < size + padding, x >= padding, x < size + padding]
        return te.if_then_else(te.all(*inside), X[n, c, y - padding, x - padding], 0.0)

    P = te.compute((1, 2, wide, wide), padded, name="P") if padding else X

    def element(n, f, y, x):
        place = y * stride + r * dilation, x * stride + s * dilation
        return te.sum(P[n, c, *place] * W[f, c, r, s], axis=[c, r, s])

    check_gradient(te.compute((1, 3, out, out), element, name="Y"), everywhere=size < 7)


def test_the_notation_of_a_convolution():
    X, W, (c, r) = tensor("X", 4, 9), tensor("W", 5, 4, 3), axes(c=4, r=3)
    Y = te.compute((5, 7), lambda f, x: te.sum(X[c, x + r] * W[f, c, r], axis=[c, r]), name="Y")
    dX, dW = te.gradient(Y, [X, W], te.placeholder((5, 7), "float64", name="H"))
    assert te.notation_text(dX, dW) == (
        "X_grad[c, ax1] = sum(H[f, ax1 - r]*W[f, c, r], axis=(f, r), "
        "where=ax1 >= r and ax1 < r + 7)\n"
        "W_grad[f, c, r] += H[f, x]*X[c, x + r]"
    )


def test_the_notation_of_a_convolution_with_a_stride():
    X, W, (c, r) = tensor("X", 4, 9), tensor("W", 5, 4, 3), axes(c=4, r=3)
    Y = te.compute((5, 4), lambda f, x: te.sum(X[c, x * 2 + r] * W[f, c, r], axis=[c, r]), name="Y")
    (dX,) = te.gradient(Y, [X], te.placeholder((5, 4), "float64", name="H"))
    assert te.notation_text(dX) == (
        "X_grad[c, ax1] = sum(H[f, ax1 // 2 - r_outer]*W[f, c, ax1 % 2 + r_outer*2], "
        "axis=(f, r_outer), where=ax1 % 2 + r_outer*2 < 3 and ax1 // 2 >= r_outer "
        "and ax1 // 2 < r_outer + 4)"
    )


def test_a_convolution_whose_padding_is_inside():
    X, W, (c, r) = tensor("X", 2, 6), tensor("W", 3, 2, 3), axes(c=2, r=3)

    def element(f, x):
        at = x + r - 1
        value = te.if_then_else(te.all(at >= 0, at < 6), X[c, at], 0.0)
        return te.sum(value * W[f, c, r], axis=[c, r])

    found = check_gradient(te.compute((3, 6), element, name="Y"))
    assert te.notation_text(*found) == (
        "X_grad[c, ax1] = sum(H[f, ax1 - r + 1]*W[f, c, r], axis=(f, r), "
        "where=ax1 + 1 >= r and ax1 < r + 5)\n"
        "W_grad[f, c, r] += "
        "H[f, x]*(X[c, x + r - 1] if x + r - 1 >= 0 and x + r - 1 < 6 else 0.0)"
    )


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2), (2, 3)])
def test_average_pooling(window, stride):
    size = 7
    X, (r, s) = tensor("X", 2, size, size), axes(r=window, s=window)
    out = (size - window) // stride + 1
    S = te.compute(
        (2, out, out),
        lambda c, y, x: te.sum(X[c, y * stride + r, x * stride + s], axis=[r, s]),
        name="S",
    )
    Y = te.compute((2, out, out), lambda c, y, x: S[c, y, x] / window**2, name="Y")
    (dX,) = check_gradient(Y)
    assert bool(dX.op.reduce_axis) == (window > stride)


@pytest.mark.parametrize("reducer", [te.max, te.min])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2)])
def test_pooling_of_the_largest(reducer, window, stride):
    X, (r, s) = tensor("X", 2, 7, 7), axes(r=window, s=window)
    out = (7 - window) // stride + 1
    Y = te.compute(
        (2, out, out),
        lambda c, y, x: reducer(X[c, y * stride + r, x * stride + s], axis=[r, s]),
        name="Y",
    )
    check_gradient(Y)


def softmax(X, rows, columns):
    k, j = axes(k=columns, j=columns)
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((rows,), lambda i: te.sum(E[i, j], axis=j), name="S")
    return te.compute((rows, columns), lambda i, j: E[i, j] / S[i], name="Y")


def test_softmax():
    check_gradient(softmax(tensor("X", 4, 5), 4, 5))


def test_softmax_equals_its_own_formula():
    Y = softmax(X := tensor("X", 4, 5), 4, 5)
    H = tensor("H", 4, 5)
    x, h = np.random.default_rng(0).normal(size=(2, 4, 5))
    (result,) = run_everywhere(te.gradient(Y, [X], H), {X: x, H: h})
    y = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(result, y * (h - (h * y).sum(1, keepdims=True)), atol=1e-12)


def test_layer_norm():
    X, g, b, (k, m) = tensor("X", 3, 6), tensor("g", 6), tensor("b", 6), axes(k=6, m=6)
    S = te.compute((3,), lambda i: te.sum(X[i, k] / 6, axis=k), name="S")
    V = te.compute((3,), lambda i: te.sum((X[i, m] - S[i]) ** 2 / 6, axis=m), name="V")
    Y = te.compute(
        (3, 6),
        lambda i, j: (X[i, j] - S[i]) * te.rsqrt(V[i] + 1e-3) * g[j] + b[j],
        name="Y",
    )
    check_gradient(Y)


def test_operators_between_whole_tensors_broadcast():
    A, B, C = tensor("A", 4, 1, 3), tensor("B", 5, 1), tensor("C", 3)
    check_gradient((A + B) * C / (B + 2))


def test_an_output_of_no_dimensions():
    A, (i, j) = tensor("A", 3, 4), axes(i=3, j=4)
    L = te.compute((), lambda: te.sum(A[i, j] ** 2, axis=[i, j]), name="L")
    (found,) = te.gradient(L, A)
    assert te.notation_text(found) == "A_grad[i, j] = A[i, j] + A[i, j]"
    a = np.arange(12.0).reshape(3, 4)
    (result,) = run_everywhere([found], {A: a})
    np.testing.assert_array_equal(result, 2 * a)


def test_several_uses_and_several_stages_of_one_tensor():
    A, (k, m) = tensor("A", 4, 4), axes(k=4, m=4)
    B = te.compute((4, 4), lambda i, j: te.sum(A[i, k] * A[k, j], axis=k), name="B")
    C = te.compute((4, 4), lambda i, j: B[i, j] * A[j, i] + A[i, i], name="C")
    D = te.compute((4,), lambda i: te.sum(B[i, m] * C[m, i], axis=m), name="D")
    check_gradient(D)


def test_by_a_tensor_on_the_way():
    A, (k,) = tensor("A", 3, 4), axes(k=4)
    B = te.compute((3, 4), lambda i, j: te.exp(A[i, j]), name="B")
    C = te.compute((3,), lambda i: te.sum(B[i, k] * A[i, k], axis=k), name="C")
    dB, dA = te.gradient(C, [B, A], te.placeholder((3,), "float64", name="H"))
    assert te.notation_text(dB, dA) == (
        "B_grad[i, j] = H[i]*A[i, j]\n"
        "B[i, j] = exp(A[i, j])\n"
        "A_grad[i, k] = H[i]*B[i, k] + B_grad[i, k]*B[i, k]"
    )
    check_gradient(C)


# -- what a head is -------------------------------------------------------------------------------


def test_without_a_head_all_derivatives():
    A, (k,) = tensor("A", 3, 4), axes(k=4)
    B = te.compute((3,), lambda i: te.sum(A[i, k] ** 2, axis=k), name="B")
    C = te.compute((3,), lambda i: te.exp(B[i]) + A[0, i], name="C")
    (jacobian,) = te.gradient(C, [A])
    assert jacobian.shape == (3, 3, 4)
    H = te.placeholder((2, 3), "float64", name="H")
    (product,) = te.gradient(C, [A], H)
    assert product.shape == (2, 3, 4)
    rng = np.random.default_rng(1)
    a, h = rng.uniform(0, 0.5, (3, 4)), rng.normal(size=(2, 3))
    (whole,) = run_everywhere([jacobian], {A: a})
    (result,) = run_everywhere([product], {t: {A: a, H: h}[t] for t in inputs_of(product)})
    np.testing.assert_allclose(result, np.einsum("po,oij->pij", h, whole), rtol=1e-12)


def test_a_tensor_by_itself():
    A = tensor("A", 2, 3)
    (identity,) = te.gradient(A, [A])
    (result,) = run_everywhere([identity], {})
    np.testing.assert_array_equal(result.reshape(6, 6), np.eye(6))
    H = tensor("H", 5, 2, 3)
    assert te.gradient(A, [A], H) == [H]
    scalar = tensor("s")
    assert te.evaluate(te.gradient(scalar, scalar)[0], {}) == 1


def test_a_computed_tensor_by_itself():
    A = tensor("A", 2, 3)
    B = te.compute((2, 3), lambda i, j: A[i, j] * 2.0, name="B")
    identity, by_a = te.gradient(B, [B, A])
    np.testing.assert_array_equal(te.evaluate(identity, {}).reshape(6, 6), np.eye(6))
    np.testing.assert_array_equal(te.evaluate(by_a, {}).reshape(6, 6), 2 * np.eye(6))


def test_what_the_output_does_not_depend_on():
    A, B = tensor("A", 4), tensor("B", 2, 3)
    C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
    (zeros,) = te.gradient(C, [B], tensor("H", 5, 4))
    assert zeros.shape == (5, 2, 3)
    (result,) = run_everywhere([zeros], {})
    np.testing.assert_array_equal(result, np.zeros((5, 2, 3)))
