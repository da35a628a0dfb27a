"""Quantized models of TFLite become integer kernels, and agree with TFLite's interpreter."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the package tflite is not installed: pip install tflite")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.passes.tools import operator_of
from tests.graph.frontends.tflite_models import Case, Scales, ints, model_of, network_of

RNG = np.random.default_rng(0)
IMAGES = (2, 7, 6, 4)


def interpreted(data, arrays):
    """Return what TFLite's interpreter computes with its reference kernels."""
    litert = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="TFLite's interpreter is not installed: ai-edge-litert"
    )
    plain = litert.OpResolverType.BUILTIN_REF
    runner = litert.Interpreter(model_content=data, experimental_op_resolver_type=plain)
    runner.allocate_tensors()
    for detail, array in zip(runner.get_input_details(), arrays, strict=True):
        runner.set_tensor(detail["index"], array)
    runner.invoke()
    return [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]


def integers(*shape, dtype="int8", low=-127, high=128):
    return RNG.integers(low, high, shape).astype(dtype)


def drawn(case):
    """Return integers from the whole range of each input."""
    return [
        RNG.uniform(-3, 3, shape).astype(dtype) if dtype == "float32"
        else RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
        for shape, dtype in case.inputs
    ]  # fmt: skip


def per_channel(count, axis=0):
    return Scales([0.004 + 0.001 * (n % 5) for n in range(count)], [0] * count, axis)


def layer(op, weight, scales, dtype="int8", images=IMAGES, **options):
    """Return a case of weights and a bias; data have the zero point 3, results -5 or 125."""
    channels = weight.shape[3 if op == "DEPTHWISE_CONV_2D" else 0]
    zero = -5 if dtype == "int8" else 125
    return Case(
        op, [(*images, dtype), weight, integers(channels, dtype="int32", low=-3000, high=3000)],
        options, [dtype], scales=[Scales(0.05, 3), scales, None, Scales(0.11, zero)], version=3,
    )  # fmt: skip


