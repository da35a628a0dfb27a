"""Models of the builders, compiled: their results, their memory, their kernels."""

import gc
import weakref

import numpy as np
import pytest

from dlcompiler.autotune import RecordStore
from dlcompiler.autotune.records.record import Record, target_key
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import GraphError
from dlcompiler.graph import build, builders, constant, evaluate, op, tasks, var
from dlcompiler.graph.execution.entry import KernelFacts, entry_of
from dlcompiler.graph.execution.preparation import prepared
from dlcompiler.graph.execution.steps import steps_of
from dlcompiler.graph.ir import Constant, Function, Module, Tuple, TupleType, Var
from dlcompiler.graph.passes.base import PassContext
from dlcompiler.ops import operator
from dlcompiler.runtime.native import HOLDING
from dlcompiler.target import resolve
from tests.graph.passes.fusion.test_kernel_counts import MODELS
from tests.graph.random_graphs import flat

FIRST = ("dqn", "lenet", "lstm", "mlp")


def arrays_for(model):
    """Return random inputs of a model."""
    numbers = np.random.default_rng(0)
    return [
        numbers.integers(0, 9, p.shape).astype(p.dtype)
        if p.dtype.startswith("int")
        else numbers.uniform(-1, 1, p.shape).astype(p.dtype)
        for p in model.params
        if not p.is_output
    ]


@pytest.mark.parametrize(
    "name", [n if n in FIRST else pytest.param(n, marks=pytest.mark.campaign) for n in MODELS]
)
def test_a_model_computes_what_its_graph_means(name):
    given = MODELS[name]()
    model = build(given.module, params=given.params)
    inputs = arrays_for(model)
    for a, b in zip(flat(model(*inputs)), flat(evaluate(given.bound, *inputs)), strict=True):
        # Sums in another order, and convolutions by minimal filtering.
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(np.abs(b).max(), 1e-3))
    assert model.plan.bytes <= model.plan.classic


def test_a_model_for_one_thread_has_no_parallel_loops():
    a, b = (var(name, (256, 256)) for name in "ab")
    module = Module.from_expr(op.nn.matmul(a, b))
    for threads, is_parallel in ((1, False), (4, True)):
        (kernel,) = build(module, threads=threads).kernels
        assert kernel.built.uses_threads == is_parallel


@pytest.mark.parametrize("threads", [0, True, "2", 1.0])
def test_a_number_of_threads_is_checked(threads):
    with pytest.raises(GraphError, match="not a number of threads"):
        build(Module.from_expr(op.exp(var("x", (2,)))), threads=threads)


@pytest.mark.parametrize("is_tuple", [False, True])
def test_the_arrays_of_a_call_go_with_their_last_name(is_tuple):
    """Arrays that wait for the collector of cycles cost new pages for each call."""
    x = var("x", (4,), "float32")
    body = Tuple((op.exp(x), op.sqrt(x))) if is_tuple else op.exp(x)
    model = build(Module.from_expr(body))
    gc.disable()
    try:
        found = flat(model(np.ones(4, "float32")))
        arrays = [weakref.ref(array) for array in found]
        del found
        assert [array() for array in arrays] == [None] * len(arrays)
    finally:
        gc.enable()


def test_steps_of_a_recurrence_share_their_weights():
    given = builders.lstm(steps=3)
    names = [param.name for param in given.module.main.params]
    assert len(names) == len(set(names))


def test_a_convolution_and_what_follows_is_one_kernel_with_packed_weights():
    given = builders.resnet(18, image=32)
    model = build(given.module, "x86-64-avx2", params=given.params)
    assert len(model.steps) == 24
    packed = [kernel.name for kernel in model.kernels if kernel.packings]
    assert "fused_conv2d_add_add_relu" in packed
    assert "fused_dense_add" in packed
    assert {kernel.operator for kernel in model.kernels} == {
        "dense", "pool2d", "conv2d_direct", "conv2d_gemm", "reduction", "softmax",
    }  # fmt: skip


