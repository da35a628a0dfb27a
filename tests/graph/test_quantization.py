"""Quantization of trained models: ranges, what is quantized, and refusals."""

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import Module, build, compare_top1, evaluate, op, optimize, quantize, var
from dlcompiler.graph.passes.tools import operator_of
from dlcompiler.graph.quantization.calibrate import Observer, Range, kl_bins

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(0, 0.2, (8, 3, 3, 3)).astype("float32")
MATRIX = RNG.normal(0, 0.2, (5, 8)).astype("float32")
BIAS = RNG.normal(0, 1, (8, 1, 1)).astype("float32")


def a_net():
    conv = op.nn.conv2d(var("x", (2, 3, 8, 8)), WEIGHT, padding=1, name="conv")
    active = op.nn.relu(op.add(conv, BIAS))
    pooled = op.nn.max_pool2d(active, pool_size=2, strides=2)
    flat = op.nn.batch_flatten(op.nn.global_avg_pool2d(pooled))
    return Module.from_expr(op.nn.dense(flat, MATRIX, name="dense"))


def inputs(count=3):
    return [np.random.default_rng(n).normal(0, 1, (2, 3, 8, 8)).astype("float32")
            for n in range(count)]  # fmt: skip


def operators(module):
    return [operator_of(call) for call in module.calls().values()]


@pytest.mark.parametrize("options", [
    {}, {"symmetric": True}, {"per_channel": False}, {"method": "percentile"}, {"method": "kl"},
])  # fmt: skip
def test_a_small_net(options):
    module = a_net()
    found = quantize(module, inputs(), **options)
    kernels = operators(optimize(found.module))
    assert {"qnn.conv2d", "qnn.dense"} <= set(kernels)
    assert "nn.conv2d" not in kernels
    assert [layer.name for layer in found.layers] == ["conv", "dense"]
    assert all(layer.sqnr_db > 12 for layer in found.layers)
    x = inputs(5)[4]
    np.testing.assert_allclose(build(found.module)(x), evaluate(found.module, x), atol=1e-5)


def test_calls_that_are_skipped_stay():
    found = quantize(a_net(), inputs(1), skip=["conv"], report=False)
    assert "nn.conv2d" in operators(optimize(found.module))
    assert found.layers == ()


def test_weights_without_a_value_and_constant_data():
    conv = op.nn.conv2d(var("x", (1, 3, 4, 4)), np.zeros_like(WEIGHT), name="conv")
    found = quantize(Module.from_expr(op.nn.relu(conv)), [np.zeros((1, 3, 4, 4), "float32")])
    assert not evaluate(found.module, np.ones((1, 3, 4, 4), "float32")).any()


@pytest.mark.parametrize(
    ("options", "data", "problem"),
    [
        ({"method": "entropy"}, inputs(1), "no such method"),
        ({"percentile": 0}, inputs(1), "percentile is out of range"),
        ({"skip": ["pool"]}, inputs(1), "skip names no call"),
        ({"skip": ["conv", "dense"]}, inputs(1), "no call with constant weights"),
        ({}, [], "no calibration data"),
        ({}, [np.full((2, 3, 8, 8), np.nan, "float32")], "has infinities or NaN"),
        ({}, [{"y": inputs(1)[0]}], "no such input"),
        ({"percentile": "99"}, inputs(1), "percentile is out of range"),
        ({"skip": "conv"}, inputs(1), "skip is no list of names"),
        ({"skip": None}, inputs(1), "skip is no list of names"),
        ({}, 5, "cannot be iterated over"),
    ],
)
def test_refusals(options, data, problem):
    with pytest.raises(GraphError, match=problem):
        quantize(a_net(), data, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(bad):
    module = Module.from_expr(op.nn.dense(var("x", (1, 8)), np.where(MATRIX > 0.3, bad, MATRIX)
                                          .astype("float32"), name="head"))  # fmt: skip
    with pytest.raises(GraphError, match="the weights of head have infinities or NaN"):
        quantize(module, [np.ones((1, 8), "float32")])


def test_a_channel_without_weights_keeps_its_bias():
    weight = WEIGHT.copy()
    weight[2] = 0
    module = Module.from_expr(op.add(op.nn.conv2d(var("x", (2, 3, 8, 8)), weight), BIAS))
    found = quantize(module, [1000 * x for x in inputs(1)], report=False).module
    result = evaluate(found, np.zeros((2, 3, 8, 8), "float32"))
    np.testing.assert_allclose(result[:, 2], BIAS[2].item(), atol=0.06)


@pytest.mark.parametrize("method", ["percentile", "kl"])
@pytest.mark.parametrize(("scale", "offset"), [(1e-44, 0), (1e-5, 1000)])
def test_values_in_a_narrow_range_are_counted(method, scale, offset):
    values = (np.arange(100) * scale + offset).astype("float32")
    assert observed(values).range(method, 99.99).high == pytest.approx(values.max(), rel=0.05)


IDENTITY = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("first", "labels", "problem"),
    [
        (lambda x: x, [1], "labels are not as many"),
        (lambda x: x[:1], [1, 0], "labels are not as many"),
        (lambda x: (), [1, 0], "has no scores"),
        (lambda x: x[:, :0], [1, 0], "has no scores"),
        (lambda x: None, [1, 0], "has no scores"),
    ],
)
def test_results_that_are_no_scores_are_refused(first, labels, problem):
    with pytest.raises(GraphError, match=problem):
        compare_top1(first, lambda x: x, [IDENTITY], labels)


def test_models_are_compared_on_inputs_by_name():
    found = compare_top1(lambda x: x, lambda x: -x, [{"x": IDENTITY}], [1, 0])
    assert (found.count, found.first, found.second) == (2, 2, 0)


def test_scales_and_zero_points():
    for low, high, zero in ((0, 255, 0), (-255, 0, 255), (-51, 204, 51), (3, 51, 0)):
        scale, point = Range(low, high).scale_and_zero(symmetric=False)
        assert point == zero
        assert scale == np.float32(high - min(low, 0)) / 255
    scale, point = Range(-2, 1).scale_and_zero(symmetric=True)
    assert (scale, point, point.dtype) == (np.float32(2) / 127, 0, np.int8)


def observed(values):
    found = Observer()
    found.limit(values, "x")
    found.count(values)
    return found


def test_a_percentile_leaves_out_outliers():
    values = np.append(np.random.default_rng(0).uniform(0, 1, 100_000), 100.0)
    assert observed(values).range("min-max", 100).high == 100
    assert observed(values).range("percentile", 99.9).high < 1.2
    both = observed(np.append(values, -100.0)).range("percentile", 99.9)
    assert both.low > -1
    assert both.high < 1.2


def test_the_divergence_leaves_out_a_thin_tail():
    counts = np.round(1e6 * np.exp(-np.arange(2048) / 40))
    counts[2047] = 1
    assert kl_bins(counts, 128) < 1000
