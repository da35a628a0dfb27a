"""Quantized models of ONNX become integer kernels."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

from onnx import helper, numpy_helper

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
