"""ops.softmax: each axis and shape against NumPy, the choices of its space, NaN and infinity."""

import random

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import ops, te
from dlcompiler.dtypes import to_numpy
from dlcompiler.errors import TuningError
from dlcompiler.ir import For, walk
from dlcompiler.ops.softmax import log_softmax, softmax
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

CPU = resolve("cpu")
PARAMETERS = {
    "name": ("softmax", "log_softmax"),
    "shape": ("1", "7", "0x5", "5x0", "3x1", "5x67", "2x3x17", "2x5x3x11", "2x300"),
    "axis": (0, 1, -2, -1),
    "dtype": ("float32", "float64"),
}


def _has_axis(choice):
    ndim = choice["shape"].count("x") + 1
    return -ndim <= choice["axis"] < ndim


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS, _has_axis), ids=str)
def test_values(choice):
    operator = ops.operator(choice.pop("name"))
    check(operator, operator.workload(**choice))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_random_configs(seed):
    generator = random.Random(seed)
    operator = ops.operator("softmax")
    for shape, axis in [((5, 131), 1), ((131, 5), 0)]:
        workload = operator.workload(shape=shape, axis=axis)
        space = operator.space(workload, CPU)
        for index in space.sample(2, generator):
            check(operator, workload, space.at(index), seed=seed)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_do_as_in_numpy(name, special):
    operator = ops.operator(name)
    workload = operator.workload(shape=(3, 45))
    data = operator.reference(workload, 1).inputs["data"].copy()
    data[1, 41] = special
    (got,) = check(operator, workload, inputs={"data": data}).values()
    with np.errstate(invalid="ignore", divide="ignore"):
        below = data - data.max(axis=1, keepdims=True)
        wanted = np.exp(below) / np.exp(below).sum(axis=1, keepdims=True)
        wanted = wanted if name == "softmax" else below - np.log(np.exp(below).sum(1)[:, None])
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_large_numbers_do_not_overflow():
    operator = ops.operator("softmax")
    data = np.float32([[1e30, 1e30, -1e30, 0], [-3e38, 3e38, 3e38, 3e38]])
    (got,) = check(operator, operator.workload(shape=(2, 4)), inputs={"data": data}).values()
    np.testing.assert_allclose(got, [[0.5, 0.5, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


def test_rows_may_run_in_parallel():
    operator = ops.operator("softmax")
    workload = operator.workload(shape=(4, 2, 64))
    values = operator.default_config(workload, CPU).values
    cfg = operator.space(workload, CPU).config(**{**values, "parallel": CPU.cores > 1})
    s, args = operator.template(workload, CPU, cfg)
    kinds = [node.kind for node in walk(lower(s, args).body) if isinstance(node, For)]
    assert kinds.count("parallel") == (CPU.cores > 1) * (1 + values["largest_first"])
    check(operator, workload, cfg)


@pytest.mark.parametrize(
    "parameters",
    [
        {"shape": (4, 4), "axis": 2},
        {"shape": (), "axis": 0},
        {"shape": "4xx4"},
        {"shape": (4, -1)},
        {"shape": (1 << 30, 1 << 30)},
        {"shape": (4, 4), "dtype": "int32"},
    ],
    ids=str,
)
def test_refusals(parameters):
    with pytest.raises(TuningError):
        ops.operator("softmax").workload(**parameters)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_only_the_result_is_rounded_to_16_bits(dtype):
    data = te.placeholder((3, 300), dtype, "data")
    values = np.random.default_rng(1).uniform(-8, 8, (3, 300)).astype(to_numpy(dtype))
    for function in (softmax, log_softmax):
        out = function(data)
        s = te.create_schedule(out.op)
        found = np.empty((3, 300), to_numpy(dtype))
        dlc.build(s, [data, out])(values, found)
        exact = np.exp(values.astype(np.float64))
        exact /= exact.sum(axis=1, keepdims=True)
        wanted = exact if function is softmax else np.log(exact)
        off = np.abs(found.astype(np.float64) - wanted)
        assert (off <= 0.51 * np.spacing(np.abs(found)).astype(np.float64)).all()