STEPS = {"StrideH": 1, "StrideW": 1}
WINDOW = {"StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 2}
ONE = Scales(0.05, 3)
LAYERS = [
    layer("CONV_2D", integers(5, 3, 2, 4), per_channel(5), **STEPS, FusedActivationFunction=1),
    layer("CONV_2D", integers(6, 3, 3, 4), Scales(0.006), StrideH=2, StrideW=2, Padding=1),
    layer("CONV_2D", integers(5, 3, 3, 4, dtype="uint8", low=0, high=256), Scales(0.006, 120),
          "uint8", **STEPS, FusedActivationFunction=3),
    layer("DEPTHWISE_CONV_2D", integers(1, 3, 2, 8), per_channel(8, 3), **STEPS, DepthMultiplier=2),
    layer("DEPTHWISE_CONV_2D", integers(1, 3, 3, 4, dtype="uint8", low=0, high=256),
          Scales(0.006, 120), "uint8", **STEPS, DepthMultiplier=1),
    layer("FULLY_CONNECTED", integers(7, 12), Scales(0.006), images=(5, 12)),
    layer("FULLY_CONNECTED", integers(1, 12), Scales(0.006), images=(1, 12)),
    layer("FULLY_CONNECTED", integers(7, 12, dtype="uint8", low=0, high=256), Scales(0.006, 131),
          "uint8", images=(2, 3, 12), KeepNumDims=True),
]  # fmt: skip
"""Operators that multiply weights; the interpreter rounds another way at ties."""
NEAR = [
    *(Case(op, [(2, 3, 5, "int8"), (2, 3, 1, "int8")], {"FusedActivationFunction": n}, ["int8"],
           scales=[ONE, Scales(0.09, -20), Scales(0.13, 7)], version=2)
      for n, op in enumerate(["ADD", "SUB", "MUL"])),
    Case("ADD", [(3, 5, "uint8"), integers(5, dtype="uint8", low=0, high=256)], {}, ["uint8"],
         scales=[ONE, Scales(0.09, 200), Scales(0.13, 127)]),
    *(Case(op, [(*IMAGES, dtype)], {**WINDOW, "Padding": n % 2}, [dtype], kind="Pool2DOptions",
           scales=[ONE, ONE], version=2)
      for n, dtype in enumerate(["int8", "uint8"]) for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D")),
    Case("TRANSPOSE_CONV", [ints(2, 8, 12, 5), integers(5, 3, 3, 4), (2, 4, 6, 4, "int8"),
                            integers(5, dtype="int32", low=-3000, high=3000)],
         {"Padding": 0, "StrideH": 2, "StrideW": 2}, ["int8"], version=3,
         scales=[None, per_channel(5), ONE, None, Scales(0.11, -5)]),
    Case("SOFTMAX", [(3, 7, "int8")], {"Beta": 1.0}, ["int8"],
         scales=[Scales(0.1, 3), Scales(1 / 256, -128)], version=2),
    Case("LOGISTIC", [(3, 7, "int8")], {}, ["int8"], scales=[ONE, Scales(1 / 256, -128)],
         version=2),
    Case("TANH", [(3, 7, "int8")], {}, ["int8"], scales=[Scales(0.02, 3), Scales(1 / 128, 0)],
         version=2),
    Case("LEAKY_RELU", [(3, 7, "int8")], {"Alpha": 0.25}, ["int8"], scales=[ONE, Scales(0.04, 2)],
         version=2),
    Case("MEAN", [(*IMAGES, "int8"), ints(1, 2)], {"KeepDims": True}, ["int8"],
         kind="ReducerOptions", scales=[ONE, None, Scales(0.02, 1)], version=2),
    Case("QUANTIZE", [(3, 7)], {}, ["int8"], scales=[None, Scales(0.02, 3)]),
    Case("QUANTIZE", [(3, 7, "int8")], {}, ["uint8"], scales=[ONE, Scales(0.07, 131)]),
]  # fmt: skip
EXACT = [
    Case("RESHAPE", [(2, 6, "int8"), ints(3, 4)], {}, ["int8"], scales=[ONE, None, ONE]),
    Case("CONCATENATION", [(2, 3, "int8"), (2, 4, "int8")], {"Axis": 1}, ["int8"],
         scales=[ONE] * 3),
    Case("PAD", [(2, 3, "int8"), ints(1, 0, 0, 2).reshape(2, 2)], {}, ["int8"],
         scales=[ONE, None, ONE]),
    Case("PADV2", [(2, 3, "int8"), ints(1, 0, 0, 2).reshape(2, 2), np.array([9], "int8")], {},
         ["int8"], kind="PadV2Options", scales=[ONE, None, ONE, ONE]),
    Case("DEQUANTIZE", [(2, 3, "int8")], scales=[ONE], version=2),
    Case("DEQUANTIZE", [(2, 3, "uint8")], scales=[Scales(0.05, 200)]),
    Case("SPLIT", [ints(1).reshape(()), (2, 6, "int8")], {"NumSplits": 2}, ["int8"] * 2,
         scales=[None, ONE, ONE, ONE], version=2),
    Case("ARG_MAX", [(3, 9, "int8"), ints(1)], {"OutputType": 2}, ["int32"], scales=[ONE]),
    Case("CAST", [(2, 3, "int8")], {"InDataType": 9, "OutDataType": 2}, ["int32"], scales=[ONE]),
]  # fmt: skip


def check(cases, arrays, most, often, shapes=None):
    """Compare a network with the interpreter: how far integers differ, and which part of them."""
    inner = [[shape] for shape in shapes[:-1]] if shapes else []
    expected = interpreted(network_of(cases, [*inner, [()] * len(cases[-1].results)]), arrays)
    data = network_of(cases, [*inner, [array.shape for array in expected]])
    module = graph.from_tflite(data)
    for found in (graph.evaluate(module, *arrays), graph.build(module, threads=1)(*arrays)):
        outputs = found if isinstance(found, tuple) else (found,)
        for got, want in zip(outputs, expected, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            apart = abs(got.astype("float64") - want)
            assert apart.max() <= most
            assert (apart > 0).mean() <= often
    return module


@pytest.mark.campaign
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: f"{case.op}-{case.results[0]}".lower())
def test_weights(case):
    module = check([case], drawn(case), 1, 0.02)
    names = {operator_of(node) for node in graph.optimize(module).nodes()}
    assert names & {"qnn.conv2d", "qnn.dense"}
    assert not names & {"nn.conv2d", "nn.dense", "qnn.dequantize", "qnn.quantize"}


@pytest.mark.campaign
@pytest.mark.parametrize("case", NEAR, ids=lambda case: case.op.lower())
def test_between_layers(case):
    check([case], drawn(case), 1, 0.2)


@pytest.mark.campaign
@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.op.lower())
def test_moved_elements(case):
    check([case], drawn(case), 1e-6, 1)


def after(case):
    """Return an operator without its first operand, which is the result before it."""
    return replace(case, operands=case.operands[1:], scales=case.scales[1:])


def a_network():
    """Return the operators of a classifier of images in 8 bits, and the shapes of their results."""
    conv = layer("CONV_2D", integers(8, 3, 3, 4), per_channel(8), **STEPS,
                 FusedActivationFunction=1)  # fmt: skip
    depthwise = layer("DEPTHWISE_CONV_2D", integers(1, 3, 3, 8), per_channel(8, 3), StrideH=2,
                      StrideW=2, DepthMultiplier=1)  # fmt: skip
    pool = Case("AVERAGE_POOL_2D", [], {**WINDOW, "Padding": 1}, ["int8"], kind="Pool2DOptions",
                scales=[Scales(0.11, -5)], version=2)  # fmt: skip
    dense = layer("FULLY_CONNECTED", integers(5, 8), Scales(0.006))
    cases = [
        Case("QUANTIZE", [(2, 7, 6, 4)], {}, ["int8"], scales=[None, Scales(0.05, 3)]),
        after(conv), after(depthwise), pool,
        Case("RESHAPE", [ints(2, 8)], {}, ["int8"], scales=[None, Scales(0.11, -5)]),
        after(dense),
        Case("SOFTMAX", [], {"Beta": 1.0}, ["int8"], scales=[Scales(1 / 256, -128)], version=2),
        Case("DEQUANTIZE", [], version=2),
    ]  # fmt: skip
    shapes = [IMAGES, (2, 7, 6, 8), (2, 4, 3, 8), (2, 1, 1, 8), (2, 8), (2, 5), (2, 5), (2, 5)]
    return cases, shapes


def test_a_network():
    cases, shapes = a_network()
    x = RNG.uniform(-6, 6, IMAGES).astype("float32")
    # The integers before the softmax differ by 2 at most, which changes p by p·(1 - p)·2·0.11.
    module = check(cases, [x], 0.055, 1, shapes)
    names = [operator_of(node) for node in graph.optimize(module).nodes()]
    assert names.count("qnn.conv2d") == 2
    assert "qnn.dense" in names


def test_weights_of_integers_and_data_of_floats():
    weight = integers(5, 12)
    case = Case("FULLY_CONNECTED", [(3, 12), weight, None], scales=[None, Scales(0.01, 0)])
    x = RNG.normal(size=(3, 12)).astype("float32")
    found = graph.build(graph.from_tflite(model_of(case, [(3, 5)])))(x)
    np.testing.assert_allclose(found, x @ (weight.T * np.float32(0.01)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("scales", "problem"),
    [
        (Scales(0.0), "no positive number"),
        (Scales(float("nan")), "no positive number"),
        (Scales(0.1, 128), "zero point that is no int8"),
        (Scales(0.1, [1, 2]), "another number of zero points"),
        (Scales([0.1, 0.2], [0, 0], 1), "another number of scales"),
        (Scales([0.1, 0.2], [0, 0], 7), "another number of scales"),
        (Scales([0.1, 0.2], [0, 0], 0), "several scales"),
    ],
)
def test_refusals(scales, problem):
    case = Case("RELU", [(2, 3, "int8")], {}, ["int8"], scales=[ONE, scales])
    with pytest.raises(GraphError, match=problem):
        graph.from_tflite(model_of(case, [(2, 3)]))
