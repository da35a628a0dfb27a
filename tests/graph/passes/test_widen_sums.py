"""Sums of 16-bit floats are computed in float32 and rounded once."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.graph import build, evaluate, op, optimize, var
from dlcompiler.graph.ir import Call, Module, Op, Var
from dlcompiler.graph.passes import widen_sums
from dlcompiler.graph.passes.tools import operator_of
from dlcompiler.graph.passes.widen_sums import SUMS
from tests.graph.operators.cases import CASES
from tests.graph.operators.operator_cases import type_of, value_of

NARROW = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", NARROW)
def test_a_sum_of_ones(dtype):
    module = Module.from_expr(op.mean(var("x", (2, 5000), dtype), axis=1))
    ones = np.ones((2, 5000), dtypes.to_numpy(dtype))
    np.testing.assert_array_equal(build(module)(ones).astype("float32"), [1, 1])


def test_other_dtypes_stay():
    module = Module.from_expr(op.sum(var("x", (3,), "float32")))
    assert widen_sums(module) is module


def test_the_dtype_of_a_running_sum():
    module = Module.from_expr(op.cumsum(var("x", (5000,), "float32"), axis=0, dtype="float16"))
    found = build(module)(np.ones(5000, "float32"))
    assert found.dtype == np.float16
    assert found[-1] == 5000


def test_factors_are_still_multiplied_into_weights():
    w, s = np.ones((8, 4, 3, 3), "float16"), np.full((8, 1, 1), 2, "float16")
    conv = op.nn.conv2d(var("x", (1, 4, 6, 6), "float16"), w)
    after = optimize(Module.from_expr(op.multiply(conv, s)), 3)
    assert "multiply" not in {operator_of(node) for node in after.nodes()}


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", sorted(SUMS))
def test_results_are_rounded_once(name, dtype):
    generator = np.random.default_rng(1)
    for case in CASES[name][:2]:
        params = [Var(f"x{n}", type_of(entry, dtype)) for n, entry in enumerate(case.inputs)]
        module = Module.from_expr(Call(Op(name), tuple(params), case.attrs))
        values = [value_of(entry, dtype, generator) for entry in case.inputs]
        with np.errstate(all="ignore"):
            wanted, found = evaluate(module, *values), build(module)(*values)
        unit = 2.0 ** -(7 if dtype == "bfloat16" else 10)
        np.testing.assert_allclose(
            found.astype("float64"), wanted.astype("float64"), rtol=1.01 * unit, atol=1e-4
        )
