"""ops.reduction: each function × dtype × dimensions × shape against NumPy."""

import dataclasses
import os
import re

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ops.reduction import FUNCTIONS
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

OPERATOR = ops.operator("reduction")
CPU = resolve("cpu")
IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
PARAMETERS = {
    "function": tuple(FUNCTIONS),
    "shape": (
        *("scalar", "7", "0", "5x67", "67x5", "2x3x5x7", "4x0x3", "3x9x40"),
        *(("1", "131", "3x7", "3x1x41", "0x3", "2x33x3") if IS_FULL else ()),
    ),
    "axes": ("all", "0", "-1", "0,-1", "1", "none", "1,2"),
    "keepdims": (0, 1),
    "dtype": FUNCTIONS["all"].dtypes
    if IS_FULL
    else ("float16", "bfloat16", "float32", "float64", "int8", "int64", "uint32", "bool"),
}


def _is_taken(choice):
    ndim = 0 if choice["shape"] == "scalar" else choice["shape"].count("x") + 1
    axes = {
        "all": range(ndim), "0": (0,), "-1": (-1,), "0,-1": (0, -1), "1": (1,), "none": (),
        "1,2": (1, 2),
    }[choice["axes"]]  # fmt: skip
    gone = {n % ndim for n in axes if -ndim <= n < ndim}
    if len(gone) < len(axes) and choice["axes"] != "0,-1":
        return False
    if choice["function"].startswith("arg") and len(gone) not in (1, ndim):
        return False
    return bool(ndim or choice["axes"] in ("all", "none")) and (
        choice["dtype"] in FUNCTIONS[choice["function"]].dtypes
    )


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS, _is_taken), ids=str)
def test_values(choice):
    check(OPERATOR, OPERATOR.workload(**choice))


@pytest.mark.parametrize("function", ["var", "std", "logsumexp", "l1_norm", "l2_norm"])
@pytest.mark.parametrize("target", ["cpu", "v100"])
def test_functions_of_two_passes(function, target):
    for axes, dtype in ((0, "float32"), (1, "float16")):
        workload = OPERATOR.workload(function=function, shape=(5, 67), axes=axes, dtype=dtype)
        check(OPERATOR, workload, target=target)


@pytest.mark.parametrize("axes", [0, 1, "all"])
def test_every_config(axes):
    workload = OPERATOR.workload(function="sum", shape=(41, 67), axes=axes)
    space = OPERATOR.space(workload, CPU)
    for index in space.sample(3, seed=1):
        check(OPERATOR, workload, space.at(index))


def _config(workload, target, **values):
    default = {"vectors": 8, "streams": 8, "lines": 1, "halves": True}
    return OPERATOR.space(workload, target).config(**{**default, **values})


@pytest.mark.campaign
@pytest.mark.parametrize("shape", [(9001,), (1, 8192), (3, 5000), (5, 2, 1, 300)], ids=str)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("streams", [4, 8])
def test_reading_at_several_places(shape, parallel, streams):
    for axes in {-1, "all"}:
        workload = OPERATOR.workload(function="sum", shape=shape, axes=axes, keepdims=1)
        target = dataclasses.replace(CPU, cores=2)
        check(OPERATOR, workload, _config(workload, target, streams=streams, parallel=parallel))


@pytest.mark.campaign
@pytest.mark.parametrize(
    "shape",
    [(64, 256), (67, 1000), (9, 1025), (2, 1 << 20), (5, 13, 1, 512)],
    ids=str,
)
@pytest.mark.parametrize("function", ["mean", "argmin"])
@pytest.mark.parametrize("cores", [1, 2])
def test_rows_far_apart(shape, function, cores):
    target = dataclasses.replace(CPU, cores=cores)
    workload = OPERATOR.workload(function=function, shape=shape, axes=-1, keepdims=len(shape) % 2)
    check(OPERATOR, workload, _config(workload, target, parallel=cores > 1))


def test_each_stream_goes_on_where_its_last_row_ends():
    workload = OPERATOR.workload(function="max", shape=(64, 1024), axes=1)
    target = dataclasses.replace(CPU, cores=1)
    config = _config(workload, target, parallel=False)
    text = str(lower(*OPERATOR.template(workload, target, config)))
    starts = {
        int(start or 0) for start in re.findall(r"data\[indices0\.inner(?: \+ (\d+))?,", text)
    }
    assert {int(start or 0) for start in starts} == set(range(0, 64, 8)), text


@pytest.mark.campaign
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("axes", [0, 1])
def test_nan_and_infinity_do_as_in_numpy(function, axes):
    workload = OPERATOR.workload(function=function, shape=(40, 40), axes=axes)
    data = OPERATOR.reference(workload, 1).inputs["data"].copy()
    data[3, 5] = data[3, 7] = data[4, 7] = np.nan
    data[8, 9], data[10, 11], data[10, 12] = np.inf, -np.inf, np.inf
    (got,) = check(OPERATOR, workload, inputs={"data": data}).values()
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[function].reference(data, axis=axes)
    np.testing.assert_allclose(got.astype("f8"), wanted.astype("f8"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(), (9,), (3, 2000)], ids=str)
def test_first_position(function, shape):
    data = np.zeros(shape, np.float32)
    if shape:
        data[..., 1::3] = -0.0
        data[..., 4], data[..., 5:8] = np.inf, np.nan
        data[..., 6] = -np.inf
    workload = OPERATOR.workload(function=function, shape=shape, axes="all")
    (got,) = check(OPERATOR, workload, inputs={"data": data}).values()
    assert got == getattr(np, function)(data)


def test_integers_wrap():
    workload = OPERATOR.workload(function="sum", shape=(3, 50), axes=1, dtype="int8")
    data = np.full((3, 50), 100, np.int8)
    (got,) = check(OPERATOR, workload, inputs={"data": data}).values()
    np.testing.assert_array_equal(got, data.sum(axis=1, dtype=np.int8))


@pytest.mark.parametrize(
    "parameters",
    [
        {"function": "median", "shape": "3"},
        {"function": "sum", "shape": "3", "axes": 1},
        {"function": "sum", "shape": "3", "dtype": "bool"},
        {"function": "argmax", "shape": "3x4x5", "axes": "0,1"},
    ],
    ids=str,
)
def test_refusals(parameters):
    with pytest.raises(TuningError):
        OPERATOR.workload(**parameters)