def test_kernels_that_pack_a_weight_in_one_way_share_it():
    given = builders.lstm(steps=3, width=32, vocabulary=40)
    model = build(given.module, params=given.params)
    gates_bytes = 4 * (4 * 32) * 32
    large = [array.tobytes() for array in model._steps.weights if array.nbytes == gates_bytes]
    assert len(large) == 4
    assert len(set(large)) == 4
    reading = [
        {step.kernel for step in model.steps for at in step.places
         if (at.kind, at.bytes, at.number) == ("weight", gates_bytes, number)}
        for number in range(len(model._steps.weights))
    ]  # fmt: skip
    assert max(map(len, reading)) > 1


def test_equal_kernels_are_built_once():
    x = var("x", (4, 8))
    y = op.nn.softmax(op.nn.softmax(op.nn.softmax(x)))
    model = build(Module.from_expr(y))
    assert (len(model.steps), len(model.kernels)) == (3, 1)


def test_a_build_tells_how_far_it_is():
    told = []
    x = var("x", (4, 8))
    module = Module.from_expr(op.nn.softmax(op.sum(op.nn.softmax(x), axis=1, keepdims=True)))
    model = build(module, progress=lambda done, total: told.append((done, total)))
    total = len(model.kernels)
    assert told == [(done, total) for done in range(total + 1)]


def test_results_are_new_arrays_in_the_form_of_the_graph():
    x = var("x", (2, 3))
    y = op.add(x, x)
    body = Tuple((y, Tuple((x, y)), Constant(np.float32(7))))
    model = build(Module.from_expr(Function((x,), body)))
    given = np.arange(6, dtype="float32").reshape(2, 3)
    a, (b, c), d = model(given)
    for found, expected in ((a, 2 * given), (b, given), (c, 2 * given), (d, np.float32(7))):
        np.testing.assert_array_equal(found, expected)
    assert d.shape == ()
    assert not np.shares_memory(b, given)
    assert not np.shares_memory(a, c)


def test_a_parameter_that_is_a_tuple_is_one_array_for_each_field():
    kind = var("a", (3,)).type
    pair = Var("p", TupleType((kind, kind)))
    model = build(Module.from_expr(Function((pair,), op.concatenate(pair, axis=0))))
    assert [p.name for p in model.params] == ["p.0", "p.1", "out0"]
    one = np.ones(3, "float32")
    assert model(one, 2 * one).tolist() == [1, 1, 1, 2, 2, 2]
    assert model(**{"p.1": one, "p.0": one}).tolist() == [1] * 6


def test_parts_of_a_concatenation_lie_in_its_result_and_are_not_copied():
    x = var("x", (1, 16))
    parts = [op.nn.softmax(x), op.nn.log_softmax(x)]
    y = op.nn.softmax(op.concatenate(parts, axis=1))
    model = build(Module.from_expr(y))
    assert [step.name for step in model.steps] == ["softmax_1", "log_softmax_1", "softmax_2"]
    given = np.linspace(-1, 1, 16, dtype="float32").reshape(1, 16)
    expected = evaluate(Module.from_expr(y), given)
    np.testing.assert_allclose(model(given), expected, rtol=1e-5)


def test_values_between_kernels_and_their_times():
    x = var("x", (1, 16))
    y = op.nn.softmax(op.nn.softmax(x, name="first"), name="second")
    model = build(Module.from_expr(y))
    given = np.zeros((1, 16), "float32")
    values = model.values(given)
    assert [*values] == ["first", "second"]
    assert values["first"].tolist() == [[1 / 16] * 16]
    times = model.profile(given, repeats=3)
    assert [time.name for time in times] == ["first", "second"]
    assert all(0 < time.seconds < 1 for time in times)


