"""Factors for each channel become part of weights."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import fold_scale_axis
from dlcompiler.graph.passes.tools import operator_of
from tests.share import cases_of


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


# -- ranges of dtypes ------------------------------------------------------------------------------


def conv_times(weight, factor, dtype="float16"):
    """Return a module in which a factor for each channel stands behind a convolution."""
    channels = weight.shape[0]
    data = var("x", (1, weight.shape[1], 1, 1), dtype)
    made = op.nn.conv2d(data, weight.reshape(*weight.shape, 1, 1), name="conv")
    return Module.from_expr(op.multiply(made, factor.reshape(channels, 1, 1), name="scaled"))


def rules(module):
    return [(d.subject, d.verdict, d.rule) for d in module.decisions()]


REFUSED = [(("scaled",), "not folded", "range")]


@pytest.mark.parametrize(
    ("weight", "factor", "dtype"),
    [(300, 300, "float16"), (1e-3, 1e-3, "float16"), (1e30, 1e30, "float32")],
    ids=["overflow", "underflow", "float32"],
)
def test_weights_that_the_dtype_does_not_hold(weight, factor, dtype):
    module = conv_times(np.full((2, 2), weight, dtype), np.full(2, factor, dtype), dtype)
    after = fold_scale_axis(module)
    assert rules(after) == REFUSED
    assert f"does not fit {dtype}" in after.decisions()[0].reason
    value = np.full((1, 2, 1, 1), 1e-3 if weight > 1 else 1e3, dtype)
    assert np.array_equal(evaluate(after, value), evaluate(module, value))


def test_weights_that_are_lost_beside_others():
    weight = np.array([[1, 1e-4], [0, 0]], "float16")
    after = fold_scale_axis(conv_times(weight, np.full(2, 1e-2, "float16")))
    assert [d.verdict for d in after.decisions()] == ["rewritten"]


def test_unknown_weights_of_float16():
    x, weight = var("x", (1, 2, 1, 1), "float16"), var("w", (2, 2, 1, 1), "float16")
    factor = np.full((2, 1, 1), 2, "float16")
    made = op.multiply(op.nn.conv2d(x, weight), factor, name="scaled")
    after = fold_scale_axis(Module.from_expr(made))
    assert rules(after) == REFUSED
    assert "not known" in after.decisions()[0].reason


def test_a_second_factor_that_overflows_stays():
    module = conv_times(np.full((2, 2), 100, "float16"), np.full(2, 100, "float16"))
    scaled = module.main.body
    module = Module.from_expr(op.multiply(scaled, np.full((2, 1, 1), 10, "float16"), name="more"))
    after = fold_scale_axis(module)
    assert rules(after) == [
        (("scaled",), "rewritten", "factor for each channel"), (("more",), "not folded", "range"),
    ]  # fmt: skip


def test_a_summand_that_overflows_stays():
    made = op.nn.conv2d(var("x", (1, 1, 1, 1), "float16"), np.ones((1, 1, 1, 1), "float16"))
    made = op.add(made, np.full((1, 1, 1), 1000, "float16"))
    made = op.multiply(made, np.full((1, 1, 1), 50, "float16"), name="scaled")
    module = Module.from_expr(op.nn.relu(made))
    # A factor of one extent is none for each channel; two channels make it one.
    assert fold_scale_axis(module) is module
    made = op.nn.conv2d(var("x", (1, 1, 1, 1), "float16"), np.ones((2, 1, 1, 1), "float16"))
    made = op.add(made, np.full((2, 1, 1), 1000, "float16"))
    module = Module.from_expr(op.multiply(made, np.full((2, 1, 1), 50, "float16"), name="scaled"))
    after = fold_scale_axis(module)
    assert rules(after) == REFUSED
    value = np.full((1, 1, 1, 1), -990, "float16")
    assert evaluate(after, value).ravel().tolist() == [500, 500]


def test_weights_that_are_not_finite_are_folded():
    weight = np.array([[np.nan, 1], [np.inf, 1]], "float16")
    after = fold_scale_axis(conv_times(weight, np.full(2, 2, "float16")))
    assert [d.verdict for d in after.decisions()] == ["rewritten"]


@pytest.mark.parametrize("seed", cases_of(range(60)))
def test_what_is_folded_in_float16_is_as_exact_as_its_products(seed):
    draw = np.random.default_rng(seed)
    count = 4

    def numbers(shape, most):
        return (draw.choice([-1, 1], shape) * 2.0 ** draw.uniform(-most, most, shape)).astype(
            "float16"
        )

    weight, factor = numbers((3, count), 10), numbers(3, 10)
    x = numbers((1, count, 1, 1), 4)
    after = fold_scale_axis(conv_times(weight, factor))
    if rules(after) == REFUSED:
        return
    wide = weight.astype(float) * factor.astype(float)[:, None]
    expected = wide @ x.astype(float).ravel()
    found = evaluate(after, x).ravel()
    most = abs(wide).max(axis=1) * float(abs(x).max())
    unit, least = 2.0**-11, 2.0**-24
    bound = 4 * count * (unit * most + least)
    is_small = count * most < 65504 / 2
    assert (abs(found - expected) <= bound)[is_small].all(), (found, expected, bound)
