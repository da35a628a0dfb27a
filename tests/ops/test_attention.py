"""ops.attention_operator: heads of any extents, masks, and rows that see no key."""

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from tests.ops.products import check, choices

OPERATOR = ops.operator("attention")
PARAMETERS = {
    "heads": (2, 4),
    "kv_heads": (1, 2),
    "rows": (0, 1, 3, 8, 9, 17, 61),
    "length": (0, 1, 13, 64, 131),
    "depth": (0, 1, 19, 32),
    "width": (1, 7, 64),
    "causal": (0, 1),
    "dtype": ("float32", "float64"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
def test_values(choice):
    check(OPERATOR, OPERATOR.workload(**choice))


@pytest.mark.parametrize(
    "parameters",
    [
        {"heads": 2, "rows": 17, "length": 37, "depth": 19, "causal": 1},
        {"heads": 4, "kv_heads": 2, "rows": 3, "length": 37, "depth": 33},
        {"batch": 2, "heads": 2, "rows": 19, "length": 9, "depth": 8, "mask": (2, 1, 1, 9)},
    ],
)
def test_some_values(parameters):
    check(OPERATOR, OPERATOR.workload(**parameters))


@pytest.mark.parametrize("rows", [3, 17])
def test_a_row_without_any_key_is_zero_and_nan_stays_in_its_row(rows):
    workload = OPERATOR.workload(heads=1, rows=rows, length=21, depth=8, mask=(1, 1, rows, 21))
    inputs = dict(OPERATOR.reference(workload, 1).inputs)
    inputs["mask"] = inputs["mask"].copy()
    inputs["mask"][0, 0, 1] = -np.inf
    inputs["query"] = inputs["query"].copy()
    inputs["query"][0, 0, 2, 5] = np.nan
    (got,) = check(OPERATOR, workload, inputs=inputs).values()
    assert not got[0, 0, 1].any()
    assert np.isnan(got[0, 0, 2]).all()
    assert np.isfinite(got[0, 0, [n for n in range(rows) if n != 2]]).all()


def test_refusals():
    sizes = {"heads": 4, "rows": 3, "length": 5, "depth": 8}
    with pytest.raises(TuningError, match="do not divide"):
        OPERATOR.workload(**sizes, kv_heads=3)
    with pytest.raises(TuningError, match="not the shape of the scores"):
        OPERATOR.workload(**sizes, mask=(3, 5))
