"""Factors for each channel become part of weights."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import fold_scale_axis
from dlcompiler.graph.passes.tools import operator_of


def test_what_two_factors_make_has_names_of_its_own():
    factor = np.array([1, 2], "float32").reshape(2, 1, 1)
    data = op.multiply(var("x", (1, 2, 4, 4)), factor)
    made = op.nn.conv2d(data, var("w", (2, 2, 1, 1)), name="conv")
    after = fold_scale_axis(Module.from_expr(op.multiply(made, factor)))
    names = [node.name for node in after.nodes() if operator_of(node)]
    assert sorted(names) == ["conv", "conv.weight", "conv.weight_1"]


def value_before_and_after(made, value):
    module = Module.from_expr(made)
    return evaluate(module, value), evaluate(fold_scale_axis(module), value)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_a_factor_that_is_not_finite_stays(number):
    factor = np.array([number, 1], "float32").reshape(2, 1, 1)
    weight = np.eye(2, dtype="float32").reshape(2, 2, 1, 1)
    made = op.multiply(op.nn.conv2d(var("x", (1, 2, 1, 1)), weight), factor)
    before, after = value_before_and_after(made, np.ones((1, 2, 1, 1), "float32"))
    assert np.array_equal(before, after, equal_nan=True)


def test_a_product_that_wraps_in_a_narrower_dtype_stays():
    data = op.multiply(var("x", (1, 2, 1, 1), "int8"), np.array([[[7]], [[1]]], "int8"))
    made = op.nn.conv2d(data, np.full((2, 2, 1, 1), 3, "int8"), out_dtype="int32")
    before, after = value_before_and_after(made, np.full((1, 2, 1, 1), 100, "int8"))
    assert np.array_equal(before, after)


def test_integers_that_wrap_stay_behind_a_relu():
    made = op.nn.conv2d(var("x", (1, 2, 1, 1), "int8"), np.ones((2, 2, 1, 1), "int8"))
    made = op.multiply(op.nn.relu(made), np.array([[[2]], [[1]]], "int8"))
    before, after = value_before_and_after(made, np.full((1, 2, 1, 1), 50, "int8"))
    assert np.array_equal(before, after)
