"""Epilogues and activations: their te expressions against their references."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.activations import ACTIVATIONS
from dlcompiler.ops.epilogues import Epilogue, folded_batch_norm

SHAPE = (2, 3, 5)
STEPS = ("", "bias", "bias+relu", "batch_norm+residual+relu6", "residual", *ACTIVATIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", STEPS)
def test_the_expression_is_within_the_bound_of_the_reference(text, dtype):
    epilogue = Epilogue.read(text, channel=1)
    generator = np.random.default_rng(3)
    sums = te.placeholder(SHAPE, dtype, "sums")
    operands = epilogue.placeholders(SHAPE, dtype)
    out = te.compute(SHAPE, lambda *i: epilogue.element(sums[i], i, operands), name="out")
    values = generator.uniform(-4, 4, SHAPE).astype(dtype)
    arrays = epilogue.inputs(SHAPE, dtype, generator)
    result = te.evaluate(out, {sums: values, **{operands[n]: a for n, a in arrays.items()}})
    exact = values.astype(np.float64)
    expected, bound = epilogue.reference(exact, np.zeros(SHAPE), arrays, dtype)
    assert (np.abs(result - expected) <= bound).all()
    assert bound.max() < 1e-4


def test_unknown_and_repeated_steps_are_refused():
    with pytest.raises(TuningError, match="no such step of an epilogue"):
        Epilogue.read("bias+rely", channel=1)
    with pytest.raises(TuningError, match="stands twice"):
        Epilogue.read("bias+bias", channel=1)


def test_a_folded_batch_norm_is_the_batch_norm():
    gamma, beta, mean, x = np.random.default_rng(1).normal(size=(4, 6))
    variance = np.linspace(0.5, 2, 6)
    scale, shift = folded_batch_norm(gamma, beta, mean, variance)
    expected = (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    np.testing.assert_allclose(x * scale + shift, expected, rtol=1e-12, atol=1e-12)
