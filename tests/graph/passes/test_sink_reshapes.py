"""What follows a change of shape stands before it, if the operands have the elements for it."""

import numpy as np
import pytest

from dlcompiler.graph import build, evaluate, op, var
from dlcompiler.graph.ir import Constant, Module
from dlcompiler.graph.passes import sink_reshapes
from dlcompiler.graph.passes.tools import operator_of

X = var("x", (6, 4), "float32")
W = Constant(np.arange(32, dtype="float32").reshape(8, 4))


def reshaped(shape):
    return op.reshape(op.nn.dense(X, W), newshape=shape)


def sunk(body):
    """Return the outermost operator after the pass, whose values are compared."""
    module = Module.from_expr(body)
    after = sink_reshapes(module)
    x = np.arange(24, dtype="float32").reshape(6, 4)
    np.testing.assert_array_equal(evaluate(module, x), evaluate(after, x))
    np.testing.assert_allclose(build(module)(x), evaluate(module, x), rtol=1e-6)
    return operator_of(after.main.body)


@pytest.mark.parametrize(
    ("shape", "other", "name"),
    [
        ((2, 3, 8), (8,), "reshape"),
        ((2, 3, 8), (1, 1, 8), "reshape"),
        ((2, 3, 8), (2, 3, 8), "reshape"),
        ((2, 3, 8), (2, 3, 1), "reshape"),
        ((2, 3, 8), (), "reshape"),
        ((2, 3, 8), (3, 8), "add"),  # it is repeated along a part of the rows
        ((2, 3, 8), (4, 2, 3, 8), "add"),  # the result has other elements
        ((12, 4), (4,), "add"),
        ((6, 1, 8, 1), (8, 1), "reshape"),
        ((6, 1, 8, 1), (6, 1, 8, 1), "reshape"),
    ],
)
def test_sums(shape, other, name):
    b = Constant(np.arange(np.prod(other), dtype="float32").reshape(other))
    assert sunk(op.add(reshaped(shape), b)) == name
    assert sunk(op.nn.relu(op.add(b, reshaped(shape)))) == (
        "reshape" if name != "add" else "nn.relu"
    )


def test_a_sum_of_two_changed_shapes():
    assert sunk(op.add(reshaped((2, 24)), reshaped((2, 24)))) == "reshape"


def test_without_a_nest_nothing_moves():
    module = Module.from_expr(op.nn.relu(op.reshape(X, newshape=(24,))))
    assert sink_reshapes(module) is module


def test_what_is_moved_is_fused():
    body = op.nn.relu(op.add(reshaped((2, 3, 8)), Constant(np.ones(8, "float32"))))
    names = {kernel.name for kernel in build(Module.from_expr(body)).kernels}
    assert "fused_dense_add_relu" in names
