"""Quantized convolutions and products are computed in integers, and their values are right."""

import numpy as np
import pytest

from dlcompiler.graph import Module, build, evaluate, op, var
from dlcompiler.graph.ir import Tuple
from dlcompiler.graph.passes import compute_in_integers
from dlcompiler.graph.passes.tools import operator_of
from tests.share import share_of

LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}


def names(module):
    return [operator_of(call) for call in module.calls().values()]


def numbers_of(q, scale=0.05, zero=0, axis=-1):
    dtype = q.type.dtype if hasattr(q, "type") else str(q.dtype)
    return op.qnn.dequantize(q, np.float32(scale), np.asarray(zero, dtype), axis=axis)


def quantized(x, scale=0.3, zero=0, dtype="uint8"):
    return op.qnn.quantize(x, np.float32(scale), np.asarray(zero, dtype), out_dtype=dtype)


def drawn(generator, shape, dtype):
    low, high = LIMITS[dtype]
    return generator.integers(low, high + 1, shape).astype(dtype)


def a_convolution(seed):
    """Return a convolution in float32 between integers, and its input."""
    rng = np.random.default_rng(seed)
    pick = rng.choice
    groups = int(pick([1, 1, 2, 4]))
    c, o = groups * int(pick([1, 3, 4, 8])), groups * int(pick([1, 4, 5, 16]))
    k, n, size = int(pick([1, 3, 2])), int(pick([1, 2])), int(pick([6, 9, 14]))
    dtype, out = str(pick(["uint8", "int8"])), str(pick(["uint8", "int8"]))
    x = drawn(rng, (n, c, size, size - 1), dtype)
    weight = rng.integers(-127, 128, (o, c // groups, k, k)).astype("int8")
    scale = rng.uniform(0.001, 0.01, o).astype("float32") if seed % 2 else np.float32(0.004)
    low, high = LIMITS[dtype]
    zero = int(pick([low, high, 3]))
    w = op.qnn.dequantize(weight, scale, np.zeros((), "int8"), axis=0)
    data = numbers_of(var("x", x.shape, dtype), 0.02, zero)
    made = op.nn.conv2d(
        data, w, groups=groups, strides=int(pick([1, 2])), dilation=int(pick([1, 2])),
        padding=tuple(int(each) for each in rng.integers(0, 3, 4)),
    )  # fmt: skip
    if seed % 3:
        bias = rng.integers(-9999, 9999, o).astype("int32")
        wide = op.qnn.dequantize(bias, np.float32(0.02) * scale, np.zeros((), "int32"), axis=0)
        made = op.nn.bias_add(made, wide, axis=1)
    if seed % 5 < 3:
        made = [op.nn.relu(made), op.clip(made, a_min=0, a_max=6), op.clip(made, -1, 2)][seed % 5]
    low, high = LIMITS[out]
    return Module.from_expr(quantized(made, 0.07, int(pick([low, high, 5])), out)), x


def check_convolution(seed):
    module, x = a_convolution(seed)
    after = compute_in_integers(module)
    assert "nn.conv2d" not in names(after), seed
    expected, found = evaluate(module, x=x).astype(int), evaluate(after, x=x)
    # The float sums are rounded: a number half-way between two integers may go to either.
    assert abs(expected - found).max() <= 1, seed
    assert (expected != found).mean() < 0.02, seed
    np.testing.assert_array_equal(build(after, threads=1)(x), found, str(seed))


def test_convolutions():
    for seed in range(4):
        check_convolution(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_random_convolutions(part):
    for seed in range(4 + part, 4 + share_of(200, at_least=10), 10):
        check_convolution(seed)


def test_one_rounding_from_the_sums_to_the_result():
    rng = np.random.default_rng(0)
    weight = numbers_of(np.ones((4, 3, 3, 3), "int8"))
    made = op.nn.conv2d(numbers_of(var("x", (1, 3, 5, 5), "uint8")), weight, padding=1)
    after = compute_in_integers(Module.from_expr(quantized(op.nn.relu(made))))
    assert names(after) == ["qnn.conv2d", "qnn.requantize"]
    x = drawn(rng, (1, 3, 5, 5), "uint8")
    sums = evaluate(compute_in_integers(Module.from_expr(made)), x=x) / np.float32(0.05 * 0.05)
    expected = np.clip(np.rint(np.rint(sums) * np.float32(0.0025) / np.float32(0.3)), 0, 255)
    np.testing.assert_array_equal(evaluate(after, x=x), expected)


@pytest.mark.parametrize("shape", [(1, 7), (5, 33), (2, 3, 20)])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_with_constant_weights(shape, transpose):
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (19, shape[-1]) if transpose else (shape[-1], 19))
    scale = rng.uniform(0.01, 0.02, 19).astype("float32")
    w = op.qnn.dequantize(weight.astype("int8"), scale, np.zeros(19, "int8"),
                          axis=0 if transpose else 1)  # fmt: skip
    data = numbers_of(var("x", shape, "uint8"), zero=255)
    module = Module.from_expr(op.nn.matmul(data, w, transpose_b=transpose))
    x, after = drawn(rng, shape, "uint8"), compute_in_integers(module)
    assert "qnn.dense" in names(after)
    expected = evaluate(module, x=x)
    np.testing.assert_allclose(evaluate(after, x=x), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(build(after, threads=1)(x), expected, rtol=1e-5, atol=1e-4)


def as_int32(x, zero):
    wide = op.cast(x, dtype="int32")
    return op.subtract(wide, zero)


def test_products_of_int32_whose_zero_point_a_run_decides():
    rng = np.random.default_rng(2)
    weight = rng.integers(-128, 128, (12, 21)).astype("int32")
    data = as_int32(var("x", (3, 12), "uint8"), var("zero", (), "int32"))
    module = Module.from_expr(op.nn.matmul(data, weight))
    after = compute_in_integers(module)
    assert "qnn.dense" in names(after)
    x = drawn(rng, (3, 12), "uint8")
    for zero in (0, 255):
        found = build(after, threads=1)(x, np.array(zero, "int32"))
        np.testing.assert_array_equal(found, (x.astype(int) - zero) @ weight)


def test_operators_that_move_elements_take_integers():
    x, other = var("x", (1, 4, 6, 6), "uint8"), var("y", (1, 3, 6, 6), "uint8")
    pooled = op.nn.max_pool2d(numbers_of(x, 0.1, 7), pool_size=3, strides=2, padding=1)
    joined = op.concatenate(Tuple((numbers_of(x, 0.1, 7), numbers_of(other, 0.1, 7))), axis=1)
    padded = op.nn.pad(op.nn.relu(joined), pad_width=((0, 0), (0, 0), (1, 0), (0, 2)))
    moved = op.transpose(op.reshape(padded, newshape=(7, 7, 8)), axes=(2, 0, 1))
    results = Tuple((quantized(pooled, 0.1, 7), quantized(moved, 0.1, 7), quantized(pooled, 0.2)))
    module = Module.from_expr(results)
    after = compute_in_integers(module)
    assert [n for n in names(after) if "qnn" in n] == ["qnn.dequantize", "qnn.quantize"]
    rng = np.random.default_rng(3)
    given = drawn(rng, (1, 4, 6, 6), "uint8"), drawn(rng, (1, 3, 6, 6), "uint8")
    for a, b in zip(evaluate(module, *given), build(after, threads=1)(*given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_window_without_an_element_of_the_image_stays():
    x = numbers_of(var("x", (1, 1, 2, 2), "uint8"))
    module = Module.from_expr(op.nn.max_pool2d(x, pool_size=2, dilation=3, padding=1))
    assert compute_in_integers(module) is module


SCALE, WEIGHT = np.float32(0.1), np.full((2, 3), 100, "int8")


@pytest.mark.parametrize(
    ("data", "weight"),
    [
        (op.qnn.dequantize(var("x", (4, 3), "int8"), var("s", (4,)), np.int8(0), axis=0),
         numbers_of(WEIGHT)),
        (numbers_of(var("x", (4, 3), "int8")),
         op.qnn.dequantize(np.full((2, 3), 255, "uint8"), SCALE, np.uint8(0))),
        (numbers_of(var("x", (4, 3), "int8")),
         op.qnn.dequantize(WEIGHT, np.array([1, 2, 3], "float32"), np.int8(0), axis=1)),
        (op.qnn.dequantize(var("x", (4, 3), "int8"), np.array([1, 2, 3], "float32"), np.int8(0)),
         numbers_of(WEIGHT)),
        (numbers_of(var("x", (4, 3), "int8")), numbers_of(var("w", (2, 3), "int8"))),
        (numbers_of(var("x", (4, 3), "int8"), scale=0.0), numbers_of(WEIGHT)),
    ],
    ids=["scales of a run", "weights too large", "scales inside sums", "scales of data",
         "weights of a run", "scale 0"],
)  # fmt: skip
def test_products_that_stay_floats(data, weight):
    module = Module.from_expr(op.nn.dense(data, weight))
    assert "nn.dense" in names(compute_in_integers(module))


@pytest.mark.parametrize("zero", [0, 3, 255])
def test_weights_that_int8_does_not_hold_are_two_parts(zero):
    values = np.array([[0, 254], [254, 1 + zero // 2]], "uint8")
    weight = op.qnn.dequantize(values, SCALE, np.uint8(zero))
    module = Module.from_expr(op.nn.dense(numbers_of(var("x", (1, 2), "uint8"), zero=9), weight))
    after = compute_in_integers(module)
    assert names(after).count("qnn.dense") == 2
    x = np.array([[255, 7]], "uint8")
    expected = ((x.astype(int) - 9) @ (values.astype(int) - zero).T) * (0.05 * 0.1)
    for found in (evaluate(after, x=x), build(after, threads=1)(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_weights_of_uint8_are_centred():
    weight = op.qnn.dequantize(np.array([[0, 255], [128, 130]], "uint8"), SCALE, np.uint8(128))
    module = Module.from_expr(op.nn.dense(numbers_of(var("x", (1, 2), "uint8"), zero=9), weight))
    after = compute_in_integers(module)
    assert "qnn.dense" in names(after)
    x = np.array([[255, 0]], "uint8")
    np.testing.assert_allclose(evaluate(after, x=x), evaluate(module, x=x), rtol=1e-6)


def a_rare_convolution(name, seed, *, per_channel):
    """Return a convolution along rows, or a transposed one, between integers, and its input."""
    rng = np.random.default_rng(seed)
    is_flat, is_turned = "1d" in name, "transpose" in name
    size, kernel = ((7,), (3,)) if is_flat else ((5, 4), (3, 2))
    c, o = 4, 6
    dtype = ["uint8", "int8"][seed % 2]
    x = drawn(rng, (2, c, *size), dtype)
    weight = rng.integers(-127, 128, (c, o, *kernel) if is_turned else (o, c, *kernel))
    scale = rng.uniform(0.001, 0.01, o).astype("float32") if per_channel else np.float32(0.004)
    w = op.qnn.dequantize(weight.astype("int8"), scale, np.zeros((), "int8"), axis=int(is_turned))
    attrs = {"strides": 2, "padding": 1} if is_turned else {"strides": 1 + seed % 2, "padding": 1}
    call = getattr(op.nn, name)(numbers_of(var("x", x.shape, dtype), 0.02, 3), w, **attrs)
    bias = rng.integers(-9999, 9999, o).astype("int32")
    wide = op.qnn.dequantize(bias, np.float32(0.02) * scale, np.zeros((), "int32"), axis=0)
    made = op.nn.relu(op.nn.bias_add(call, wide, axis=1))
    return Module.from_expr(quantized(made, 0.07, 5)), x


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", ["conv1d", "conv1d_transpose", "conv2d_transpose"])
def test_convolutions_that_are_written_by_others(name, per_channel):
    module, x = a_rare_convolution(name, int(per_channel), per_channel=per_channel)
    after = compute_in_integers(module)
    found = names(after)
    assert "qnn.conv2d" in found
    assert not {f"nn.{name}", "nn.conv2d", "qnn.dequantize"} & set(found)
    expected, got = evaluate(module, x=x).astype(int), evaluate(after, x=x)
    assert abs(expected - got).max() <= 1
    assert (expected != got).mean() < 0.03


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["conv1d", "conv1d_transpose", "conv2d_transpose"])
def test_kernels_of_convolutions_that_are_written_by_others(name, seed):
    module, x = a_rare_convolution(name, seed, per_channel=seed > 1)
    expected = evaluate(compute_in_integers(module), x=x)
    np.testing.assert_array_equal(build(module, threads=1)(x), expected)


def test_scales_of_each_group_of_a_transposed_convolution_stay_floats():
    w = op.qnn.dequantize(np.ones((4, 2, 3, 3), "int8"), np.array([0.1, 0.2], "float32"),
                          np.zeros((), "int8"), axis=1)  # fmt: skip
    made = op.nn.conv2d_transpose(numbers_of(var("x", (1, 4, 3, 3), "int8")), w, groups=2)
    assert "nn.conv2d_transpose" in names(compute_in_integers(Module.from_expr(made)))


def a_computed_product(dtypes, shapes, turns, zeros):
    """Return a product of two matrices of integers that a run computes, and both of them."""
    rng = np.random.default_rng(len(shapes[0]))
    given = [drawn(rng, shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    a, b = (
        numbers_of(var(name, x.shape, str(x.dtype)), scale, zero)
        for name, x, scale, zero in zip("ab", given, (0.02, 0.03), zeros, strict=True)
    )
    made = op.nn.matmul(a, b, transpose_a=turns[0], transpose_b=turns[1])
    return Module.from_expr(quantized(made, 0.4, 9)), given


@pytest.mark.parametrize(
    ("dtypes", "shapes", "turns", "zeros"),
    [
        (("uint8", "uint8"), ((2, 3, 5, 7), (2, 3, 7, 4)), (False, False), (255, 3)),
        (("int8", "int8"), ((3, 7), (5, 7)), (False, True), (-128, 127)),
        (("uint8", "int8"), ((2, 7, 1), (2, 7, 11)), (True, False), (0, 0)),
    ],
)
def test_products_of_two_computed_matrices(dtypes, shapes, turns, zeros):
    module, given = a_computed_product(dtypes, shapes, turns, zeros)
    after = compute_in_integers(module)
    assert "qnn.matmul" in names(after)
    assert not {"nn.matmul", "qnn.dequantize"} & set(names(after))
    a, b = (x.astype(int) - zero for x, zero in zip(given, zeros, strict=True))
    a, b = (np.swapaxes(x, -1, -2) if turn else x for x, turn in zip((a, b), turns, strict=True))
    scale = np.float32(np.float32(0.02) * np.float32(0.03)) / np.float32(0.4)
    expected = np.clip(np.rint((a @ b).astype("float32") * scale) + 9, 0, 255)
    np.testing.assert_array_equal(evaluate(after, *given), expected)
    np.testing.assert_array_equal(build(after, threads=1)(*given), expected)


TINY_AND_HUGE = [1e-38, 1e-30, 1e-19, 1e-12, 1.0, 1e12, 1e25, 1e34]


@pytest.mark.parametrize("is_known", [True, False])
def test_products_of_scales_neither_overflow_nor_vanish(is_known):
    q, weight = np.array([[3, -4]], "int8"), np.array([[0, 0], [1, 2]], "int8")
    x, s = var("x", q.shape, "int8"), var("s", (), "float32")
    for scale in np.array(TINY_AND_HUGE, "float32"):
        for other in TINY_AND_HUGE:
            data = numbers_of(x, scale) if is_known else op.qnn.dequantize(x, s, np.int8(0))
            module = Module.from_expr(op.nn.dense(data, numbers_of(weight, other)))
            inputs = (q,) if is_known else (q, scale)
            with np.errstate(over="ignore", under="ignore"):
                right = evaluate(module, *inputs)
                made = evaluate(compute_in_integers(module), *inputs)
            np.testing.assert_allclose(made, right, rtol=1e-5, atol=1e-37)
