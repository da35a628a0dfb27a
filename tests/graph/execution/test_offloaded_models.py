"""Int8 layers of a model on a simulated accelerator."""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import builders, op
from dlcompiler.graph.passes import offload
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel

TARGETS = {"cpu": "cpu", "vta": "vta-pynq"}


def numbers(*shape, dtype="int8", seed=0):
    limits = np.iinfo(dtype) if dtype == "int8" else np.iinfo("int16")
    generator = np.random.default_rng((seed, *shape))
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def tail(sums, shift=7, low=0, high=127, bias=None):
    if bias is not None:
        sums = op.nn.bias_add(sums, graph.constant(bias))
    shifted = op.right_shift(sums, graph.constant(np.int32(shift)))
    return op.cast(op.clip(shifted, a_min=low, a_max=high), dtype="int8")


def convolution(x, channels, filters, kernel, *, groups=1, stride=1, **options):
    weight = graph.constant(numbers(filters, channels // groups, kernel, kernel))
    sums = op.nn.conv2d(
        x, weight, channels=filters, kernel_size=kernel, padding=kernel // 2, strides=stride,
        groups=groups, out_dtype="int32",
    )  # fmt: skip
    return tail(sums, **options)


def of(result):
    return graph.infer_types(graph.Module.from_expr(result))


def on_vta(model):
    return [k.name for k in model.kernels if isinstance(k.built, AcceleratorKernel)]


def check(module, data):
    model = graph.build(offload(module, target="vta-pynq"), TARGETS)
    np.testing.assert_array_equal(model(data), graph.evaluate(module, data))
    return model


def test_convolutions_and_what_is_between_them():
    x = graph.var("x", (1, 16, 9, 7), "int8")
    y = convolution(x, 16, 32, 3, bias=numbers(32, dtype="int32"))
    y = op.nn.relu(y)
    y = convolution(y, 32, 32, 1, low=-127, shift=0)
    y = convolution(y, 32, 64, 3, groups=2, stride=2)
    model = check(of(y), numbers(1, 16, 9, 7, seed=1))
    assert len(on_vta(model)) == 3
    kinds = {row.times.kind for row in model.profile(numbers(1, 16, 9, 7))}
    assert kinds == {"simulated", "measured"}


def test_a_dense_layer():
    x = graph.var("x", (5, 32), "int8")
    weight = graph.constant(numbers(48, 32))
    y = tail(op.nn.dense(x, weight, units=48, out_dtype="int32"), bias=numbers(48, dtype="int32"))
    assert len(on_vta(check(of(y), numbers(5, 32, seed=2)))) == 1


def test_windows_groups_and_transposed_convolutions():
    x = graph.var("x", (1, 32, 7, 9), "int8")
    y = convolution(op.nn.max_pool2d(x, pool_size=3, strides=2, padding=1), 32, 32, 3, groups=32)
    weight = graph.constant(numbers(32, 16, 4, 4))
    sums = op.nn.conv2d_transpose(
        y, weight, channels=16, kernel_size=4, strides=2, padding=1, out_dtype="int32"
    )
    y = tail(sums, shift=9, low=-127)
    total = op.sum(op.cast(y, dtype="int32"), axis=[2, 3], keepdims=True)
    y = convolution(tail(total, shift=4, low=-127), 16, 16, 1)
    model = check(of(y), numbers(1, 32, 7, 9, seed=3))
    assert len(on_vta(model)) == len(model.kernels) == 5


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x: convolution(x, 16, 24, 3), "no whole blocks of 16"),
        (lambda x: convolution(x, 16, 32, 3, high=100), "clipped to 0 … 100"),
        (lambda x: op.nn.relu(op.nn.conv2d(x, graph.constant(numbers(16, 16, 1, 1)),
                                           channels=16, kernel_size=1, out_dtype="int32")),
         "relu is behind it"),
        (lambda x: op.nn.conv2d(op.cast(x, dtype="float32"),
                                graph.constant(numbers(16, 16, 1, 1).astype("float32")),
                                channels=16, kernel_size=1), "it is of float32"),
    ],
    ids=["channels", "clip", "relu", "float32"],
)  # fmt: skip
def test_what_stays_on_the_host_says_why(make, why):
    module = of(make(graph.var("x", (1, 16, 6, 6), "int8")))
    divided = offload(module)
    (reason,) = [d.reason for d in divided.log if d.made_by == "offload"]
    assert why in reason
    model = graph.build(divided, TARGETS)
    assert on_vta(model) == []
    data = numbers(1, 16, 6, 6)
    np.testing.assert_array_equal(model(data), graph.evaluate(module, data))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x: op.nn.max_pool2d(x, pool_size=3, strides=2, ceil_mode=True), "reach beyond"),
        (lambda x: op.nn.max_pool2d(op.cast(x, dtype="float32"), pool_size=3), "of float32"),
        (lambda x: tail(op.sum(op.cast(x, dtype="int32"), axis=[1, 2])), "over whole images"),
        (lambda x: tail(op.nn.conv2d_transpose(x, graph.constant(numbers(16, 8, 2, 2)), groups=2,
                                               channels=16, kernel_size=2, out_dtype="int32")),
         "it has groups"),
    ],
    ids=["windows", "float32", "sum", "groups"],
)  # fmt: skip
def test_other_reasons(make, why):
    (reason,) = [
        d.reason
        for d in offload(of(make(graph.var("x", (1, 16, 6, 6), "int8")))).log
        if d.made_by == "offload"
    ]
    assert why in reason


def test_a_kernel_that_is_no_layer_is_refused():
    x = graph.var("x", (1, 16, 6, 6), "int8")
    y = op.on_device(op.nn.relu(x), device="vta")
    with pytest.raises(GraphError, match="it is no int8 layer"):
        graph.build(of(y), TARGETS)


def test_a_layer_that_does_not_fit_stays_on_the_host():
    x = graph.var("x", (1, 16, 1, 4096), "int8")
    module = of(tail(op.sum(op.cast(x, dtype="int32"), axis=[2, 3])))
    divided = offload(module, target="vta-pynq")
    assert "no tile fits into the memories" in divided.log[-1].reason
    data = numbers(1, 16, 1, 4096)
    model = graph.build(divided, TARGETS)
    np.testing.assert_array_equal(model(data), graph.evaluate(module, data))
    assert on_vta(model) == []


def test_weights_that_a_caller_gives_are_refused():
    x, w = graph.var("x", (1, 16, 6, 6), "int8"), graph.var("w", (16, 16, 1, 1), "int8")
    y = tail(op.nn.conv2d(x, w, channels=16, kernel_size=1, out_dtype="int32"))
    with pytest.raises(GraphError, match="its weights are no constants"):
        graph.build(offload(of(y)), TARGETS)


@pytest.mark.campaign
def test_an_int8_resnet_computes_the_same():
    module = builders.resnet_int8(image=32, classes=10).bound
    data = numbers(1, 3, 32, 32)
    model = graph.build(offload(module), TARGETS)
    np.testing.assert_array_equal(model(data), graph.build(module)(data))
    assert sum(step.kernel != -1 and step.device == "vta" for step in model.steps) >= 21
