"""Lets without a use are removed."""

import itertools

import numpy as np

from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Call, Function, Let, Module, Var
from dlcompiler.graph.passes import eliminate_dead_code

X = var("x", (2,))


def test_a_long_chain_of_lets_without_a_use():
    """Each let uses the one before; removing one at a time took minutes."""
    names = [Var(f"v{n}", X.type) for n in range(3000)]
    body = op.negative(names[0])
    for before, name in reversed(list(itertools.pairwise(names))):
        body = Let(name, op.exp(before), body)
    module = Module.from_expr(Function((X,), Let(names[0], op.exp(X), body)))
    after = eliminate_dead_code(module)
    assert len(after.calls()) == 2
    value = np.zeros(2, "float32")
    assert evaluate(after, value).tolist() == [-1, -1]


def test_a_function_that_only_calls_itself():
    f, y = Var("f"), var("y", (2,))
    body = Let(f, Function((y,), Call(f, (y,)), y.type), op.exp(X))
    after = eliminate_dead_code(Module.from_expr(Function((X,), body)))
    assert not any(isinstance(node, Let) for node in after.nodes())
