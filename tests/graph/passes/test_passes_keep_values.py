"""Random graphs compute the same before and after each pass."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.passes import (
    canonicalize_ops,
    combine_parallel,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    fold_scale_axis,
    fuse_ops,
    simplify_expr,
    simplify_inference,
)
from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.random_graphs import RandomGraph, flat, inputs_of
from tests.share import share_of

PASSES = (
    simplify_inference, canonicalize_ops, fold_constants, simplify_expr, fold_scale_axis,
    eliminate_common_subexpressions, eliminate_dead_code, combine_parallel, fuse_ops,
    lambda module: optimize(module, 4),
)  # fmt: skip


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.__name__.strip("<>"))
def test_a_pass_keeps_the_values(step):
    for seed in range(share_of(200, at_least=20)):
        module = RandomGraph(seed).module()
        inputs = inputs_of(module, seed)
        after = step(module)
        expected, found = flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs))
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype, f"seed {seed}"
            assert np.array_equal(a, b, equal_nan=True), f"seed {seed}"
        assert types_of(after)[after.main.body] == types_of(module)[module.main.body]


def test_a_pass_that_changes_nothing_returns_its_input():
    for seed in range(share_of(60, at_least=10)):
        module = optimize(RandomGraph(seed).module(), 4)
        for step in PASSES[:-2]:
            once = step(module)
            assert step(once) is once, f"{step.__name__}, seed {seed}"
