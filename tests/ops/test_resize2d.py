"""ops.resize2d: each method × coordinate mode × layout against matrices of weights."""

import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ops.resizing import METHODS, MODES, ROUNDINGS
from dlcompiler.target import resolve
from tests.ops.products import check, choices

AVX512 = resolve("x86-64-avx512")
OPERATOR = ops.operator("resize2d")
PARAMETERS = {
    "method": METHODS,
    "mode": MODES[:-1],
    "to": ("9x11", "3x4", "1x7"),
    "layout": ("NCHW", "NHWC"),
    "dtype": ("float32", "float16", "float64", "bfloat16"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
def test_values(choice):
    check(OPERATOR, OPERATOR.workload(shape=(2, 3, 5, 7), **choice))


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"shape": (1, 2, 5, 40), "to": (10, 80)}, {"by_case": True, "steps": 1}),
        ({"shape": (1, 2, 5, 32), "to": (6, 64), "mode": "align_corners"}, {"steps": 4}),
        ({"shape": (1, 2, 5, 30), "to": (7, 40), "method": "cubic"}, {}),
        ({"shape": (1, 2, 5, 40), "to": (10, 80), "method": "nearest_neighbor"}, {}),
        ({"shape": (1, 2, 5, 70), "to": (5, 150), "dtype": "bfloat16"}, {}),
        ({"shape": (1, 2, 5, 40), "to": (10, 40)}, {}),
    ],
    ids=str,
)
def test_rows_of_several_vectors(given, known):
    workload = OPERATOR.workload(**given)
    config = OPERATOR.default_config(workload, AVX512)
    assert known.items() <= config.values.items()
    check(OPERATOR, workload)


@pytest.mark.campaign
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_roundings(rounding):
    known = {"shape": (1, 2, 4, 6), "to": (6, 9), "method": "nearest_neighbor", "dtype": "uint8"}
    check(OPERATOR, OPERATOR.workload(**known, rounding=rounding))


@pytest.mark.parametrize(
    "wrong",
    [{"method": "area"}, {"mode": "half"}, {"shape": (3, 4, 5)}, {"dtype": "int8"}, {"to": (3,)}],
    ids=str,
)
def test_refusals(wrong):
    with pytest.raises(TuningError):
        OPERATOR.workload(**{"shape": (1, 2, 4, 6), "to": (6, 9), **wrong})
