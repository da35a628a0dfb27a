"""Every operator's space: random points are right, defaults are in it, choices are real ones.

A dozen seconds: each point is built, and its results compared. `make test-full` draws more.
"""

import dataclasses
import os
import random

import pytest

from dlcompiler import ops
from dlcompiler.target import resolve
from tests.ops.products import check

IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
POINTS = 40 if IS_FULL else 1
WORKLOADS = [
    ("depthwise_conv2d", {"c": 5, "h": 19, "w": 37, "kernel": 3, "padding": 1}),
    ("depthwise_conv2d", {"c": 8, "h": 9, "w": 7, "n": 2, "kernel": 5, "stride": 2, "padding": 2}),
    (
        "depthwise_conv2d",
        {"c": 4, "h": 13, "w": 30, "kernel": (5, 3), "padding": (0, 5, 2, 1), "dilation": 2},
    ),
    ("depthwise_conv2d", {"c": 16, "h": 7, "w": 7, "kernel": 3, "padding": 1, "dtype": "float64"}),
    (
        "pool2d",
        {
            "kind": "max",
            "c": 4,
            "h": 15,
            "w": 21,
            "kernel": 3,
            "stride": 2,
            "padding": 1,
            "ceil_mode": 1,
        },
    ),
    ("pool2d", {"kind": "avg", "c": 8, "h": 9, "w": 33, "kernel": 2, "stride": 2, "padding": 1}),
    ("softmax", {"shape": "7x131"}),
    ("softmax", {"shape": "3x21x4x19", "axis": 1}),
    ("softmax", {"shape": "90"}),
    ("log_softmax", {"shape": "3x5x67", "dtype": "float64"}),
    ("layer_norm", {"shape": "7x131"}),
    ("layer_norm", {"shape": "3x5x67"}),
    ("rms_norm", {"shape": "33x40"}),
    ("depthwise_conv2d", {"c": 24, "h": 9, "w": 7, "kernel": 3, "padding": 1, "layout": "NHWC"}),
    ("pool2d", {"kind": "avg", "c": 16, "h": 9, "w": 10, "kernel": 3, "layout": "NCHW8c"}),
    ("reduction", {"function": "sum", "shape": "41x67", "axes": 0}),
    ("reduction", {"function": "mean", "shape": "9x1025", "axes": 1}),
    ("reduction", {"function": "max", "shape": "70000"}),
    ("elementwise", {"function": "add", "shapes": "5x67,67"}),
    ("elementwise", {"function": "where", "shapes": "5x1,5x67,67"}),
    ("transpose", {"shape": "3x40x5x33", "axes": "0,2,3,1"}),
    ("transpose", {"shape": "130x37", "dtype": "int8"}),
    ("pad", {"shape": "9x37", "before": "3,3", "after": "1,2", "mode": "reflect"}),
    ("concatenate", {"shapes": "9x100,9x28", "axis": 1}),
    ("batch_norm", {"shape": "2x5x9x9"}),
    ("group_norm", {"shape": "2x6x9x11", "groups": 3}),
    ("cumsum", {"shape": "3x1100"}),
    ("cumsum", {"shape": "2x50x37", "axis": 1}),
    ("attention", {"heads": 3, "rows": 29, "length": 37, "depth": 24}),
    ("attention", {"heads": 4, "kv_heads": 2, "rows": 3, "length": 37, "depth": 20, "causal": 1}),
    ("lstm", {"steps": 3, "batch": 7, "inputs": 5, "hidden": 19, "packed": 16}),
    ("gru", {"steps": 2, "batch": 3, "inputs": 9, "hidden": 37, "reset_after": 0}),
    ("rnn", {"steps": 2, "batch": 13, "inputs": 4, "hidden": 21, "packed": 32}),
    ("strided_slice", {"shape": "9x5x37", "begin": "2,0,0", "size": "5,5,37"}),
    ("tile", {"shape": "5x67", "reps": "2,3"}),
    ("embedding", {"rows": 101, "width": 37, "indices": "2x7"}),
    ("resize2d", {"shape": "1x3x5x7", "to": "9x21"}),
    ("depth_to_space", {"shape": "2x12x5x7", "block": 2}),
    ("bitserial_dense", {"m": 7, "n": 37, "k": 130, "data_bits": 2, "weights": "bipolar"}),
    (
        "bitserial_conv2d",
        {"c": 70, "h": 9, "w": 11, "o": 19, "kernel": 3, "padding": 1, "data_bits": 2},
    ),
]


@pytest.mark.campaign
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("name", "parameters"), WORKLOADS, ids=str)
def test_random_points_are_right(name, parameters, cores):
    operator = ops.operator(name)
    workload = operator.workload(**parameters)
    target = dataclasses.replace(resolve("cpu"), cores=cores)
    space = operator.space(workload, target)
    default = operator.default_config(workload, target)
    assert space.index_of(default) in set(space.allowed())
    generator = random.Random(f"{workload} {cores}")
    for point in space.sample(POINTS, generator):
        check(operator, workload, space.at(point), target=target)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("softmax", {"shape": "64x1000"}),
        ("depthwise_conv2d", {"c": 256, "h": 28, "w": 28, "kernel": 3, "padding": 1}),
        ("depthwise_conv2d", {"c": 1024, "h": 7, "w": 7, "kernel": 3, "padding": 1}),
    ],
    ids=str,
)
def test_spaces_that_searches_are_judged_on_are_large(name, parameters):
    operator = ops.operator(name)
    target = dataclasses.replace(resolve("x86-64-avx2"), cores=1)
    assert operator.space(operator.workload(**parameters), target).count.low >= 2000
