"""ops.depthwise: dtypes and awkward shapes against NumPy, its choices, NaN and infinity."""

import random

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ir import For, walk
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices
from tests.share import cases_of

DEPTHWISE = ops.operator("depthwise_conv2d")
CPU = resolve("cpu")
PARAMETERS = {
    "image": (
        (1, 1, 1, 1),
        (1, 3, 7, 7),
        (2, 2, 5, 29),
        (1, 2, 33, 14),
        (0, 2, 4, 4),
        (1, 0, 4, 4),
    ),
    "kernel": (1, 3, (5, 3), 7),
    "stride": (1, 2, (1, 3)),
    "padding": (0, 1, 3, -1, (0, 5, 2, 1)),
    "dilation": (1, 2),
    "multiplier": (1, 2),
    "epilogue": ("", "bias+relu", "batch_norm+residual+relu6"),
    "dtype": ("float32", "float64"),
}
BESIDE = {
    "image": ((2, 8, 6, 5), (1, 24, 3, 9), (1, 40, 1, 1), (1, 0, 4, 4)),
    "kernel": (1, 3, (5, 3)),
    "stride": (1, (2, 3)),
    "padding": (0, (0, 5, 2, 1), (-1, 3)),
    "dilation": (1, 2),
    "multiplier": (1, 2),
    "epilogue": ("bias+residual+relu", "batch_norm+residual+relu6"),
    "dtype": ("float32", "float64", "float16", "bfloat16", "int8"),
    "layout": ("NCHW", "NHWC", "NCHW8c"),
}


def _is_taken(choice):
    return choice["dtype"] != "int8" or "norm" not in choice["epilogue"]


def workload_of(choice):
    n, c, h, w = choice["image"]
    rest = {name: value for name, value in choice.items() if name != "image"}
    return DEPTHWISE.workload(n=n, c=c, h=h, w=w, **rest)


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
def test_values(choice):
    check(DEPTHWISE, workload_of(choice))


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(BESIDE, _is_taken), ids=str)
def test_layouts_and_narrow_dtypes(choice):
    check(DEPTHWISE, workload_of(choice))


@pytest.mark.parametrize("shape", [(1, 3, 7, 5), (0, 2, 4, 4), (1, 37, 9, 8)], ids=str)
@pytest.mark.parametrize("kernel", [3, 7])
def test_channels_that_fill_no_vector(shape, kernel):
    n, c, h, w = shape
    check(
        DEPTHWISE, DEPTHWISE.workload(n=n, c=c, h=h, w=w, kernel=kernel, padding=1, layout="NHWC")
    )


@pytest.mark.campaign
@pytest.mark.parametrize("layout", ["NHWC", "NCHW16c"])
def test_choices_of_vectors_of_channels(layout):
    workload = DEPTHWISE.workload(c=48, h=9, w=7, kernel=3, padding=1, stride=2, layout=layout)
    space = DEPTHWISE.space(workload, CPU)
    for cfg in map(space.at, cases_of(list(space.allowed()))):
        check(DEPTHWISE, workload, cfg)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_random_configs(seed):
    generator = random.Random(seed)
    for stride in (1, 2):
        workload = DEPTHWISE.workload(c=2, h=19, w=37, kernel=3, stride=stride, padding=1)
        space = DEPTHWISE.space(workload, CPU)
        for index in space.sample(1, generator):
            check(DEPTHWISE, workload, space.at(index), seed=seed)


def test_nan_and_infinity_stay_in_their_windows():
    workload = DEPTHWISE.workload(c=2, h=9, w=9, kernel=3, padding=1)
    data = DEPTHWISE.reference(workload, 1).inputs["data"].copy()
    data[0, 1, 4, 8], data[0, 0, 0, 0] = np.nan, np.inf
    (got,) = check(DEPTHWISE, workload, inputs={"data": data}).values()
    assert np.isnan(got[0, 1, 3:6, 7:]).all()
    assert np.isnan(got).sum() == 6
    assert np.isinf(got[0, 0, :2, :2]).all()
    assert np.isinf(got).sum() == 4


def test_channels_may_run_in_parallel():
    workload = DEPTHWISE.workload(c=4, h=9, w=9, kernel=3, padding=1)
    values = DEPTHWISE.default_config(workload, CPU).values
    cfg = DEPTHWISE.space(workload, CPU).config(**{**values, "parallel": CPU.cores > 1})
    s, args = DEPTHWISE.template(workload, CPU, cfg)
    kinds = [node.kind for node in walk(lower(s, args).body) if isinstance(node, For)]
    assert kinds.count("parallel") == (CPU.cores > 1)
    check(DEPTHWISE, workload, cfg)


@pytest.mark.parametrize(
    "parameters",
    [
        {"c": 3.5},
        {"multiplier": 0},
        {"kernel": 0},
        {"stride": 0},
        {"groups": 3},
        {"layout": "CHWN"},
        {"layout": "NCHW8c"},
        {"dtype": "int32"},
        {"dtype": "int8", "epilogue": "relu6"},
    ],
)
def test_parameters_are_checked(parameters):
    with pytest.raises((TuningError, TypeError)):
        DEPTHWISE.workload(**{"c": 4, "h": 8, "w": 8, "kernel": 3, **parameters})
