"""Operators of training become simpler ones, or stay if those cannot compute the same."""

import numpy as np

from dlcompiler.graph import evaluate, op, types_of, var
from dlcompiler.graph.ir import ANY, Module, Tuple
from dlcompiler.graph.passes import simplify_inference
from dlcompiler.graph.passes.pipeline import optimize


def test_the_mask_of_a_dropout_of_an_extent_that_is_not_known():
    made = op.nn.dropout(var("x", (ANY, 3)))
    module = Module.from_expr(Tuple((made[0], made[1])))
    after = optimize(module)
    assert evaluate(after, np.zeros((2, 3), "float32"))[1].tolist() == np.ones((2, 3)).tolist()


def test_the_mask_of_a_dropout_takes_no_memory():
    large = var("x", (2**20, 2**20))
    after = optimize(Module.from_expr(op.nn.dropout(large)[0]))
    assert types_of(after)[after.main.body] == large.type


def test_an_epsilon_that_the_dtype_rounds_to_0():
    one, zero = np.ones(2, "float16"), np.zeros(2, "float16")
    data = var("x", (1, 2), "float16")
    module = Module.from_expr(op.nn.batch_norm(data, one, one, zero, zero, epsilon=1e-8)[0])
    value = np.full((1, 2), 0.001, "float16")
    after = simplify_inference(module)
    assert np.isfinite(evaluate(module, value)).all()
    assert np.array_equal(evaluate(after, value), evaluate(module, value))
