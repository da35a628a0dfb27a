"""ops.elementwise: each function × dtype × pair of shapes against NumPy."""

import os

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.dtypes import is_float
from dlcompiler.errors import TuningError
from dlcompiler.ops.functions import FUNCTIONS
from dlcompiler.target import resolve
from tests.ops.products import check, choices
from tests.share import cases_of

OPERATOR = ops.operator("elementwise")
CPU = resolve("cpu")
IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
SOME = ("float16", "bfloat16", "float32", "float64", "int8", "int64", "uint32")
DTYPES = FUNCTIONS["copy"].dtypes if IS_FULL else SOME
OF_ONE = {
    "function": tuple(name for name, kind in FUNCTIONS.items() if kind.arity == 1),
    "shapes": ("scalar", "0", "1", "7", "131", "3x7", "2x3x5x7", "4x0x3", "2x64"),
    "dtype": DTYPES,
}
OF_TWO = {
    "function": tuple(name for name, kind in FUNCTIONS.items() if kind.arity == 2),
    "shapes": (
        *("131,131", "3x7,3x7", "5x67,67", "5x67,5x1", "67,5x1", "2x3x5x7,3x1x1", "2x64,scalar"),
        *("scalar,3", "1,1", "0,1", "4x1,0", "2x1x5,3x1", "2x3x4x4,1x3x1x1"),
    ),
    "dtype": DTYPES,
}


def _is_taken(choice):
    return choice["dtype"] in FUNCTIONS[choice["function"]].dtypes


OF_THREE = {
    "function": ("where",),
    "shapes": ("7,7,7", "5x67,67,5x1", "3x1x1,3x5x67,scalar", "0,1,1"),
    "dtype": (*DTYPES, "bool"),
}
CHOICES = [c for kind in (OF_ONE, OF_TWO, OF_THREE) for c in choices(kind, _is_taken)]


@pytest.mark.campaign
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_values(choice):
    check(OPERATOR, OPERATOR.workload(**choice))


SPECIALS = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 3e38, -3e38, 1e-40, 700, -700, 2.5])


@pytest.mark.campaign
@pytest.mark.parametrize(
    "name", [n for n, f in FUNCTIONS.items() if is_float(f.dtypes[0]) and not f.has_condition]
)
def test_nan_and_infinity_do_as_in_numpy(name):
    kind = FUNCTIONS[name]
    operands = [SPECIALS[:, None], SPECIALS[None, :]][: kind.arity]
    shapes = [x.shape for x in operands]
    inputs = dict(zip(("data", "other"), operands, strict=False))
    (got,) = check(
        OPERATOR, OPERATOR.workload(function=name, shapes=shapes), inputs=inputs
    ).values()
    with np.errstate(all="ignore"):
        wanted = kind.reference(*operands, **kind.options)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "dtype", "options"),
    [
        ("clip", "float32", {"low": -1.5, "high": 2}),
        ("clip", "uint8", {"low": 1.5, "high": 300}),
        ("clip", "int8", {"low": 5, "high": "-inf"}),
        ("leaky_relu", "float32", "alpha=0.3"),
        ("hard_sigmoid", "float32", {"alpha": 0.2}),
        ("celu", "float16", {"alpha": 2}),
        ("cast", "float32", {"to": "uint8"}),
        ("cast", "int64", {"to": "bfloat16"}),
        ("cast", "bool", {"to": "float64"}),
    ],
)
def test_options(function, dtype, options):
    check(OPERATOR, OPERATOR.workload(function=function, shapes="37", dtype=dtype, options=options))


def test_an_option_with_its_default_is_not_in_the_workload():
    plain = OPERATOR.workload(function="leaky_relu", shapes="3")
    assert OPERATOR.workload(function="leaky_relu", shapes="3", options={"alpha": 0.01}) == plain


@pytest.mark.parametrize("shapes", ["33,33", "5x67,67", "6x7x7,6x7x7"])
def test_every_config(shapes):
    workload = OPERATOR.workload(function="add", shapes=shapes)
    space = OPERATOR.space(workload, CPU)
    for index in cases_of(list(space.allowed())):
        check(OPERATOR, workload, space.at(index))


@pytest.mark.parametrize(
    "parameters",
    [
        {"function": "ad", "shapes": "3,3"},
        {"function": "add", "shapes": "3"},
        {"function": "add", "shapes": "3,4"},
        {"function": "exp", "shapes": "3", "dtype": "int32"},
        {"function": "exp", "shapes": [(3, -1)]},
        {"function": "where", "shapes": "3,3"},
        {"function": "clip", "shapes": "3", "options": "min=3"},
        {"function": "clip", "shapes": "3", "options": "low"},
        {"function": "clip", "shapes": "3", "options": {"low": "nan"}},
        {"function": "exp", "shapes": "3", "options": {"alpha": 1}},
    ],
    ids=str,
)
def test_refusals(parameters):
    with pytest.raises(TuningError):
        OPERATOR.workload(**parameters)
