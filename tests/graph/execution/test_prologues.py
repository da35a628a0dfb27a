"""Injective work before an anchor runs in its kernel, with the schedule of its operator."""

import numpy as np
import pytest

from dlcompiler.graph import build, constant, evaluate, fuse, op, var
from dlcompiler.graph.ir import Module

RANDOM = np.random.default_rng(0)


def weights(*shape):
    return constant(RANDOM.integers(-2, 3, shape).astype("f"))


def conv2d(x, shape, **attrs):
    return op.nn.conv2d(x, weights(*shape), name="anchor", **attrs)


BEFORE = {
    "elementwise": lambda shape: op.nn.relu(var("x", shape), name="before"),
    "a chain": lambda shape: op.add(
        op.nn.relu(var("x", shape)), op.negative(var("y", shape)), name="before"
    ),
    "reshape": lambda shape: op.reshape(
        var("x", (int(np.prod(shape)),)), newshape=shape, name="before"
    ),
    "transpose": lambda shape: op.transpose(
        var("x", shape[::-1]), axes=tuple(range(len(shape)))[::-1], name="before"
    ),
    "pad": lambda shape: op.nn.pad(
        var("x", (*shape[:-1], shape[-1] - 1)),
        pad_width=(*((0, 0) for _ in shape[:-1]), (0, 1)),
        pad_value=1.0,
        name="before",
    ),
}
ANCHORS = {
    "conv2d": ((1, 4, 9, 9), lambda x: conv2d(x, (8, 4, 3, 3), padding=(1, 1))),
    "conv2d of 1×1": ((1, 16, 5, 5), lambda x: conv2d(x, (24, 16, 1, 1))),
    "conv2d of NHWC": (
        (1, 8, 8, 4),
        lambda x: conv2d(x, (3, 3, 4, 8), data_layout="NHWC", kernel_layout="HWIO"),
    ),
    "depthwise": ((1, 8, 7, 7), lambda x: conv2d(x, (8, 1, 3, 3), padding=(1, 1), groups=8)),
    "dense": ((5, 32), lambda x: op.nn.dense(x, weights(16, 32), name="anchor")),
    "matmul": ((33, 20), lambda x: op.nn.matmul(x, var("w", (20, 24)), name="anchor")),
    "batch_matmul": (
        (3, 8, 16),
        lambda x: op.nn.batch_matmul(x, var("w", (3, 9, 16)), name="anchor"),
    ),
    "pool": (
        (1, 4, 8, 8),
        lambda x: op.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2), name="anchor"),
    ),
    "sum": ((6, 50), lambda x: op.sum(x, axis=1, name="anchor")),
    "softmax": ((6, 50), lambda x: op.nn.softmax(x, name="anchor")),
}


def check(before, anchor, target, after=False):
    shape, make = ANCHORS[anchor]
    result = make(BEFORE[before](shape))
    module = Module.from_expr(op.nn.relu(result, name="after") if after else result)
    model = build(fuse(module, "before", "anchor"), target, opt_level=1)
    inputs = [RANDOM.integers(-2, 3, p.static_shape).astype("f") for p in model.params][:-1]
    np.testing.assert_allclose(model(*inputs), evaluate(module, *inputs), rtol=1e-5, atol=1e-6)
    return model


@pytest.mark.parametrize("target", ["cpu", pytest.param("gpu", marks=pytest.mark.campaign)])
@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize(
    "before",
    ["elementwise", *(pytest.param(n, marks=pytest.mark.campaign) for n in [*BEFORE][1:])],
)
def test_work_before_an_anchor_is_in_its_kernel(before, anchor, target):
    model = check(before, anchor, target)
    assert model.kernels[-1].operator, "the kernel has a plain schedule"
    assert len(model.steps) == 1


@pytest.mark.parametrize("anchor", ["conv2d", "dense", "softmax"])
def test_work_before_and_behind(anchor):
    model = check("a chain", anchor, "cpu", after=True)
    assert model.kernels[-1].operator


def test_a_reduction_before_an_anchor_is_scheduled_plainly_or_apart():
    x = var("x", (1, 4, 8, 8))
    module = Module.from_expr(op.nn.conv2d(op.nn.softmax(x, axis=1), weights(8, 4, 3, 3)))
    a = RANDOM.standard_normal((1, 4, 8, 8)).astype("f")
    np.testing.assert_allclose(build(module)(a), evaluate(module, a), rtol=1e-4, atol=1e-5)
