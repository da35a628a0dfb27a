"""Factors for each channel become part of weights."""

import numpy as np

from dlcompiler.graph import op, var
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
