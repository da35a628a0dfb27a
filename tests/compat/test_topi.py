"""Operators on whole tensors, against NumPy."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.compat.tvm import topi
from dlcompiler.errors import ExpressionError
from dlcompiler.pipeline import build, lower

RANDOM = np.random.default_rng(1)


def _values(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def _apply(operator, *arrays):
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"X{n}") for n, a in enumerate(arrays)]
    return te.evaluate(operator(*tensors), dict(zip(tensors, arrays, strict=True)))


def _close(got, wanted):
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


X = _values(3, 4)


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "floor", "ceil", "abs", "sign", "square"])
def test_of_one_tensor(name):
    x = np.abs(X) if name == "sqrt" else X
    _close(_apply(getattr(topi, name), x), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "greater"])
def test_of_two_tensors(name):
    y = _values(4)
    _close(_apply(getattr(topi, name), X, y), getattr(np, name)(X, y))
    _close(_apply(lambda x: getattr(topi, name)(x, 0.5), X), getattr(np, name)(X, np.float32(0.5)))


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        (lambda x: topi.sum(x), X.sum()),
        (lambda x: topi.sum(x, axis=1), X.sum(axis=1)),
        (lambda x: topi.max(x, axis=-1, keepdims=True), X.max(axis=-1, keepdims=True)),
        (lambda x: topi.min(x, axis=(0, 1)), X.min()),
        (lambda x: topi.prod(x, axis=0), X.prod(axis=0)),
        (topi.transpose, X.T),
        (lambda x: topi.reshape(x, (2, -1)), X.reshape(2, -1)),
        (lambda x: topi.expand_dims(x, 1), X[:, None]),
        (lambda x: topi.squeeze(topi.expand_dims(x, -1)), X),
        (lambda x: topi.flip(x, axis=1), X[:, ::-1]),
        (lambda x: topi.concatenate([x, x, x], axis=1), np.concatenate([X, X, X], axis=1)),
        (lambda x: topi.stack([x, x]), np.stack([X, X])),
        (lambda x: topi.where(x > 0, x, topi.negative(x)), np.abs(X)),
        (lambda x: topi.matmul(x, x, transp_b=True), X @ X.T),
        (lambda x: topi.elemwise_sum([x, x, x]), 3 * X),
        (lambda x: topi.clip(x, -0.5, 0.5), X.clip(-0.5, 0.5)),
        (lambda x: topi.broadcast_to(x, (2, 3, 4)), np.broadcast_to(X, (2, 3, 4))),
        (lambda x: x + topi.full_like(x, 7), X + 7),
        (lambda x: topi.nn.softmax(x), topi.testing.softmax_python(X, -1)),
        (lambda x: topi.nn.log_softmax(x), np.log(topi.testing.softmax_python(X, -1))),
        (lambda x: topi.nn.leaky_relu(x, 0.1), np.where(X > 0, X, X * np.float32(0.1))),
        (lambda x: topi.nn.flatten(x), X),
        (lambda x: topi.nn.dense(x, x), X @ X.T),
    ],
)
def test_values(operator, wanted):
    _close(_apply(operator, X), np.asarray(wanted))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, (2, 1), "SAME", "VALID", (0, 1, 2, 3)])
def test_convolutions(stride, padding):
    x, w = _values(2, 3, 7, 6), _values(4, 3, 3, 3)
    wanted = topi.testing.conv2d_nchw_python(x, w, stride, padding)
    _close(_apply(lambda a, b: topi.nn.conv2d_nchw(a, b, stride, padding, 1), x, w), wanted)
    images, filters = x.transpose(2, 3, 1, 0).copy(), w.transpose(2, 3, 1, 0).copy()
    hwcn = _apply(lambda a, b: topi.nn.conv2d_hwcn(a, b, stride, padding, 1), images, filters)
    _close(hwcn, wanted.transpose(2, 3, 1, 0))
    images = x.transpose(0, 2, 3, 1).copy()
    nhwc = _apply(lambda a, b: topi.nn.conv2d_nhwc(a, b, stride, padding, 1), images, filters)
    _close(nhwc, wanted.transpose(0, 2, 3, 1))


def test_a_depthwise_convolution_and_pooling():
    x, w = _values(1, 3, 7, 6), _values(3, 2, 3, 3)
    wanted = topi.testing.depthwise_conv2d_python_nchw(x, w, 1, 1)
    _close(_apply(lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 1, 1), x, w), wanted)
    largest = _apply(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "max"), x[..., :6, :])
    _close(largest, x[..., :6, :].reshape(1, 3, 3, 2, 3, 2).max(axis=(3, 5)))
    _close(_apply(lambda a: topi.nn.global_pool(a, "avg"), x), x.mean(axis=(2, 3), keepdims=True))


def test_poolings_that_count_or_reach_otherwise():
    x = _values(1, 3, 5, 5)
    ones = np.pad(np.ones((5, 5)), 1)
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifts = [np.s_[..., p : p + 5, q : q + 5] for p in range(3) for q in range(3)]
    wanted = sum(around[at] for at in shifts) / sum(ones[at] for at in shifts)
    left_out = lambda a: topi.nn.pool2d(a, 3, 1, 1, 1, "avg", False, "NCHW", False)  # noqa: E731
    _close(_apply(left_out, x), wanted)
    over_the_edge = _apply(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "max", True), x)
    assert over_the_edge.shape == (1, 3, 3, 3)
    _close(over_the_edge[0, :, 2, 2], x[0, :, 4, 4])
    images = x.transpose(0, 2, 3, 1).copy()
    nhwc = _apply(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "max", True, "NHWC"), images)
    _close(nhwc, over_the_edge.transpose(0, 2, 3, 1))


def test_a_direct_convolution_by_definition():
    """The reference itself, once, against loops."""
    x, w = _values(1, 2, 5, 5), _values(3, 2, 2, 3)
    got = topi.testing.conv2d_nchw_python(x, w, (2, 1), (1, 0))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    for o, i, j in np.ndindex(3, *got.shape[2:]):
        window = padded[0, :, 2 * i : 2 * i + 2, j : j + 3]
        assert abs(got[0, o, i, j] - (window * w[o]).sum()) < 1e-4


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: topi.reshape(x, (5, 5)),
        lambda x: topi.sum(x, axis=2),
        lambda x: topi.transpose(x, (0, 0)),
        lambda x: topi.squeeze(x, 0),
        lambda x: topi.nn.pad(x, (1,)),
        lambda x: topi.broadcast_to(x, (3, 5)),
        lambda x: topi.matmul(x, x),
    ],
)
def test_refusals(operator):
    x = te.placeholder((3, 4), name="X")
    with pytest.raises(ExpressionError):
        operator(x)


def test_the_schedule_of_injective_operators():
    A = te.placeholder((5, 33), name="A")
    B = topi.nn.relu(topi.add(A, 1.0))
    s = topi.generic.schedule_injective([B])
    kernel = build(s, [A, B])
    x, result = _values(5, 33), np.empty((5, 33), np.float32)
    kernel(x, result)
    _close(result, np.maximum(x + 1, 0))
    assert "vectorized" in str(lower(s, [A, B], simple_mode=True))
