"""The interpreter: what graphs mean."""

import numpy as np
import pytest

from dlcompiler.errors import CallError, GraphError
from dlcompiler.graph import evaluate, op, optimize, var
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.interpreter import type_of_value
from dlcompiler.graph.ir import (
    ANY,
    Call,
    Function,
    GlobalVar,
    If,
    Let,
    Module,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    as_expr,
)
from tests.graph.random_graphs import RandomGraph, inputs_of
from tests.share import share_of

F3 = TensorType((3,))
INT = TensorType((), "int32")


def test_dataflow():
    x = Var("x", F3)
    total = op.add(op.multiply(x, 2.0), x)
    assert evaluate(total, [1, 2, 3]).tolist() == [3, 6, 9]
    assert evaluate(Tuple((x, total)), x=[1, 0, 0])[1].tolist() == [3, 0, 0]


def test_only_the_chosen_branch_runs():
    loop = GlobalVar("loop")
    n = Var("n", INT)
    forever = Function((n,), Call(loop, (n,)), INT)
    chosen = If(as_expr(True), as_expr(1), Call(loop, (as_expr(0),)))
    assert evaluate(Module.from_expr(chosen, {"loop": forever})) == 1


def test_recursion_is_deeper_than_pythons_stack():
    loop, n = GlobalVar("loop"), Var("n", INT)
    body = If(n < 5000, Call(loop, (n + 1,)), n)
    assert (
        evaluate(Module.from_expr(Call(loop, (as_expr(0),)), {"loop": Function((n,), body, INT)}))
        == 5000
    )


def test_a_recursion_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("dlcompiler.graph.interpreter.MAX_CALLS", 100)
    loop, n = GlobalVar("loop"), Var("n", INT)
    endless = Function((n,), Call(loop, (n,)), INT)
    with pytest.raises(GraphError, match="more than 100 calls"):
        evaluate(Module.from_expr(Call(loop, (as_expr(0),)), {"loop": endless}))


def test_closures_keep_the_values_around_them():
    x, a, f, g = Var("x", F3), Var("a", F3), Var("f"), Var("g")
    add_x = Function((a,), op.add(a, x))
    twice = Function((a,), Call(f, (Call(f, (a,)),)))
    value = Let(f, add_x, Let(g, twice, Call(g, (x,))))
    assert evaluate(value, [1, 2, 3]).tolist() == [3, 6, 9]


def test_a_let_hides_an_outer_variable_of_the_same_name():
    x, y, z = Var("x", F3), Var("v"), Var("v")
    value = Let(y, op.add(x, 1.0), Let(z, op.multiply(y, 2.0), op.add(y, z)))
    assert evaluate(value, [0, 1, 2]).tolist() == [3, 6, 9]


@pytest.mark.campaign
def test_a_long_chain():
    value = Var("x", F3)
    for _ in range(20_000):
        value = op.add(value, 1.0)
    assert evaluate(value, [0, 1, 2]).tolist() == [20000, 20001, 20002]


def test_tuples_are_arguments_and_results():
    pair = Var("pair", TupleType((F3, INT)))
    value = Tuple((TupleGetItem(pair, 1), Tuple((TupleGetItem(pair, 0),))))
    number, (array,) = evaluate(value, (np.ones(3, "float32"), np.int32(4)))
    assert number == 4
    assert array.tolist() == [1, 1, 1]


def test_unknown_extents_are_found_in_a_run():
    x = Var("x", TensorType((ANY, 2)))
    assert evaluate(op.reshape(x, newshape=[-1]), np.ones((4, 2), "float32")).shape == (8,)


def test_values_have_their_types():
    for seed in range(share_of(400, at_least=40)):
        module = RandomGraph(seed).module()
        value = evaluate(module, *inputs_of(module, seed))
        assert type_of_value(value) == types_of(module)[module.main.body], f"seed {seed}"


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((), {}, "0 by position"),
        (([1, 2, 3], 1), {}, "2 by position"),
        (([1, 2],), {}, r"float32\[2\]"),
        ((np.ones(3),), {}, "float64"),
        ((), {"y": [1, 2, 3]}, "y by name"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, named, words):
    with pytest.raises(CallError, match=words):
        evaluate(op.copy(Var("x", F3)), *args, **named)


def test_a_function_is_no_result():
    x = Var("x", F3)
    with pytest.raises(GraphError, match="the result is a function"):
        evaluate(Function((), Function((x,), x)))


ONE, THREE = np.ones(2, "float32"), np.ones(3, "float32")
OPEN, KNOWN = var("y", (ANY,)), var("z", (2,))


def to_two(value):
    return op.reshape(value, newshape=(2,))


@pytest.mark.parametrize(
    "body",
    [
        Let(KNOWN, OPEN, to_two(KNOWN)),
        Call(Function((KNOWN,), to_two(KNOWN)), (OPEN,)),
        Function((KNOWN,), KNOWN)(OPEN),
    ],
)
def test_a_run_checks_extents_that_types_take_as_equal(body):
    module = Module.from_expr(Function((OPEN,), body))
    assert evaluate(module, ONE).tolist() == [1, 1]
    for each in (module, optimize(module, 4)):
        with pytest.raises(GraphError, match="not of its type"):
            evaluate(each, THREE)


def test_a_branch_decides_an_extent():
    chosen = If(var("c", (), "bool"), KNOWN, OPEN)
    module = Module.from_expr(chosen)
    assert types_of(module)[module.main.body] == OPEN.type
    assert evaluate(module, c=np.array(False), z=ONE, y=THREE).shape == (3,)
    after = optimize(Module.from_expr(to_two(chosen)), 4)
    with pytest.raises(GraphError, match="3 and 2 elements"):
        evaluate(after, c=np.array(False), z=ONE, y=THREE)


@pytest.mark.parametrize(
    "body",
    [
        Let(KNOWN, op.exp(OPEN), Let(KNOWN, op.sqrt(OPEN), KNOWN)),
        op.add(Let(KNOWN, op.exp(OPEN), KNOWN), Let(KNOWN, op.sqrt(OPEN), KNOWN)),
        Function((OPEN,), OPEN)(OPEN),
        Function((KNOWN, KNOWN), KNOWN)(OPEN, OPEN),
    ],
)
def test_a_variable_is_bound_once(body):
    with pytest.raises(GraphError, match="bound twice"):
        Module.from_expr(Function((OPEN,), body))


def test_functions_beside_each_other_may_have_the_same_parameter():
    both = op.add(*(Function((KNOWN,), make(KNOWN))(OPEN) for make in (op.exp, op.sqrt)))
    assert evaluate(both, np.zeros(2, "float32")).tolist() == [1, 1]
