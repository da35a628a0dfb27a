"""ops.gemm: products of all layouts, dtypes and awkward shapes, against NumPy."""

import random

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ops.gemm import BATCH_MATMUL, DENSE, MATMUL
from dlcompiler.target import resolve
from tests.ops.products import check, choices

CPU = resolve("cpu")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8")
LAYOUTS = ("NN", "NT", "TN", "TT")
EXTENTS = (0, 1, 5, 32, 97)
SHAPES = dict.fromkeys("mnk", EXTENTS)


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices({"dtype": DTYPES, "layout": LAYOUTS, **SHAPES}), ids=str)
def test_matmul(choice):
    check(MATMUL, MATMUL.workload(**choice))


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices({"dtype": DTYPES, "packed": (0, 16), **SHAPES}), ids=str)
def test_dense(choice):
    check(DENSE, DENSE.workload(**choice))


STACKS = {"batch": (0, 1, 3), **dict.fromkeys("mnk", (1, 7, 18))}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices({"dtype": DTYPES, "layout": LAYOUTS, **STACKS}), ids=str)
def test_batch_matmul(choice):
    check(BATCH_MATMUL, BATCH_MATMUL.workload(**choice))


@pytest.mark.campaign
@pytest.mark.parametrize("epilogue", ["bias", "bias+gelu", "batch_norm+residual+relu6"])
@pytest.mark.parametrize("m", [1, 20])
def test_epilogues(m, epilogue):
    check(MATMUL, MATMUL.workload(m=m, n=37, k=9, epilogue=epilogue))
    check(DENSE, DENSE.workload(m=m, n=37, k=9, epilogue=epilogue, packed=16))
    check(BATCH_MATMUL, BATCH_MATMUL.workload(batch=2, m=m, n=37, k=9, epilogue=epilogue))


def test_an_epilogue_of_integers():
    for n in (9, 37):
        check(MATMUL, MATMUL.workload(m=7, n=n, k=5, dtype="int8", epilogue="bias+relu"))


@pytest.mark.parametrize("m", [1, 7])
def test_a_zero_point_is_subtracted_from_the_first_operand(m):
    for zero in (-128, 127):
        params = {"m": m, "n": 37, "k": 9, "dtype": "int8", "zero_point": zero}
        check(DENSE, DENSE.workload(**params, packed=16))
        check(MATMUL, MATMUL.workload(**params, layout="TN"))
        check(BATCH_MATMUL, BATCH_MATMUL.workload(batch=2, **params))


@pytest.mark.parametrize("low", [-128, 127])
def test_the_extremes_of_int8(low):
    workload = DENSE.workload(m=6, n=33, k=35, dtype="int8", packed=16)
    a, b = np.full((6, 35), low, np.int8), np.full((33, 35), -128, np.int8)
    inputs = DENSE.prepack(workload, {"A": a, "B": b})
    assert (check(DENSE, workload, inputs=inputs)["C"] == 35 * low * -128).all()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(12))
def test_random_configs_of_odd_shapes(seed):
    generator = random.Random(seed)
    extents = (1, 2, 3, 7, 8, 13, 16, 24, 33, 64, 97)
    operator = generator.choice((MATMUL, BATCH_MATMUL))
    sizes = dict(zip("mnk", generator.choices(extents, k=3), strict=True))
    stack = {"batch": 3} if operator is BATCH_MATMUL else {}
    workload = operator.workload(
        **sizes,
        **stack,
        layout=generator.choice(LAYOUTS),
        dtype=generator.choice((*DTYPES[:3], "int8")),
    )
    space = operator.space(workload, CPU)
    for index in space.sample(2, generator):
        check(operator, workload, space.at(index))


@pytest.mark.parametrize(("m", "n"), [(1, 20), (3, 20), (9, 20), (9, 3)])
def test_nan_and_infinity_reach_the_result(m, n):
    workload = MATMUL.workload(m=m, n=n, k=5)
    a, b = np.ones((m, 5), np.float32), np.ones((5, n), np.float32)
    a[m - 1, 4], b[0, n - 1] = np.nan, np.inf
    result = check(MATMUL, workload, inputs={"A": a, "B": b})["C"]
    assert np.isnan(result[m - 1]).all()
    assert np.isinf(result[: m - 1, n - 1]).all()
    assert (result[: m - 1, : n - 1] == 5).all()


def test_weights_are_packed_into_panels():
    workload = MATMUL.workload(m=2, n=5, k=3, packed=4)
    b = np.arange(15, dtype=np.float32).reshape(3, 5)
    packed = MATMUL.prepack(workload, {"A": np.ones((2, 3)), "B": b})["B"]
    assert packed.shape == (2, 3, 4)
    assert (packed[0] == b[:, :4]).all()
    assert (packed[1] == np.pad(b[:, 4:], ((0, 0), (0, 3)))).all()
    assert MATMUL.prepack(MATMUL.workload(m=2, n=5, k=3), {"B": b})["B"] is b


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", [-1, 1.5, True, "8", None, 1 << 21])
def test_what_is_not_an_extent_is_refused(extent):
    with pytest.raises(TuningError) as error:
        MATMUL.workload(m=8, n=extent, k=8)
    assert str(error.value) == (
        f"matmul: n is not an extent\n  got       {extent!r}\n  expected  an int from 0 to 1048576"
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dtype": "int32"}, "matmul: not a dtype of this operator"),
        ({"layout": "CN"}, "matmul: no such layout"),
        ({"packed": 65}, "matmul: not the width of a panel"),
        ({"epilogue": "gelo"}, "matmul: no such step of an epilogue"),
        ({"epilogue": "gelu", "dtype": "int8"}, "matmul: a step of the epilogue needs floats"),
    ],
)
def test_other_parameters_are_refused(change, problem):
    with pytest.raises(TuningError, match=problem):
        MATMUL.workload(m=8, n=8, k=8, **change)


def test_an_unknown_operator_is_refused():
    with pytest.raises(TuningError, match="no operator has this name") as error:
        ops.operator("matmal")
    assert "did you mean 'matmul'?" in str(error.value)
