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


# -- where classic TVM differs from NumPy, or from this project's own operators ------------------


def _same_padding(size, kernel, stride):
    """Return how many windows there are, and where each begins: TVM's rule, by hand."""
    before = kernel // 2
    count = (size + kernel - 1 - kernel) // stride + 1
    return count, [n * stride - before for n in range(count)]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_same_pads_by_the_kernel_whatever_the_stride(kernel, stride):
    x, w = _values(1, 1, 7, 6), _values(1, 1, kernel, kernel)
    (rows, tops), (columns, lefts) = (_same_padding(n, kernel, stride) for n in (7, 6))
    around = np.pad(x[0, 0], kernel)
    wanted = np.array(
        [
            [(around[y + kernel :, x + kernel :][:kernel, :kernel] * w[0, 0]).sum() for x in lefts]
            for y in tops
        ]
    ).reshape(1, 1, rows, columns)
    reference = topi.testing.conv2d_nchw_python(x, w, stride, "SAME")
    np.testing.assert_allclose(reference, wanted, rtol=1e-4, atol=1e-5)
    _close(_apply(lambda a, b: topi.nn.conv2d_nchw(a, b, stride, "SAME", 1), x, w), wanted)
    _close(
        _apply(lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, stride, "SAME", 1), x, w), wanted
    )
    deep = topi.testing.depthwise_conv2d_python_nchw(x, w, stride, "SAME")
    np.testing.assert_allclose(deep, wanted, rtol=1e-4, atol=1e-5)


def test_same_of_a_dilated_kernel():
    x, w = _values(1, 1, 7, 7), _values(1, 1, 3, 3)
    got = _apply(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, "SAME", 2), x, w)
    _close(got, _apply(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, (2, 2), 2), x, w))
    assert topi.nn.utils.get_pad_tuple("SAME", (5, 2)) == (2, 1, 2, 0)
    with pytest.raises(ExpressionError, match="not a way to pad"):
        topi.nn.utils.get_pad_tuple("FULL", (3, 3))
    for padding in (None, (), (1,), (1, 2, 3)):
        with pytest.raises(ExpressionError, match="padding: not a way to pad"):
            topi.nn.utils.get_pad_tuple(padding, (3, 3))


WHOLE = np.array([[-7, 7, -6, 6], [-1, 1, 5, -5]], "int32")


def test_divisions_of_integers_cut_toward_zero():
    three = np.full((2, 4), 3, "int32")
    assert _apply(topi.divide, WHOLE, three).tolist() == [[-2, 2, -2, 2], [0, 0, 1, -1]]
    assert _apply(topi.mod, WHOLE, three).tolist() == [[-1, 1, 0, 0], [-1, 1, 2, -2]]
    assert _apply(topi.floor_divide, WHOLE, three).tolist() == [[-3, 2, -2, 2], [-1, 0, 1, -2]]
    assert _apply(topi.floor_mod, WHOLE, three).tolist() == [[2, 1, 0, 0], [2, 1, 2, 1]]
    for name in ("divide", "mod", "floor_divide", "floor_mod"):
        assert _apply(getattr(topi, name), WHOLE, three).dtype == "int32"


def test_divisions_of_floats_toward_minus_infinity():
    a, b = np.array([-7.5, 7.5, 1.0, -0.5], "f"), np.array([2.0, 2.0, 0.25, 3.0], "f")
    np.testing.assert_array_equal(_apply(topi.floor_divide, a, b), [-4, 3, 4, -1])
    np.testing.assert_array_equal(_apply(topi.floor_mod, a, b), [0.5, 1.5, 0, 2.5])
    with pytest.raises(ExpressionError, match="truncmod of floats: defined for integers only"):
        _apply(topi.mod, a, b)


def test_bounds_and_slopes_take_the_dtype():
    assert _apply(lambda x: topi.clip(x, -2.9, 2.9), WHOLE).tolist() == [
        [-2, 2, -2, 2],
        [-1, 1, 2, -2],
    ]
    assert _apply(lambda x: topi.clip(x, 0, te.const(5, "int64")), WHOLE).dtype == "int32"
    assert _apply(lambda x: topi.nn.leaky_relu(x, 2.5), WHOLE).tolist()[0] == [-14, 7, -12, 6]
    assert topi.full((2,), "int32", 2.7).dtype == "int32"
    assert _apply(lambda x: x + topi.full_like(x, 2.7), WHOLE).tolist()[0] == [-5, 9, -4, 8]
    assert topi.full((2,), "float32", te.const(2, "int32")).dtype == "float32"


def test_numbers_are_converted_as_tensors_are():
    assert str(topi.cast(0, "int64")) == "int64(0)"
    assert topi.cast(0, "int64").dtype == "int64"
    assert topi.cast(te.const(1.5, "float32"), "int8").dtype == "int8"
    assert _apply(lambda x: topi.cast(x, "float64"), WHOLE).dtype == "float64"