def test_records_of_a_task_decide_the_schedule_of_its_kernel(tmp_path):
    given = builders.mlp()
    first = tasks(given.module, params=given.params)[0]
    assert (first.workload.op, first.calls) == ("dense", ("fc1+fc1_add+relu1",))
    db = tmp_path / "records.db"
    target = resolve("cpu")
    space = operator("dense").space(first.workload, target)
    default = operator("dense").default_config(first.workload, target)
    other = next(
        c for c in map(space.at, range(space.size)) if dict(c.values) != dict(default.values)
    )
    with RecordStore(db) as store:
        store.add([record_of(first.workload, other, target)])
    plain, tuned = (build(given.module, params=given.params, db=d) for d in (None, db))
    assert str(plain.kernels[1].built.func) != str(tuned.kernels[1].built.func)
    x = arrays_for(plain)
    np.testing.assert_allclose(plain(*x), tuned(*x), rtol=1e-5)


def record_of(workload, config, target):
    """Return a record of a measured time."""
    return Record(
        workload=workload, target=target_key(target, target.cores), config=config,
        result=Result("ok", (1e-6,), ""), run="run", trial=0,
        measured_at="2026-01-02T03:04:05.678+00:00",
    )  # fmt: skip


def test_kernels_that_were_built_before_are_taken():
    given = builders.mlp()
    first, second = (build(given.module, params=given.params) for _ in range(2))
    for a, b in zip(first.kernels, second.kernels, strict=True):
        assert a.built is b.built
        assert a.schedule is not b.schedule
    third = build(given.module, "c", params=given.params)
    assert all(a.built is not b.built for a, b in zip(first.kernels, third.kernels, strict=True))


def test_steps_on_the_schedule_of_a_kernel_do_not_reach_the_next_model():
    module = Module.from_expr(op.exp(var("x", (8, 16))))
    (kernel,) = build(module).kernels
    steps = len(kernel.schedule.trace)
    kernel.schedule.undo()
    assert len(kernel.schedule.trace) < steps
    (again,) = build(module).kernels
    assert len(again.schedule.trace) == steps


