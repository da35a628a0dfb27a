"""Calls become simpler ones with the same value."""

import numpy as np
import pytest

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import simplify_expr


@pytest.mark.parametrize(("value", "first", "second"), [(1, 1e8, -1e8), (-3e38, 3e38, 3e38)])
def test_sums_of_floats_keep_their_order(value, first, second):
    inner = op.add(var("x", (1,)), np.array([first], "float32"))
    module = Module.from_expr(op.add(inner, np.array([second], "float32")))
    inputs = np.array([value], "float32")
    assert evaluate(simplify_expr(module), inputs) == evaluate(module, inputs)


def test_constants_of_sums_of_integers_are_one():
    inner = op.add(var("x", (1,), "int8"), np.array([100], "int8"))
    after = simplify_expr(Module.from_expr(op.add(inner, np.array([100], "int8"))))
    assert evaluate(after, np.array([100], "int8")).tolist() == [44]
    assert any(".constants" in name for name in after.calls())
