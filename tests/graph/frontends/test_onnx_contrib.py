"""Quantized operators of ONNX Runtime compute what it computes."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime as runtime
from onnx import helper, numpy_helper

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.passes.tools import operator_of

RNG = np.random.default_rng(0)
DOMAIN = "com.microsoft"


def integers(*shape, dtype="uint8"):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(value):
    return np.float32(value)


def point(value, dtype="uint8"):
    return np.asarray(value, dtype)


def triple(data, factor=0.05, zero=3):
    """Return integers, their scale and their zero point."""
    return [data, scale(factor), point(zero, data.dtype)]


def model_of(op, operands, attrs, kinds):
    """Return a model of one operator, whose first operand of a kind in `kinds` is its input."""
    weights, names, inputs, arrays = [], [], [], {}
    for n, value in enumerate(operands):
        if value is None:
            names.append("")
            continue
        names.append(f"x{n}")
        if n in kinds:
            number = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(f"x{n}", number, value.shape))
            arrays[f"x{n}"] = value
        else:
            weights.append(numpy_helper.from_array(np.asarray(value), f"x{n}"))
    node = helper.make_node(op, names, ["y"], domain=DOMAIN, **attrs)
    result = helper.make_empty_tensor_value_info("y")
    made = helper.make_graph([node], "g", inputs, [result], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=9), arrays


A, B = integers(2, 3, 5), integers(3, 1)
IMAGES = integers(2, 3, 7, 6)
# Of 7 bits: on processors without dot products, ONNX Runtime's sums of two products saturate.
WEIGHTS = integers(9, 5, dtype="int8") // 2
OUT = [scale(0.11), point(120)]
CASES = {
    "QLinearAdd": ([*triple(A), *triple(B, 0.09, 200), *OUT], {}, (0, 3)),
    "QLinearMul": ([*triple(A), *triple(B, 0.01, 200), *OUT], {}, (0, 3)),
    "QLinearAdd int8": ([*triple(integers(4, 7, dtype="int8")),
                         *triple(integers(7, dtype="int8"), 0.09, -20), scale(0.13),
                         point(-7, "int8")], {}, (0,)),
    "QLinearGlobalAveragePool": ([*triple(IMAGES), scale(0.02), point(3)], {}, (0,)),
    "QLinearGlobalAveragePool last": ([*triple(IMAGES), scale(0.02), point(3)],
                                      {"channels_last": 1}, (0,)),
    "QLinearAveragePool": ([*triple(IMAGES), scale(0.05), point(3)],
                           {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, (0,)),
    "QLinearAveragePool last": ([*triple(IMAGES), scale(0.05), point(3)],
                                {"kernel_shape": [2, 2], "channels_last": 1,
                                 "pads": [1, 1, 0, 0], "count_include_pad": 1}, (0,)),
    "QLinearConcat": ([*OUT, *triple(A), *triple(integers(2, 4, 5), 0.11, 120)], {"axis": 1},
                      (2, 5)),
    "QLinearSigmoid": ([*triple(A, 0.03, 128), scale(1 / 256), point(0)], {}, (0,)),
    "QLinearLeakyRelu": ([*triple(A, 0.03, 128), scale(0.02), point(100)], {"alpha": 0.2}, (0,)),
    "QLinearSoftmax": ([*triple(A, 0.03, 128), scale(1 / 256), point(0)],
                       {"axis": -1, "opset": 13}, (0,)),
    "QGemm": ([*triple(integers(4, 9)), *triple(WEIGHTS, 0.01, 0),
               RNG.integers(-999, 999, 5).astype("int32"), scale(0.5), point(120)], {}, (0,)),
    "QGemm float": ([*triple(integers(9, 4)), WEIGHTS.T.copy(),
                     RNG.uniform(0.01, 0.02, 5).astype("float32"), np.zeros(5, "int8"), None, None,
                     None], {"transA": 1, "transB": 1, "alpha": 1.5}, (0,)),
    "MatMulIntegerToFloat": ([integers(4, 9), WEIGHTS, scale(0.05),
                              scale(0.01), point(7), point(0, "int8"),
                              RNG.normal(size=5).astype("float32")], {}, (0,)),
    "DynamicQuantizeMatMul": ([RNG.normal(size=(4, 9)).astype("float32"),
                               WEIGHTS,
                               RNG.uniform(0.01, 0.02, 5).astype("float32"), np.zeros(5, "int8"),
                               RNG.normal(size=5).astype("float32")], {}, (0,)),
}  # fmt: skip
FIRST = ("QLinearAdd", "QGemm")


@pytest.mark.parametrize(
    "name", [n if n in FIRST else pytest.param(n, marks=pytest.mark.campaign) for n in CASES]
)
def test_an_operator_computes_the_same(name):
    model, arrays = model_of(name.split(" ")[0], *CASES[name])
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options)
    (expected,) = session.run(None, arrays)
    module = graph.from_onnx(model)
    given = list(arrays.values())
    for found in (graph.evaluate(module, *given), graph.build(module, threads=1)(*given)):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        apart = abs(found.astype("float64") - expected)
        if expected.dtype == "float32":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        else:
            assert apart.max() <= 1
            # Means of a few integers are often half-way between two.
            assert (apart > 0).mean() <= (0.3 if "AveragePool" in name else 0.1)


@pytest.mark.parametrize("name", ["QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
def test_products_are_computed_in_integers(name):
    module = graph.optimize(graph.from_onnx(model_of(name, *CASES[name])[0]))
    assert "qnn.dense" in {operator_of(node) for node in module.nodes()}


@pytest.mark.parametrize(
    ("operands", "problem"),
    [
        (triple(A), "operand 3 is missing"),
        ([A, np.ones(3, "float32"), np.zeros(3, "uint8"), *triple(B), *OUT], "single scale"),
        ([*triple(A)[:2], point(0, "int8"), *triple(B), *OUT], "single scale"),
    ],
)
def test_refusals(operands, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_onnx(model_of("QLinearAdd", operands, {}, (0,))[0])
