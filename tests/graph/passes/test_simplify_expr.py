"""Calls become simpler ones with the same value."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import simplify_expr
from dlcompiler.graph.passes.tools import operator_of


@pytest.mark.parametrize(("value", "first", "second"), [(1, 1e8, -1e8), (-3e38, 3e38, 3e38)])
def test_sums_of_floats_keep_their_order(value, first, second):
    inner = op.add(var("x", (1,)), np.array([first], "float32"))
    module = Module.from_expr(op.add(inner, np.array([second], "float32")))
    inputs = np.array([value], "float32")
    assert evaluate(simplify_expr(module), inputs) == evaluate(module, inputs)


def test_constants_of_sums_of_integers_are_one():
    inner = op.add(var("x", (1,), "int8"), np.array([100], "int8"))
    after = simplify_expr(Module.from_expr(op.add(inner, np.array([100], "int8"))))
    assert evaluate(after, np.array([100], "int8")).tolist() == [44]
    assert any(".constants" in name for name in after.calls())


@pytest.mark.parametrize(("exponent", "operator"), [(2, "multiply"), (1, ""), (3, "power")])
def test_small_powers_of_floats(exponent, operator):
    x = var("x", (5,))
    module = Module.from_expr(op.power(x, np.array(exponent, "float32")))
    after = simplify_expr(module)
    assert operator_of(after.main.body) == operator
    values = np.array([-np.inf, -1.5, -0.0, 1e30, np.nan], "float32")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(evaluate(after, values), evaluate(module, values))


def test_a_power_that_repeats_its_base_stays():
    module = Module.from_expr(op.power(var("x", (1,)), np.full((3,), 2, "float32")))
    assert operator_of(simplify_expr(module).main.body) == "power"
