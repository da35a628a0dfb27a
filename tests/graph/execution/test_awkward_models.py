"""Models with awkward parameters, results and lifetimes compute what their graphs mean."""

import gc

import numpy as np
import pytest

from dlcompiler.errors import CallError, GraphError, UserError
from dlcompiler.graph import build, constant, evaluate, op, var
from dlcompiler.graph.ir import Function, Module, TensorType, TupleType, Var
from dlcompiler.ir import walk
from dlcompiler.runtime.libraries import save_library
from dlcompiler.schedule.inference.inlining import bodies


def test_parameters_of_one_name_are_passed_by_position():
    a, b = var("x", (3,)), var("x", (3,))
    model = build(Module.from_expr(Function((a, b), op.subtract(a, b))))
    one = np.ones(3, "float32")
    assert model(3 * one, one).tolist() == [2, 2, 2]
    assert model(3 * one, x=one).tolist() == [2, 2, 2]
    with pytest.raises(CallError, match="several parameters have one name"):
        model(x=one)


def test_a_field_and_a_parameter_may_have_one_name():
    kind = var("a", (3,)).type
    pair, single = Var("x", TupleType((kind, kind))), Var("x.0", kind)
    body = op.subtract(op.concatenate(pair, axis=0), op.concatenate([single, single], axis=0))
    model = build(Module.from_expr(Function((pair, single), body)))
    one = np.ones(3, "float32")
    assert model(5 * one, 4 * one, one).tolist() == [4, 4, 4, 3, 3, 3]


def test_a_parameter_may_be_named_self():
    model = build(Module.from_expr(op.negative(var("self", (1,)))))
    assert model(self=[1]).tolist() == [-1]
    assert [*model.values(self=[1])] == ["negative_1"]


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 1.5), ("int8", 300), ("float32", 1e300), ("int32", "2")]
)
def test_lists_with_numbers_that_the_dtype_does_not_hold(dtype, value):
    model = build(Module.from_expr(op.negative(var("x", (1,), dtype))))
    with pytest.raises(CallError, match="does not fit"):
        model([value])


def test_numbers_of_numpy_are_tensors_of_rank_0():
    model = build(Module.from_expr(op.negative(var("x", (), "int8"))))
    assert model(np.int8(3)) == -3
    with pytest.raises(CallError, match="wrong dtype"):
        model(np.int64(3))


def test_values_without_elements_need_no_arena():
    x = var("x", (0, 2))
    parts = op.split(x, indices_or_sections=2, axis=1)
    body = op.concatenate([op.negative(parts[1]), op.negative(parts[0])], axis=1)
    model = build(Module.from_expr(Function((x,), op.nn.softmax(body))))
    assert len(model.steps) > 1
    assert model.plan.bytes == 0
    assert model(np.zeros((0, 2), "float32")).shape == (0, 2)


@pytest.mark.campaign
def test_an_entry_that_outlives_its_model():
    x = var("x", (2, 64))
    weight = np.random.default_rng(0).integers(-2, 3, (64, 64)).astype("float32")
    module = Module.from_expr(op.nn.softmax(op.nn.dense(x, constant(weight))))
    entry = build(module).function
    gc.collect()
    given, out = np.ones((2, 64), "float32"), np.empty((2, 64), "float32")
    entry(given, out)
    np.testing.assert_allclose(out, evaluate(module, given), rtol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_an_array_inside_a_kernel_is_that_of_all_models(target):
    kind = TensorType((2,), "float32")
    inner, x = Var("p", kind), Var("x", kind)
    one = constant(np.ones(2, "f"))
    kernel = Function((inner,), op.add(inner, one), kind, {"Primitive": 1})
    module = Module.from_expr(Function((x,), kernel(x)))
    first = build(module, target)
    (array,) = first.kernels[0].weights
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 100
    assert build(module, target)(np.zeros(2, "f")).tolist() == [1, 1]


def test_a_function_that_is_not_main():
    x, y = var("x", (3,)), var("y", (2,))
    weight = var("w", (2,))
    double = Function((y, weight), op.multiply(y, weight))
    module = Module.from_expr(op.nn.softmax(x), {"double": double})
    model = build(module, params={"w": np.full(2, 2, "float32")}, function="double")
    assert model([1, 4]).tolist() == [2, 8]


@pytest.mark.campaign
def test_a_kernel_whose_result_does_not_depend_on_its_anchor():
    x = var("x", (3, 4), "float32")
    product = op.nn.dense(x, op.ones(shape=(5, 4)))
    model = build(Module.from_expr(op.zeros_like(product)))
    np.testing.assert_array_equal(model(np.ones((3, 4), "float32")), np.zeros((3, 5)))


def test_a_long_chain_is_several_kernels():
    x = var("x", (3,))
    y = x
    for n in range(150):
        y = op.nn.relu(op.subtract(y, constant(np.float32(n % 2))))
    module = Module.from_expr(y)
    model = build(module)
    assert len(model.steps) > 1
    given = np.array([10, 100, 200], "float32")
    np.testing.assert_array_equal(model(given), evaluate(module, given))


def test_what_is_no_module_is_refused():
    with pytest.raises(GraphError, match="not a module"):
        build(op.negative(var("x", (3,))))
    with pytest.raises(GraphError, match="not a mapping"):
        build(Module.from_expr(op.negative(var("x", (3,)))), params=["x"])


def test_the_entry_of_a_model_is_not_saved_as_a_library(tmp_path):
    model = build(Module.from_expr(op.nn.relu(var("x", (4,)))))
    with pytest.raises(UserError, match="entry of a model"):
        save_library(model.function, tmp_path / "model.so")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "step",
    [
        lambda y: op.add(y, y),
        lambda y: op.multiply(y, y),
        lambda y: op.multiply(y, op.sigmoid(y)),
        lambda y: op.add(y, op.nn.relu(y)),
        lambda y: op.multiply(op.add(y, op.reverse(y, axis=1)), constant(np.float32(0.5))),
    ],
    ids=["add", "multiply", "swish", "residual", "reverse"],
)
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_a_chain_whose_steps_read_the_last_one_twice_does_not_double(step, target):
    x = var("x", (2, 16))
    y = x
    for _ in range(40):
        y = step(y)
    module = Module.from_expr(y)
    model = build(module, target)
    for kernel in model.kernels:
        parts = [body for each in bodies(kernel.schedule.state).values() for body in each]
        assert sum(1 for body in parts for _ in walk(body)) <= 40 * 200
    given = np.random.default_rng(0).uniform(-1, 1, (2, 16)).astype("float32")
    np.testing.assert_allclose(model(given), evaluate(module, given), rtol=1e-4)
