"""ops.norms: layer and RMS norm against NumPy, of rows of any length."""

import random

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.target import resolve
from tests.ops.products import check, choices

CPU = resolve("cpu")
PARAMETERS = {
    "name": ("layer_norm", "rms_norm"),
    "shape": ("1", "7", "0x5", "5x0", "3x1", "5x67", "2x3x17", "2x3x5x64", "2x331"),
    "dtype": ("float32", "float64"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
def test_values(choice):
    operator = ops.operator(choice.pop("name"))
    check(operator, operator.workload(**choice))


BATCH = {
    "shape": ("1x1", "7x0", "0x3x2", "3x5", "2x3x5x7", "1x17x9x9", "2x33x1x40"),
    "axis": (0, 1, -1),
    "dtype": ("float16", "bfloat16", "float32", "float64"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(BATCH), ids=str)
def test_batch_norm(choice):
    operator = ops.operator("batch_norm")
    check(operator, operator.workload(**choice))


GROUPS = {
    "shape": ("1x1", "3x12", "0x12x2", "2x12x0", "2x12x5x7", "1x24x9x9", "2x36x1x41", "2x12x1x1"),
    "groups": (0, 1, 2, 12),
    "dtype": ("float32", "float64"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(GROUPS), ids=str)
def test_group_norm(choice):
    groups = min(choice.pop("groups"), int(choice["shape"].split("x")[1]))
    if groups:
        operator = ops.operator("group_norm")
        check(operator, operator.workload(**choice, groups=groups))
    else:
        operator = ops.operator("instance_norm")
        check(operator, operator.workload(**choice))


def test_group_norm_of_odd_images_with_another_epsilon():
    operator = ops.operator("group_norm")
    check(operator, operator.workload(shape=(2, 6, 3, 7), groups=3, epsilon=0.25))
    with pytest.raises(TuningError, match="groups do not divide the channels"):
        operator.workload(shape=(2, 6, 3, 7), groups=4)
    with pytest.raises(TuningError, match="no dimension of channels"):
        ops.operator("instance_norm").workload(shape=(6,))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(3))
def test_random_configs(seed):
    generator = random.Random(seed)
    operator = ops.operator("layer_norm")
    workload = operator.workload(shape=(3, 131))
    space = operator.space(workload, CPU)
    for index in space.sample(3, generator):
        check(operator, workload, space.at(index), seed=seed)


def test_a_small_variance_beside_a_large_mean_is_not_lost():
    operator = ops.operator("layer_norm")
    data = np.full((1, 64), 1000, np.float32)
    data[:, ::2] += 1
    ones, zeros = np.ones(64, np.float32), np.zeros(64, np.float32)
    inputs = {"data": data, "scale": ones, "shift": zeros}
    (got,) = check(operator, operator.workload(shape=(1, 64)), inputs=inputs).values()
    np.testing.assert_allclose(np.abs(got), 1, rtol=1e-3)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_epsilon(name):
    operator = ops.operator(name)
    workload = operator.workload(shape=(3, 45), epsilon=0.25)
    check(operator, workload)
    assert operator.workload(shape=(3, 45), epsilon=1e-5) == operator.workload(shape=(3, 45))
    with pytest.raises(TuningError, match="epsilon is negative"):
        operator.workload(shape=(3, 45), epsilon=-1)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_nan_and_infinity_spoil_their_row_only(special):
    operator = ops.operator("layer_norm")
    workload = operator.workload(shape=(3, 45))
    data = operator.reference(workload, 1).inputs["data"].copy()
    data[1, 41] = special
    (got,) = check(operator, workload, inputs={"data": data}).values()
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[[0, 2]]).all()
