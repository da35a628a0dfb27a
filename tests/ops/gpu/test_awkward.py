"""Every operator's GPU schedules against NumPy: in the simulator, and a sample on OpenCL devices.

The shapes are awkward: primes, single elements, dimensions shorter than a block, empty ones.
"""

import os
import random
from itertools import islice

import pytest

from dlcompiler import ops
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.drawn_workloads import OF_GPUS, PARTS, drawn_workload
from tests.ops.products import check
from tests.share import CI_SHARE

IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
GPUS = ("v100", "rtx-3090", "h100", "gtx-1080", "gpu", "mali-t860")
DRAWS = range(400 if IS_FULL else 24)
LOWERED = range(40 if IS_FULL else CI_SHARE)
CONTRACTIONS = ("matmul", "dense", "batch_matmul", "conv2d", "conv2d_gemm", "conv2d_winograd")
MOST_LOWERED = dict.fromkeys(CONTRACTIONS, 600)
"""Largest extents of operators whose unrolled tiles take seconds to lower."""
MOST_POINTS = 2000
"""Configs of a space that some are drawn from; [1]."""
IMAGE = {"n": 2, "c": 6, "h": 7, "w": 13, "kernel": 3}
PRODUCTS = [
    ("matmul", {"m": 1, "n": 1, "k": 1}),
    ("matmul", {"m": 37, "n": 67, "k": 31}),
    ("matmul", {"m": 3, "n": 131, "k": 61, "layout": "TT"}),
    ("matmul", {"m": 64, "n": 48, "k": 96, "dtype": "float16"}),
    ("matmul", {"m": 33, "n": 65, "k": 19, "dtype": "float16", "layout": "NT"}),
    ("matmul", {"m": 33, "n": 48, "k": 67, "dtype": "int8"}),
    ("matmul", {"m": 17, "n": 23, "k": 0}),
    ("matmul", {"m": 9, "n": 67, "k": 1, "dtype": "int8", "epilogue": "bias", "packed": 64}),
    ("dense", {"m": 1, "n": 251, "k": 127, "epilogue": "bias+relu"}),
    ("dense", {"m": 13, "n": 40, "k": 67, "dtype": "float64", "packed": 8}),
    ("dense", {"m": 17, "n": 72, "k": 66, "dtype": "int8", "packed": 16}),
    ("batch_matmul", {"batch": 5, "m": 31, "n": 17, "k": 13}),
    ("batch_matmul", {"batch": 3, "m": 1, "n": 61, "k": 37, "dtype": "float16"}),
]
CONVOLUTIONS = [
    ("conv2d_direct", {**IMAGE, "o": 11, "padding": 1}),
    ("conv2d_direct", {**IMAGE, "o": 16, "dtype": "float16", "stride": 2, "layout": "NHWC"}),
    ("conv2d_direct", {**IMAGE, "o": 9, "dtype": "int8", "groups": 3, "block": 8}),
    ("conv2d_gemm", {**IMAGE, "o": 10, "padding": 1, "epilogue": "bias+relu"}),
    ("conv2d_gemm", {**IMAGE, "o": 10, "groups": 2, "dilation": 2, "padding": 2}),
    ("conv2d_gemm", {**IMAGE, "o": 32, "groups": 2, "block": 8}),
    ("conv2d_winograd", {**IMAGE, "o": 5, "padding": 1}),
    ("depthwise_conv2d", {**IMAGE, "multiplier": 2, "padding": 1, "dtype": "float16"}),
    ("depthwise_conv2d", {**IMAGE, "stride": 2, "layout": "NHWC"}),
    ("depthwise_conv2d", {**IMAGE, "padding": (0, 1, 2, 3), "dtype": "int8"}),
    ("pool2d", {**IMAGE, "kind": "max", "stride": 2, "ceil_mode": 1, "dtype": "int8"}),
    ("pool2d", {**IMAGE, "kind": "avg", "padding": 1}),
]
ROWS = [
    ("softmax", {"shape": (7, 131)}),
    ("softmax", {"shape": (3, 21, 4, 19), "axis": 1, "dtype": "float64"}),
    ("log_softmax", {"shape": (1, 1)}),
    ("log_softmax", {"shape": (2, 4099)}),
    ("layer_norm", {"shape": (3, 257)}),
    ("layer_norm", {"shape": (2, 3, 1), "dtype": "float64"}),
    ("rms_norm", {"shape": (31, 40), "dtype": "float64"}),
    ("batch_norm", {"shape": (2, 5, 9, 7), "dtype": "float16"}),
    ("group_norm", {"shape": (2, 6, 5, 7), "groups": 3}),
    ("cumsum", {"shape": (3, 37), "dtype": "int64"}),
    ("cumsum", {"shape": (2, 300, 3), "axis": 1}),
    ("lstm", {"steps": 2, "batch": 3, "inputs": 5, "hidden": 7}),
    ("gru", {"steps": 2, "inputs": 3, "hidden": 5, "reset_after": 0}),
    ("rnn", {"batch": 2, "inputs": 5, "hidden": 9, "packed": 4, "cell": 1}),
    ("attention", {"heads": 2, "rows": 3, "length": 37, "depth": 5, "causal": 1}),
    ("instance_norm", {"shape": (3, 5, 1, 67), "dtype": "float64"}),
    ("reduction", {"function": "sum", "shape": (41, 67), "axes": 0}),
    ("reduction", {"function": "mean", "shape": (9, 1021), "axes": 1, "dtype": "float16"}),
    ("reduction", {"function": "max", "shape": (7001,), "dtype": "int8"}),
    ("reduction", {"function": "argmax", "shape": (5, 131), "axes": 1}),
    ("elementwise", {"function": "add", "shapes": [(5, 67), (67,)]}),
    ("elementwise", {"function": "add", "shapes": [(1,), (1,)], "dtype": "int8"}),
    ("transpose", {"shape": (3, 37, 5, 31), "axes": (0, 2, 3, 1)}),
    ("transpose", {"shape": (131, 37), "dtype": "int8"}),
    ("pad", {"shape": (9, 37), "before": (3, 3), "after": (1, 2), "mode": "reflect"}),
    ("concatenate", {"shapes": [(9, 101), (9, 28)], "axis": 1, "dtype": "float16"}),
]
SELECTIONS = [
    ("strided_slice", {"shape": (9, 37), "begin": (1, 36), "size": (4, 19), "strides": (2, -2)}),
    ("split", {"shape": (6, 35), "sections": 5, "axis": 1}),
    ("flip", {"shape": (5, 67), "axis": 1, "dtype": "int8"}),
    ("tile", {"shape": (5, 67), "reps": (2, 3)}),
    ("repeat", {"shape": (5, 67), "repeats": 3, "axis": 1}),
    ("reshape", {"shape": (6, 35, 4), "to": (21, 40), "dtype": "float16"}),
    ("take", {"shape": (5, 67), "indices": (9,), "axis": 1}),
    ("gather", {"shape": (5, 67), "indices": (4, 9), "axis": 1}),
    ("embedding", {"rows": 101, "width": 37, "indices": (2, 7)}),
    ("one_hot", {"indices": (3, 5), "depth": 11}),
    ("resize2d", {"shape": (2, 3, 5, 7), "to": (9, 4), "method": "cubic"}),
    ("depth_to_space", {"shape": (2, 12, 5, 7), "block": 2}),
    ("space_to_depth", {"shape": (2, 6, 10, 3), "block": 2, "layout": "NHWC"}),
]
AWKWARD = [*SELECTIONS, *PRODUCTS, *CONVOLUTIONS, *ROWS]
ON_DEVICES = AWKWARD[1::3]


