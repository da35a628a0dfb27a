"""Operators of training become simpler ones, or stay if those cannot compute the same."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.graph import evaluate, op, types_of, var
from dlcompiler.graph.ir import ANY, Module, Tuple
from dlcompiler.graph.passes import simplify_inference
from dlcompiler.graph.passes.pipeline import optimize
from tests.share import cases_of


def test_the_mask_of_a_dropout_of_an_extent_that_is_not_known():
    made = op.nn.dropout(var("x", (ANY, 3)))
    module = Module.from_expr(Tuple((made[0], made[1])))
    after = optimize(module)
    assert evaluate(after, np.zeros((2, 3), "float32"))[1].tolist() == np.ones((2, 3)).tolist()


def test_the_mask_of_a_dropout_takes_no_memory():
    large = var("x", (2**20, 2**20))
    after = optimize(Module.from_expr(op.nn.dropout(large)[0]))
    assert types_of(after)[after.main.body] == large.type


@pytest.mark.parametrize(("dtype", "epsilon"), [("float16", 1e-8), ("float32", 1e-50)])
def test_an_epsilon_that_the_dtype_rounds_to_0(dtype, epsilon):
    one, zero = np.ones(2, dtype), np.zeros(2, dtype)
    data = var("x", (1, 2), dtype)
    module = Module.from_expr(op.nn.batch_norm(data, one, one, zero, zero, epsilon=epsilon)[0])
    value = np.full((1, 2), 0.001, dtype)
    after = simplify_inference(module)
    assert np.isfinite(evaluate(module, value)).all()
    assert np.array_equal(evaluate(after, value), evaluate(module, value))


# -- narrow dtypes ---------------------------------------------------------------------------------


def batch_norm(parameters, dtype="float16", epsilon=1e-5):
    """Return a module with a batch normalisation of two channels."""
    data = var("x", (1, 2), dtype)
    return Module.from_expr(op.nn.batch_norm(data, *parameters, epsilon=epsilon)[0])


def test_a_factor_that_overflows_float16_is_applied_in_float32():
    parameters = [np.full(2, n, "float16") for n in (300, 0, 300, 0)]
    module = batch_norm(parameters)
    value = np.array([[300, 300.25]], "float16")
    after = simplify_inference(module)
    (decision,) = after.decisions()
    assert decision.rule == "fixed statistics, wide"
    assert "may not fit float16" in decision.reason
    assert np.array_equal(evaluate(after, value), evaluate(module, value))
    assert evaluate(after, value).tolist() == [[0, 23712]]


def test_parameters_that_are_not_known_are_applied_in_float32():
    parameters = [var(name, (2,), "float16") for name in ("gamma", "beta", "mean", "variance")]
    module = batch_norm(parameters, epsilon=1e-8)
    inputs = [np.full((1, 2), 300, "float16")]
    inputs += [np.full(2, n, "float16") for n in (300, 1, 300, 0)]
    after = simplify_inference(module)
    assert after.decisions()[0].rule == "fixed statistics, wide"
    assert evaluate(after, *inputs).tolist() == evaluate(module, *inputs).tolist() == [[1, 1]]


def test_constants_are_computed_wide_and_rounded_once():
    parameters = [np.array([a, b], "float16") for a, b in ((1, 2), (0, 1), (3, 4), (5, 1e-3))]
    after = simplify_inference(batch_norm(parameters))
    assert after.decisions()[0].rule == "fixed statistics"
    scale = after.main.body.args[0].args[1].value
    exact = np.array([1, 2]) / np.sqrt(parameters[3].astype(float) + 1e-5)
    assert np.array_equal(scale, exact.astype("float16"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", cases_of(range(60)))
def test_narrow_results_are_as_exact_as_a_product_and_a_sum(seed, dtype):
    draw, kind = np.random.default_rng(seed), dtypes.to_numpy(dtype)
    scales = 2.0 ** draw.uniform(-12, 10, (4, 2))
    gamma, beta, mean, variance = (scales * draw.choice([-1, 0.5, 1], (4, 2))).astype(kind)
    variance = abs(variance)
    value = (mean.astype(float) + draw.uniform(-4, 4, (1, 2))).astype(kind)
    module = batch_norm([gamma, beta, mean, variance], dtype)
    found = evaluate(simplify_inference(module), value).astype(float)
    scale = gamma.astype(float) / np.sqrt(variance.astype(float) + 1e-5)
    parts = abs(value.astype(float) * scale) + abs(mean.astype(float) * scale)
    expected = (value.astype(float) - mean.astype(float)) * scale + beta.astype(float)
    unit, least = (2.0**-11, 2.0**-24) if dtype == "float16" else (2.0**-8, 2.0**-133)
    bound = 8 * unit * (parts + abs(beta.astype(float))) + least
    is_small = abs(expected) < 65504 / 2
    assert (abs(found - expected) <= bound)[is_small].all(), (found, expected, bound)