def test_another_schedule_in_the_registry_is_used():
    from dataclasses import replace

    given = builders.mlp()
    before = build(given.module, params=given.params)
    schedules = operator("dense").schedules
    called = []
    chosen = schedules["cpu"]

    def apply(*args):
        called.append(args)
        chosen.apply(*args)

    schedules["cpu"] = replace(chosen, apply=apply)
    try:
        after = build(given.module, params=given.params)
    finally:
        schedules["cpu"] = chosen
    assert called
    assert before.kernels[1].built is not after.kernels[1].built


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("call", "operator_name"),
    [
        (lambda x: op.nn.softmax(x, axis=0), "softmax"),
        (lambda x: op.nn.log_softmax(x, axis=-1), "log_softmax"),
        (lambda x: op.mean(x, axis=(0, 2), keepdims=True), "reduction"),
        (lambda x: op.max(x, axis=1, exclude=True), "reduction"),
        (lambda x: op.sum(x), "reduction"),
        (lambda x: op.nn.layer_norm(x, var("g", (9,)), var("b", (9,))), "layer_norm"),
        (lambda x: op.nn.layer_norm(x, var("g", (9,)), var("b", (9,)), epsilon=0.5), "layer_norm"),
        (lambda x: op.nn.layer_norm(x, var("g", (7,)), var("b", (7,)), axis=1), ""),
        (lambda x: op.nn.instance_norm(x, var("g", (7,)), var("b", (7,))), "instance_norm"),
        (
            lambda x: op.nn.group_norm(x, var("g", (7,)), var("b", (7,)), num_groups=1),
            "group_norm",
        ),
    ],
)
def test_rows_and_reductions_have_the_schedules_of_the_library(call, operator_name, target):
    module = Module.from_expr(op.nn.relu(call(var("x", (5, 7, 9)))))
    model = build(module, target)
    assert model.kernels[0].operator == operator_name
    inputs = arrays_for(model)
    expected = evaluate(module, *inputs)
    np.testing.assert_allclose(model(*inputs), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_attention_has_the_schedule_of_the_library(target):
    query, key, value = (
        var(name, (2, heads, rows, 8))
        for name, heads, rows in (("q", 4, 5), ("k", 2, 9), ("v", 2, 9))
    )
    mask = var("m", (2, 1, 1, 9))
    attended = op.nn.scaled_dot_product_attention(query, key, value, mask, is_causal=True)
    module = Module.from_expr(op.nn.relu(attended))
    model = build(module, target)
    assert [kernel.operator for kernel in model.kernels] == ["attention"]
    inputs = arrays_for(model)
    np.testing.assert_allclose(model(*inputs), evaluate(module, *inputs), rtol=1e-4, atol=1e-6)


def _recurrent(kind, gates, *states, suffix="", lead=(3,), is_constant=True):
    """Return a layer of 12 inputs and 20 elements of the state, for two rows."""
    numbers = np.random.default_rng(0)
    shapes = [(gates * 20, 12), (gates * 20, 20), (gates * 20,), (gates * 20,)]
    weights = [
        constant(numbers.uniform(-0.3, 0.3, shape).astype("float32"))
        if is_constant
        else var(f"w{n}", shape)
        for n, shape in enumerate(shapes)
    ]
    return getattr(op.nn, kind + suffix)(var("x", (*lead, 2, 12)), *states, *weights)


@pytest.mark.parametrize(
    ("kind", "gates", "is_constant"), [("lstm", 4, True), ("gru", 3, False), ("rnn", 1, True)]
)
def test_recurrent_layers_have_the_schedules_of_the_library(kind, gates, is_constant):
    state = var("h", (2, 20))
    states = [state, state] if kind == "lstm" else [state]  # given twice
    module = Module.from_expr(_recurrent(kind, gates, *states, is_constant=is_constant))
    model = build(module)
    assert [kernel.operator for kernel in model.kernels] == [kind]
    inputs = [array * 0.3 for array in arrays_for(model)]
    for got, expected in zip(model(*inputs), evaluate(module, *inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_a_cell_has_the_schedule_of_the_library_with_what_follows():
    state = var("h", (2, 20))
    module = Module.from_expr(
        op.nn.relu(_recurrent("gru", 3, state, suffix="_cell", lead=())) + state
    )
    model = build(module)
    assert [kernel.operator for kernel in model.kernels] == ["gru"]
    inputs = arrays_for(model)
    np.testing.assert_allclose(model(*inputs), evaluate(module, *inputs), rtol=1e-4, atol=1e-6)


def test_equal_weights_are_stored_once():
    """As of a recurrence whose steps each have a constant of their own."""
    weight = np.random.default_rng(0).uniform(-0.2, 0.2, (64, 64)).astype("f")
    x = var("x", (1, 64))
    state = x
    for step in range(4):
        other = weight if step else weight / 2
        state = op.tanh(op.nn.dense(state, constant(other.copy())))
    model = build(Module.from_expr(state), opt_level=0)
    assert model.weight_bytes == 2 * weight.nbytes
    data = np.full((1, 64), 0.5, "f")
    np.testing.assert_allclose(model(data), evaluate(model.module, data), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kernels", "holds"), [(1, 0), (2, 1)])
def test_a_model_with_several_parallel_kernels_holds_the_helpers(kernels, holds):
    state = var("x", (1, 4))
    weight = constant(np.eye(4, dtype="f"))
    for _ in range(kernels):
        state = op.nn.dense(state, weight)
    steps = steps_of(prepared(Module.from_expr(state), {}, PassContext(3), "main"))
    text = entry_of(steps, [KernelFacts((), uses_threads=True)] * len(steps.kernels), 2).text
    for name in HOLDING:
        assert text.count(f"call void @{name}()") == holds
