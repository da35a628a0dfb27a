"""Quantized models of ONNX become integer kernels."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

from onnx import helper, numpy_helper

from dlcompiler.errors import GraphError
from dlcompiler.graph import build, evaluate, from_onnx, optimize
from dlcompiler.graph.passes.tools import operator_of
from tests.graph.frontends.onnx_models import model_of, tensor

RNG = np.random.default_rng(0)


def named(name, value, dtype):
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def a_convolution():
    """Return a model in the form QDQ whose scales are arrays of one element, with any axis."""
    weights = [
        named("w", RNG.integers(-127, 128, (6, 3, 3, 3)), "int8"), named("wz", [0] * 6, "int8"),
        named("ws", [0.01] * 6, "float32"), named("b", RNG.integers(-999, 999, 6), "int32"),
        named("bs", [0.0005], "float32"), named("s", [0.05], "float32"), named("z", [3], "uint8"),
        named("ys", 0.1, "float32"), named("yz", 0, "uint8"), named("bz", [0], "int32"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]),
        helper.make_node("Conv", ["d", "wd", "bd"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    shapes = tensor("x", 1, 3, 5, 6), tensor("y", 1, 6, 5, 6)
    return model_of(nodes, [shapes[0]], [shapes[1]], weights)


def test_a_convolution_between_integers():
    module = from_onnx(a_convolution())
    names = {operator_of(node) for node in optimize(module).nodes()}
    assert {"qnn.conv2d", "qnn.requantize"} <= names
    assert "nn.conv2d" not in names
    x = RNG.normal(0, 3, (1, 3, 5, 6)).astype("float32")
    found, expected = build(module)(x), evaluate(module, x=x)
    assert abs(found - expected).max() < 0.11
    assert (found != expected).mean() < 0.02


@pytest.mark.parametrize("zero", [0, 200])
def test_a_convolution_of_operators_on_integers(zero):
    values = {
        "x": RNG.integers(0, 256, (2, 3, 6, 5)).astype("uint8"),
        "w": RNG.integers(-128, 128, (4, 3, 3, 3)).astype("int8"),
        "b": RNG.integers(-9999, 9999, 4).astype("int32"),
    }
    scales = RNG.uniform(0.01, 0.02, 4).astype("float32")
    weights = [
        named("xs", 0.02, "float32"), named("xz", zero, "uint8"), named("w", values["w"], "int8"),
        named("ws", scales, "float32"), named("wz", [0] * 4, "int8"), named("ys", 0.7, "float32"),
        named("yz", 7, "uint8"), named("b", values["b"], "int32"),
    ]  # fmt: skip
    operands = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    node = helper.make_node("QLinearConv", operands, ["y"], pads=[1, 0, 2, 1], strides=[2, 1])
    kind = helper.make_tensor_value_info("x", 2, (2, 3, 6, 5))
    result = helper.make_tensor_value_info("y", 2, None)
    module = from_onnx(model_of([node], [kind], [result], weights))
    names = {operator_of(each) for each in optimize(module).nodes()}
    assert "qnn.conv2d" in names
    np.testing.assert_array_equal(build(module)(values["x"]), evaluate(module, x=values["x"]))


def one_node(op_type, values, result, *, opset=17, **attrs):
    """Return a model of one node whose first operand is its input; None is left out."""
    names = [f"v{n}" if value is not None else "" for n, value in enumerate(values)]
    weights = [numpy_helper.from_array(np.asarray(value), name)
               for name, value in zip(names[1:], values[1:], strict=True) if name]  # fmt: skip
    dtype = helper.np_dtype_to_tensor_dtype
    given = helper.make_tensor_value_info("v0", dtype(values[0].dtype), values[0].shape)
    found = helper.make_tensor_value_info("y", dtype(np.dtype(result)), None)
    return model_of([helper.make_node(op_type, names, ["y"], **attrs)], [given], [found], weights,
                    opset)  # fmt: skip


ROW, COLUMN = np.array([1, 255, 7], "uint8"), np.array([-128, 127, 3], "int8")
MATRIX = np.array([[1, -128], [127, 5], [-3, 4]], "int8")


@pytest.mark.parametrize(
    ("a", "b", "shape"), [(ROW, MATRIX, (2,)), (ROW[None], COLUMN, (1,)), (ROW, COLUMN, ())]
)
def test_vectors_are_multiplied_as_by_numpy(a, b, shape):
    one, zero, point = np.float32(1), np.uint8(250), np.int8(-5)
    expected = (a.astype(int) - 250) @ (b.astype(int) + 5)
    model = one_node("MatMulInteger", [a, b, zero, point], "int32")
    np.testing.assert_array_equal(build(from_onnx(model))(a), expected, strict=False)
    values = [a, np.full(1, 1, "f"), zero, b, np.full(1, 0.01, "f"), point, one, np.uint8(3)]
    found = build(from_onnx(one_node("QLinearMatMul", values, "uint8")))(a)
    assert found.shape == shape
    np.testing.assert_array_equal(found, np.clip(np.rint(expected * 0.01) + 3, 0, 255))


def test_the_dtype_of_dequantized_numbers_is_an_attribute():
    values = [ROW, np.float32(0.1), np.uint8(3)]
    model = one_node("DequantizeLinear", values, "float16", opset=23, output_dtype=10)
    found = build(from_onnx(model))(ROW)
    expected = ((ROW.astype("f") - 3) * np.float32(0.1)).astype("float16")
    np.testing.assert_array_equal(found, expected, strict=True)


IMAGE, FILTERS = np.full((1, 2, 3, 3), 7, "uint8"), np.ones((2, 2, 1, 1), "int8")


@pytest.mark.parametrize(
    ("op_type", "values", "problem"),
    [
        ("DequantizeLinear", [ROW, np.float32(1), np.int8(3)], "another dtype than its numbers"),
        ("DequantizeLinear", [ROW.astype("f"), np.float32(1), None], "takes integers"),
        ("ConvInteger", [IMAGE, FILTERS, np.int8(3)], "another dtype than its numbers"),
        ("ConvInteger", [IMAGE, FILTERS, np.array([1, 2], "uint8")], "2 and 1 elements"),
        ("MatMulInteger", [ROW, MATRIX, np.array([1, 2], "uint8")], "do not fit their numbers"),
    ],
)
def test_zero_points_that_do_not_fit_are_refused(op_type, values, problem):
    with pytest.raises(GraphError, match=problem):
        from_onnx(one_node(op_type, values, "float32"))


def test_a_bias_that_overflows_int32_stays_a_float():
    weights = [
        named("w", np.full((16, 4, 1, 1), 127), "int8"), named("b", [2**31 - 1] * 16, "int32"),
        named("one", 1, "float32"), named("large", 2**24, "float32"), named("z", 0, "uint8"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "one"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "one"], ["wd"]),
        helper.make_node("DequantizeLinear", ["b", "one"], ["bd"]),
        helper.make_node("Conv", ["d", "wd", "bd"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "large", "z"], ["y"]),
    ]
    kinds = [helper.make_tensor_value_info(name, 2, None) for name in "xy"]
    module = from_onnx(model_of(nodes, kinds[:1], kinds[1:], weights), shapes={"x": (1, 4, 3, 3)})
    assert "qnn.conv2d" in {operator_of(node) for node in optimize(module).nodes()}
    assert (build(module)(np.full((1, 4, 3, 3), 255, "uint8")) == 128).all()