TIED = np.array([[3, 1, 3], [3, 0, 0]], "float32")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, 0),
        ({"axis": (0, 1)}, 0),
        ({"axis": (0, 1), "select_last_index": True}, 3),
        ({"select_last_index": True}, 3),
        ({"axis": 1, "select_last_index": True}, [2, 0]),
        ({"axis": 0, "select_last_index": True}, [1, 0, 0]),
        ({"axis": (0,), "keepdims": True}, [[0, 0, 0]]),
    ],
)
def test_positions(options, wanted):
    got = _apply(lambda x: topi.argmax(x, **options), TIED)
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == "int32"
    np.testing.assert_array_equal(_apply(lambda x: topi.argmin(x, **options), -TIED), wanted)


def test_positions_along_several_dimensions_of_many():
    x = RANDOM.permutation(120).reshape(2, 3, 4, 5).astype("float32")
    wanted = x.transpose(0, 2, 1, 3).reshape(2, 4, 15).argmax(axis=2)
    np.testing.assert_array_equal(_apply(lambda a: topi.argmax(a, axis=(1, -1)), x), wanted)


def test_a_sum_of_conditions_is_any():
    x = np.array([[True, False], [False, False]])
    got = _apply(lambda a: topi.sum(a, axis=1), x)
    assert got.dtype == "bool"
    assert got.tolist() == [True, False]


def test_products_are_in_the_dtype_of_the_data():
    x, w = te.placeholder((1, 2, 5, 5), "int8"), te.placeholder((3, 2, 3, 3), "float32")
    assert topi.nn.conv2d_nchw(x, w, 1, 0, 1).dtype == "int8"
    assert topi.nn.conv2d_nchw(x, w, 1, 0, 1, "int32").dtype == "int32"
    last = te.placeholder((1, 5, 5, 3), "int8")
    assert topi.nn.conv2d_nhwc(last, w, 1, 0, 1).dtype == "float32"
    with pytest.raises(ExpressionError, match="another number of channels than the weights"):
        topi.nn.conv2d_nhwc(te.placeholder((1, 5, 5, 2), "int8"), w, 1, 0, 1)
    a, b = te.placeholder((2, 3), "int8"), te.placeholder((4, 3), "int16")
    assert topi.nn.dense(a, b).dtype == "int8"
    assert topi.nn.dense(a, b, te.placeholder((4,), "int8"), "int32").dtype == "int32"


def test_products_of_stacked_matrices():
    a, b = _values(1, 2, 3), _values(4, 5, 3)
    wanted = a @ b.transpose(0, 2, 1)
    _close(_apply(topi.nn.batch_matmul, a, b), wanted)
    _close(_apply(lambda x, y: topi.nn.batch_matmul(x, y, (4, 2, 5)), a, b), wanted)
    turned = lambda x, y: topi.nn.batch_matmul(x, y, None, None, True, False)  # noqa: E731
    _close(_apply(turned, a.transpose(0, 2, 1).copy(), b.transpose(0, 2, 1).copy()), wanted)
    with pytest.raises(ExpressionError, match="the shapes differ"):
        _apply(topi.nn.batch_matmul, _values(2, 2, 3), b)
    with pytest.raises(ExpressionError, match="not stacked matrices"):
        _apply(topi.nn.batch_matmul, X, X)


def test_a_mean_of_integers_is_an_integer():
    x = np.arange(-18, 18, dtype="int8").reshape(1, 1, 6, 6)
    wanted = np.fix(x.reshape(1, 1, 3, 2, 3, 2).astype("int32").sum(axis=(3, 5)) / 4)
    got = _apply(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "avg"), x)
    assert got.dtype == "int32"
    np.testing.assert_array_equal(got, wanted)
    inside = _apply(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "avg", True, "NCHW", False), x)
    np.testing.assert_array_equal(inside, wanted)
    large = np.full((1, 1, 12, 12), 100, "int8")
    assert _apply(lambda a: topi.nn.global_pool(a, "avg"), large).tolist() == [[[[100]]]]


def test_windows_over_the_edge_may_begin_there():
    """TVM pads by a stride less one; PyTorch leaves out a window that begins behind the image."""
    x = _values(1, 1, 3, 3)
    got = _apply(lambda a: topi.nn.pool2d(a, 1, 3, 1, 0, "max", True), x)
    assert got.tolist() == [[[[x[0, 0, 0, 0], -np.inf], [-np.inf, -np.inf]]]]
    got = _apply(lambda a: topi.nn.pool2d(a, 1, 2, 1, (0, 0, 1, 1), "avg", True), x)
    assert got.shape == (1, 1, 3, 3)
    _close(got[:, :, :2, :2], x[:, :, ::2, ::2])


def test_pooling_of_whole_images_in_either_layout():
    x = _values(2, 3, 4, 5)
    images = x.transpose(0, 2, 3, 1).copy()
    nhwc = _apply(lambda a: topi.nn.global_pool(a, "avg", "NHWC"), images)
    _close(nhwc, x.mean(axis=(2, 3), keepdims=True).transpose(0, 2, 3, 1))
