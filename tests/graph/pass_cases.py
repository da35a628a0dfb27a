"""Random graphs before and after passes: they must compute the same, element by element."""

from __future__ import annotations

from functools import partial

import numpy as np

from dlcompiler.graph import evaluate
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.passes import (
    FusionOptions,
    canonicalize_ops,
    combine_parallel,
    convert_layout,
    decompose_ops,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    fold_scale_axis,
    fuse_ops,
    search_layouts,
    simplify_expr,
    simplify_inference,
    sink_reshapes,
    widen_sums,
)
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.graph.passes.tools import operator_of
from tests.graph.random_graphs import RandomGraph, flat, inputs_of
from tests.graph.random_images import RandomImages, image_inputs

LAYOUTS = ("NCHW", "NHWC", "NCHW2c", "NCHW4c")
PASSES = {
    step.__name__: step
    for step in (
        simplify_inference, canonicalize_ops, decompose_ops, sink_reshapes, fold_constants,
        simplify_expr, fold_scale_axis, widen_sums, eliminate_common_subexpressions,
        eliminate_dead_code, combine_parallel, fuse_ops,
    )
} | {
    **{f"fuse_ops, {name}": partial(fuse_ops, options=FusionOptions(**{name: True}))
       for name in ("rows", "recompute", "siblings")},
    "fuse_ops, all": partial(
        fuse_ops, options=FusionOptions(rows=True, recompute=True, siblings=True)
    ),
    "convert_layout": partial(convert_layout, desired_layouts={"nn.conv2d": ["NHWC"]}),
    "search_layouts": partial(search_layouts, layouts=LAYOUTS),
    "all": partial(optimize, opt_level=4),
    "all, in other layouts": lambda module: optimize(search_layouts(module, LAYOUTS), 4),
}  # fmt: skip


def case(seed):
    """Return a random module and its inputs; every third has convolutions."""
    if seed % 3 == 2:
        module = RandomImages(seed, 8).module()
        return module, image_inputs(module, seed)
    module = RandomGraph(seed).module()
    return module, inputs_of(module, seed)


def check(seed, steps=tuple(PASSES)):
    """Compare the values of a random graph before and after passes."""
    module, inputs = case(seed)
    expected = flat(evaluate(module, *inputs))
    kind = types_of(module)[module.main.body]
    for name in steps:
        after = PASSES[name](module)
        if after is module:
            continue
        names = [n.name for n in after.nodes() if operator_of(n)]
        assert len(set(names)) == len(names), f"{name}, seed {seed}: two calls of one name"
        found = flat(evaluate(after, *inputs))
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype, f"{name}, seed {seed}"
            assert np.array_equal(a, b, equal_nan=True), f"{name}, seed {seed}"
        assert types_of(after)[after.main.body] == kind, f"{name}, seed {seed}"
