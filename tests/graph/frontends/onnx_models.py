"""Small ONNX models for tests."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT


def tensor(name, *shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


def model_of(nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def a_model():
    """Return a convolution, a relu and a product whose rows a shape operator counts."""
    numbers = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(numbers.random((4, 3, 3, 3), "float32"), "w"),
        numpy_helper.from_array(numbers.random((4 * 36, 5), "float32"), "m"),
        numpy_helper.from_array(np.array([-1], "int64"), "rest"),
        numpy_helper.from_array(np.array(0, "int64"), "first"),
        numpy_helper.from_array(np.array([0], "int64"), "axes"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu1"),
        helper.make_node("Shape", ["r"], ["s"], "shape"),
        helper.make_node("Gather", ["s", "first"], ["n"], "rows"),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"], "rows1"),
        helper.make_node("Concat", ["n1", "rest"], ["to"], "to", axis=0),
        helper.make_node("Reshape", ["r", "to"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "m"], ["y"], "head"),
    ]
    return model_of(nodes, [tensor("x", 2, 3, 6, 6)], [tensor("y", 2, 5)], weights)
