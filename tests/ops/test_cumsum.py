"""ops.cumsum: running sums along any dimension, in blocks and in blocks of blocks."""

import numpy as np
import pytest

from dlcompiler import ops
from tests.ops.products import check, choices

OPERATOR = ops.operator("cumsum")
PARAMETERS = {
    "shape": ("1", "7x0", "0x3x2", "4x4", "3x511", "2x37x5", "2x300x20", "1x17x1x40", "2x9100"),
    "axis": (0, 1, -1),
    "dtype": ("float32", "float64", "int32", "int64"),
}


def _has_axis(choice):
    return choice["axis"] < 1 + choice["shape"].count("x")


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS, _has_axis), ids=str)
def test_values(choice):
    check(OPERATOR, OPERATOR.workload(**choice))


@pytest.mark.parametrize(("shape", "axis"), [((3, 1000), 1), ((2, 50, 7), 1)])
def test_nan_is_in_the_sums_from_its_place_on(shape, axis):
    workload = OPERATOR.workload(shape=shape, axis=axis)
    data = OPERATOR.reference(workload, 1).inputs["data"].copy()
    data[1, 21] = np.nan
    (got,) = check(OPERATOR, workload, inputs={"data": data}).values()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(np.cumsum(data, axis=axis)))


def test_integers_wrap():
    workload = OPERATOR.workload(shape=(2, 40), dtype="int32")
    data = np.full((2, 40), 2**30, np.int32)
    (got,) = check(OPERATOR, workload, inputs={"data": data}).values()
    np.testing.assert_array_equal(got, np.cumsum(data, axis=1, dtype=np.int32))
