"""Products with the same data become one, where the weights of all are known."""

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.ir import Call, Function, Let, Module, Tuple
from dlcompiler.graph.passes import combine_parallel
from dlcompiler.graph.passes.tools import operator_of

X = var("x", (2, 3))
A, B, C = (var(name, (3, 3)) for name in "abc")
INPUTS = [np.ones((2, 3), "float32"), *(np.full((3, 3), n, "float32") for n in (1, 2, 3))]


def products(*weights):
    return tuple(op.nn.dense(X, weight) for weight in weights)


def of_a_let():
    """The weights of the third product follow from the first product."""
    first, second = products(A, B)
    made = var("made", (3, 3))
    value = op.concatenate([first, op.strided_slice(first, begin=(0,), end=(1,))])
    return Let(made, value, Tuple((first, second, *products(made))))


def of_an_inner_function():
    return Tuple((*products(A, B), Call(Function((C,), products(C)[0]), (A,))))


@pytest.mark.parametrize("made", [of_a_let, of_an_inner_function])
def test_weights_that_are_not_known_where_the_others_are(made):
    module = Module.from_expr(Function((X, A, B), made()))
    after = combine_parallel(module, "nn.dense")
    for value, expected in zip(
        evaluate(after, *INPUTS[:3]), evaluate(module, *INPUTS[:3]), strict=True
    ):
        assert np.array_equal(value, expected)


def test_products_in_an_inner_function_are_one():
    inner = Function((A, B, C), Tuple(products(A, B, C)))
    outer = [var(name, (3, 3)) for name in "uvw"]
    after = combine_parallel(Module.from_expr(Function((X, *outer), Call(inner, tuple(outer)))),
                             "nn.dense")  # fmt: skip
    assert [operator_of(n) for n in after.nodes()].count("nn.dense") == 1
    assert [value[0, 0] for value in evaluate(after, *INPUTS)] == [3, 6, 9]


def test_weights_whose_types_are_inferred():
    weights = [var(name) for name in "abc"]
    made = Tuple(tuple(op.nn.dense(X, weight, units=3) for weight in weights))
    after = combine_parallel(Module.from_expr(Function((X, *weights), made)), "nn.dense")
    assert len(evaluate(after, *INPUTS)) == 3


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("nn.foo", "no operator"),
        ("nn.relu", "calls of this operator cannot be combined"),
        ("nn.conv1d", "calls of this operator cannot be combined"),
        (None, "no operator"),
        (["nn.dense"], "no operator"),
    ],
)
def test_an_operator_whose_calls_cannot_be_combined(operator, wrong):
    module = Module.from_expr(Function((X, A), Tuple(products(A))))
    with pytest.raises(GraphError, match=wrong) as error:
        combine_parallel(module, operator)
    assert "nn.conv2d, nn.dense, nn.batch_matmul" in str(error.value)


@pytest.mark.parametrize("least", [0, -3, 2.5, "3", None, True])
def test_a_least_number_that_is_none(least):
    module = Module.from_expr(Function((X, A), Tuple(products(A))))
    with pytest.raises(GraphError, match="least is no positive integer"):
        combine_parallel(module, "nn.dense", least)


@pytest.mark.parametrize("least", [1, 2])
def test_fewer_calls_are_combined_if_asked(least):
    module = Module.from_expr(Function((X, A, B), Tuple(products(A, B)[:least])))
    after = combine_parallel(module, "nn.dense", least)
    assert [operator_of(n) for n in after.nodes()].count("nn.dense") == 1
    assert [value[0, 0] for value in evaluate(after, *INPUTS[:3])] == [3, 6][:least]


def test_of_many_calls_a_reason_names_the_first_ones():
    weights = [var(f"w{n}", (3, 3)) for n in range(300)]
    module = Module.from_expr(Function((X, *weights), Tuple(products(*weights))))
    after = combine_parallel(module, "nn.dense")
    (reason,) = {decision.reason for decision in after.decisions()}
    assert reason.endswith("dense_7, dense_8 and 292 more read the same data")
    assert [operator_of(n) for n in after.nodes()].count("nn.dense") == 1