def points_of(operator, workload, target, choose, count):
    """Return the default config, and some drawn ones."""
    space = operator.space(workload, target)
    some = list(islice(space.allowed(), MOST_POINTS))
    drawn = choose.sample(some, min(count, len(some)))
    return [operator.default_config(workload, target), *map(space.at, drawn)]


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "parameters"), AWKWARD, ids=str)
def test_awkward_shapes_in_the_simulator(name, parameters):
    operator, choose = ops.operator(name), random.Random(f"{name} {parameters}")
    workload = operator.workload(**parameters)
    gpu = choose.choice(GPUS)
    for cfg in points_of(operator, workload, resolve(gpu), choose, 9 if IS_FULL else 1):
        check(operator, workload, cfg, target=gpu)


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "parameters"), ON_DEVICES, ids=str)
def test_awkward_shapes_on_opencl_devices(opencl, name, parameters):
    operator = ops.operator(name)
    check(operator, operator.workload(**parameters), target="opencl")


def test_each_operator_is_among_them():
    assert {name for name, _ in AWKWARD} == set(OF_GPUS)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("c", "size", "o", "kernel", "expected"),
    [
        (3, 224, 64, 7, "conv2d_direct"),
        (64, 56, 64, 1, "conv2d_gemm"),
        (128, 28, 128, 3, "conv2d_winograd"),
    ],
)
def test_the_operator_of_a_convolution_is_chosen_by_estimates(c, size, o, kernel, expected):
    shape = {"c": c, "h": size, "w": size, "o": o, "kernel": kernel, "padding": kernel // 2}
    assert ops.select("conv2d", shape, resolve("rtx-3090"), tuned={}).operator.name == expected


@pytest.mark.campaign
@PARTS
@pytest.mark.parametrize("name", [*OF_GPUS, "conv2d"])
def test_any_default_is_legal(name, part):
    for seed in DRAWS[part::CI_SHARE]:
        choose = random.Random(f"{name} {seed}")
        params, target = drawn_workload(name, choose, 1 << 20), resolve(choose.choice(GPUS))
        chosen = ops.select(name, params, target, tuned={})
        space = chosen.operator.space(chosen.workload, target)
        assert space.forbidden_by(chosen.config) is None, f"{name} {params}"
        assert space.at(space.index_of(chosen.config)) == chosen.config


@pytest.mark.campaign
@PARTS
@pytest.mark.parametrize("name", [*OF_GPUS, "conv2d"])
def test_any_default_can_be_lowered(name, part):
    for seed in LOWERED[part::CI_SHARE]:
        choose = random.Random(f"{name} {seed}")
        most = choose.choice((32, 300, MOST_LOWERED.get(name, 1 << 20)))
        params, target = drawn_workload(name, choose, most), resolve(choose.choice(GPUS))
        chosen = ops.select(name, params, target, tuned={})
        s, args = chosen.operator.template(chosen.workload, target, chosen.config)
        lower(s, args, target=target)
