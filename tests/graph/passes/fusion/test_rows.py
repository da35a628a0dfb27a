"""Reductions that are fused with what needs their results for the same row."""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Module, Tuple
from dlcompiler.graph.passes import FusionOptions, PassContext, fuse_ops
from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.passes.fusion.test_relay_cases import kernels
from tests.graph.random_graphs import flat, inputs_of

ROWS = FusionOptions(rows=True)


def softmax(x, axis=-1):
    shifted = op.subtract(x, op.max(x, axis=axis, keepdims=True, name="m"), name="s")
    powers = op.exp(shifted, name="e")
    return op.divide(powers, op.sum(powers, axis=axis, keepdims=True, name="t"), name="d")


def layer_norm(x, width=6):
    centred = op.subtract(x, op.mean(x, axis=-1, keepdims=True))
    variance = op.mean(op.multiply(centred, centred), axis=-1, keepdims=True)
    scaled = op.multiply(centred, op.rsqrt(op.add(variance, 1e-5)))
    return op.add(op.multiply(scaled, var("gamma", (width,))), var("beta", (width,)))


def fused(expr, options=ROWS, **more):
    """Fuse a graph, check that it computes the same, and return it."""
    module = Module.from_expr(expr)
    after = fuse_ops(module, options=options, **more)
    inputs = inputs_of(module, 0)
    for a, b in zip(flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs)), strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    return after


def rule_of(module, a, b):
    (found,) = [d for d in module.decisions(about=a) if d.subject == (a, b)]
    return found.rule


X = var("x", (4, 6))


def test_softmax_is_one_kernel():
    classic = fused(softmax(X), FusionOptions())
    assert kernels(classic) == [["max"], ["subtract", "exp"], ["sum"], ["divide"]]
    after = fused(softmax(X))
    assert kernels(after) == [["max", "subtract", "exp", "sum", "divide"]]
    assert rule_of(after, "m", "s") == rule_of(after, "t", "d") == "same row"
    assert rule_of(after, "s", "e") == "same loops"


@pytest.mark.parametrize(
    "expr",
    [
        layer_norm(X),
        layer_norm(op.nn.relu(X)),
        softmax(var("y", (2, 3, 5, 4)), axis=(2, 3)),
        op.exp(op.sum(X, axis=1)),
        op.divide(X, op.expand_dims(op.sum(X, axis=1), axis=1)),
        op.divide(X, op.sum(X)),
        op.variance(X, op.mean(X, axis=1, keepdims=True), axis=1),
        op.add(op.max(X, axis=1), op.min(X, axis=1)),
    ],
    ids=lambda expr: expr.op.name,
)
def test_one_loop_over_rows_is_one_kernel(expr):
    assert len(kernels(fused(expr))) == 1


SQUARE = var("q", (4, 4))


@pytest.mark.parametrize(
    "expr",
    [
        # Broadcasting repeats the sums of all rows in each row.
        op.add(SQUARE, op.sum(SQUARE, axis=1, name="a"), name="b"),
        # The first dimension is no row.
        op.add(X, op.sum(X, axis=0, keepdims=True, name="a"), name="b"),
        # Rows of 6, then of 4.
        op.sum(op.sum(X, axis=1, name="a"), axis=0, name="b"),
        # Rows of 3; the kernel of the consumer has rows of 4.
        op.sum(op.add(SQUARE, op.sum(var("p", (4, 4, 3)), axis=2, name="a"), name="b"), axis=1),
        # Other elements than one for each row.
        op.transpose(op.sum(X, axis=1, keepdims=True, name="a"), name="b"),
    ],
    ids=range(5),
)
def test_what_needs_other_rows_stays_apart(expr):
    assert rule_of(fused(expr), "a", "b") == "other rows"


def test_a_result_in_between_is_stored():
    total = op.sum(X, axis=1, keepdims=True, name="a")
    after = fused(Tuple((total, op.divide(X, total, name="b"))))
    assert kernels(after) == [["sum"], ["divide"]]
    assert rule_of(after, "a", "b") == "result"


def test_convolutions_and_softmax_are_loop_nests_of_their_own():
    product = op.nn.dense(X, var("w", (5, 6)))
    assert kernels(fused(op.exp(op.sum(product, axis=1)))) == [["dense"], ["sum", "exp"]]
    assert kernels(fused(op.sum(op.nn.softmax(X), axis=1))) == [["softmax"], ["sum"]]


def test_a_row_that_does_not_stay_in_the_cache():
    # x and the powers are used again after a reduction: 2 times 6 times 4 bytes.
    assert len(kernels(fused(softmax(X), FusionOptions(rows=True, max_row_bytes=48)))) == 1
    after = fused(softmax(X), FusionOptions(rows=True, max_row_bytes=47))
    assert kernels(after) == [["max", "subtract", "exp"], ["sum", "divide"]]
    assert rule_of(after, "e", "t") == rule_of(after, "e", "d") == "cache"


def test_the_limit_of_nodes_and_wishes_hold():
    assert max(map(len, kernels(fused(softmax(X), max_depth=3)))) == 3
    module = graph.keep_apart(Module.from_expr(softmax(X)), "m", "d")
    apart = fuse_ops(module, options=ROWS)
    assert kernels(apart) == [["max", "subtract", "exp"], ["sum", "divide"]]
    forced = fuse_ops(graph.fuse(Module.from_expr(softmax(X)), "m", "s"), options=ROWS)
    assert len(kernels(forced)) == 1


def test_memory_is_planned_for_rows():
    after = fused(Tuple((layer_norm(X), softmax(X))))
    assert graph.plan_memory(after).bytes <= graph.plan_memory(fuse_ops(after)).naive


def test_a_context_configures_a_pass():
    module = Module.from_expr(softmax(X))
    context = PassContext(3, config={"fuse_ops": {"options": ROWS}})
    assert len(kernels(optimize(module, context=context))) == 1
    assert len(kernels(optimize(module))) == 4
    with pytest.raises(GraphError, match=r"a pass that is not there\n  got +fuse\n"):
        optimize(module, context=PassContext(config={"fuse": {}}))
