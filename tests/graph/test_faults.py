"""Graphs that are wrong, long, large or odd: a clear error, or the right result."""

import subprocess
import sys

import numpy as np
import pytest

from dlcompiler.errors import CallError, GraphError
from dlcompiler.graph import (
    evaluate,
    from_json,
    infer_types,
    module_text,
    modules_equal,
    op,
    parse,
    plan_memory,
    to_json,
    types_of,
    var,
)
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Function,
    Let,
    Module,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
)
from dlcompiler.graph.ir import op as operator
from dlcompiler.graph.passes import fuse_ops
from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.pass_cases import PASSES

X = var("x", (2, 3))


def test_a_cycle_cannot_be_written():
    for text in ("%0 = add(%0, 1f);\n%0", "%0 = add(%1, 1f);\n%1 = exp(%0);\n%1"):
        with pytest.raises(GraphError, match="no value %"):
            parse(text)


def test_a_value_that_needs_itself_is_refused():
    v = Var("v", X.type)
    with pytest.raises(GraphError, match="has no value"):
        evaluate(Function((), Let(v, op.exp(Var("w", X.type)), v)), function="main")


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (Call(operator("add"), (X,)), "the number of arguments is wrong"),
        (Call(operator("exp"), (X, X)), "the number of arguments is wrong"),
        (Call(Function((X,), X), ()), "the number of arguments is wrong"),
        (Call(operator("add"), (X, var("y", (4, 3)))), r"add.*\n.*\(2, 3\).*\(4, 3\)"),
        (Call(operator("add"), (X, var("y", (2, 3), "int8"))), "dtype"),
        (Call(operator("ad"), (X, X)), "'ad'|no .*ad"),
        (Call(operator("exp"), (X,), {"axes": 1}), "no attribute axes"),
        (Call(X, (X,)), "call of x"),
        (Call(operator("exp"), (Tuple((X, X)),)), "not a tensor"),
        (Tuple((X, X))[0] + Var("z"), "z"),
    ],
)  # fmt: skip
def test_types_that_do_not_fit(expr, words):
    with pytest.raises(GraphError, match=words):
        infer_types(Module.from_expr(expr))


def test_a_missing_parameter_is_named():
    with pytest.raises(CallError, match="y"):
        evaluate(op.add(X, var("y", (2, 3))), np.zeros((2, 3), "float32"))


@pytest.mark.parametrize("name", ["a b", "%0", '"', "\n", "</script>", "*/", "ü", "", "meta", "fn"])
def test_hostile_names(name):
    x = Var(name, X.type)
    module = Module({"main": Function((x,), op.exp(x, name=name)), name: Function((x,), x)})
    again = parse(module_text(module, notes={module.main.body: name}))
    assert modules_equal(again, module)
    assert modules_equal(from_json(to_json(module)), module)
    after = optimize(module, 4)
    value = np.ones((2, 3), "float32")
    assert np.array_equal(evaluate(after, value), evaluate(module, value))
    repr(module)


def test_not_a_number_in_weights():
    weights = np.array([[np.nan, 1.0, -0.0], [np.inf, 0.0, -np.inf]], "float32")
    total = op.add(op.multiply(X, weights), op.multiply(op.zeros_like(X), weights))
    module = Module.from_expr(op.nn.relu(op.add(total, 0.0)))
    (value,) = inputs = [np.ones((2, 3), "float32")]
    expected = evaluate(module, value)
    assert np.isnan(expected).any()
    for name, step in PASSES.items():
        assert np.array_equal(evaluate(step(module), *inputs), expected, equal_nan=True), name


def test_a_value_that_does_not_fit_the_memory():
    with pytest.raises(GraphError, match="does not fit the memory"):
        evaluate(op.tile(X, reps=(2**50, 1)), np.zeros((2, 3), "float32"))


def test_an_empty_tensor_has_no_billions_of_sections():
    with pytest.raises(GraphError, match="too many sections"):
        infer_types(Module.from_expr(op.split(var("x", (0,)), 2**40)[0]))


@pytest.mark.parametrize("has_lets", [False, True])
def test_tuples_that_are_nested_deeply_are_refused(has_lets):
    value, lets = X, []
    for n in range(3000):
        value = Tuple((value,))
        if has_lets:
            lets.append((Var(f"v{n}"), value))
            value = lets[-1][0]
    for name, bound in reversed(lets):
        value = Let(name, bound, value)
    with pytest.raises(GraphError, match="nested more than 100 deep"):
        infer_types(Module.from_expr(value))


def test_a_chain_of_tuples_is_not_deep():
    value = X
    for _ in range(3000):
        value = TupleGetItem(Tuple((op.exp(value), X)), 0)
    assert types_of(module := Module.from_expr(value))[module.main.body] == X.type


LENGTH = 100_000


@pytest.fixture(scope="module")
def chain():
    """A module with many calls, one after another."""
    value = X
    for _ in range(LENGTH):
        value = op.nn.relu(value)
    return Module.from_expr(value)


@pytest.mark.campaign
def test_the_text_of_a_chain_of_many_calls(chain):
    assert modules_equal(parse(module_text(chain)), chain)


@pytest.mark.campaign
def test_a_chain_of_many_calls(chain):
    module = chain
    assert types_of(module)[module.main.body] == X.type
    assert module.structural_hash()
    fused = fuse_ops(module)
    assert len(fused.decisions()) == LENGTH - 1


@pytest.mark.campaign
def test_a_chain_of_many_calls_is_evaluated():
    value = Var("x", TensorType((3,)))
    for _ in range(LENGTH):
        value = op.add(value, 1.0)
    assert evaluate(value, [0, 1, 2]).tolist() == [LENGTH, LENGTH + 1, LENGTH + 2]


def test_large_constants_are_not_copied():
    # Anonymous pages that are never touched: 2 GiB of zeros take no memory unless they are copied.
    code = """
import mmap, resource
import numpy as np
from dlcompiler.graph import Module, module_text, op, types_of, var
from dlcompiler.graph.ir import Constant
from dlcompiler.graph.passes import fold_scale_axis, fuse_ops, simplify_expr
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pages = np.frombuffer(mmap.mmap(-1, 2**31), "float32").reshape(2**15, 2**14)
pages.flags.writeable = False
weight = Constant(pages)
assert np.shares_memory(weight.value, pages)
module = Module.from_expr(op.nn.relu(op.nn.dense(var("x", (1, 2**14)), weight)))
assert types_of(module)[module.main.body].shape == (1, 2**15)
after = fuse_ops(fold_scale_axis(module))
(kept,) = [n for n in after.nodes() if isinstance(n, Constant)]
assert np.shares_memory(kept.value, pages)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert after - before < 200_000, f"{after - before} KiB more"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_constant_cannot_be_changed():
    array = np.ones(3, "float32")
    kept = Constant(array)
    array[0] = 5
    assert kept.value[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept.value[0] = 2


@pytest.mark.parametrize("use", [optimize, plan_memory, infer_types])
@pytest.mark.parametrize("given", [X + 1.0, None, "text"], ids=["call", "none", "text"])
def test_what_is_no_module_is_refused(use, given):
    with pytest.raises(GraphError, match="not a module"):
        use(given)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(GraphError, match="the name is no text"):
        Var(3)
