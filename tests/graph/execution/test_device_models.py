"""Models on GPUs, real and simulated, and models whose parts run on several devices."""

import random
import threading

import numpy as np
import pytest

from dlcompiler.errors import (
    CallError,
    DeviceUnavailable,
    GraphError,
    ProgramError,
    TargetError,
    UserError,
)
from dlcompiler.graph import DeviceModel, Transfer, build, builders, compare, evaluate, op, var
from dlcompiler.graph.ir import Module, Tuple
from dlcompiler.graph.ir.traverse import rewrite
from dlcompiler.graph.passes.tools import operator_of
from dlcompiler.pipeline.devices import device_of
from dlcompiler.target import resolve
from tests.graph.execution.executed_graphs import CONTEXTS, case
from tests.graph.random_graphs import flat
from tests.share import share_of

BOTH = {"cpu": "cpu", "gpu": "gpu"}
REASON = device_of(resolve("opencl")).why_unavailable()
OPENCL = pytest.param("opencl", marks=pytest.mark.skipif(REASON is not None, reason=str(REASON)))
CASES = share_of(60, at_least=3)
MANY = share_of(300, at_least=10)
LATER = pytest.mark.campaign
X = np.random.default_rng(0).standard_normal((4, 64)).astype("f")


def parts():
    """Return a model whose sum runs on a GPU."""
    x = var("x", (4, 64))
    y = op.exp(op.nn.relu(x), name="before")
    middle = op.on_device(op.add(y, y, name="middle"), "gpu")
    return Module.from_expr(op.on_device(op.tanh(op.nn.softmax(middle), name="after"), "cpu"))


# -- values ---------------------------------------------------------------------------------------


def same(model, module, inputs, seed=None):
    expected = flat(evaluate(module, *inputs))
    stepped = model.stepped(*inputs)
    for _ in stepped.steps():
        pass
    for found in (flat(model(*inputs)), flat(tuple(stepped.outputs))):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}")


@pytest.mark.parametrize("target", ["gpu", OPENCL])
@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=LATER) for n in range(3, CASES, 3))],
)
def test_random_models_compute_what_the_graphs_mean(target, first):
    for seed in range(first, first + 3):
        module, inputs = case(13 * seed)
        context = CONTEXTS["fused" if seed % 3 else "unfused"]
        same(build(module, target, context=context), module, inputs, seed)


def annotated(module, random_):
    """Return a module with annotations around some of its calls."""

    def rule(node):
        if operator_of(node) in ("", "split", "nn.batch_norm") or random_.random() < 0.6:
            return node
        return op.on_device(node, device=random_.choice(("gpu", "cpu", "other")))

    return Module({name: rewrite(f, rule) for name, f in module.functions.items()})


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=LATER) for n in range(10, MANY, 10))])
def test_random_parts_on_random_devices(first):
    transfers = 0
    for seed in range(first, min(first + 10, MANY)):
        module, inputs = case(seed)
        numbers = random.Random(seed)
        names = numbers.sample(["cpu", "gpu", "other"], 3)
        targets = {name: {"gpu": "gpu"}.get(name, "cpu") for name in names}
        context = CONTEXTS[numbers.choice(("fused", "unfused"))]
        model = build(annotated(module, numbers), targets, context=context)
        same(model, module, inputs, seed)
        transfers += len(model.transfers)
    assert transfers


@pytest.mark.parametrize("target", ["gpu", OPENCL])
@pytest.mark.parametrize("name", ["mlp", pytest.param("lenet", marks=pytest.mark.campaign)])
def test_models_agree_with_those_of_a_cpu(target, name):
    given = getattr(builders, name)()
    model, other = (build(given.module, t, params=given.params) for t in (target, "cpu"))
    assert isinstance(model, DeviceModel)
    shape = model.params[0].static_shape
    x = np.random.default_rng(0).standard_normal(shape).astype("f")
    found = compare(model, other, x)
    assert found.first is None, found
    assert len(found.pairs) == len(model.steps) + 1


# -- what it says of itself -----------------------------------------------------------------------


def test_transfers_of_a_model_on_a_gpu_are_counted():
    model = build(Module.from_expr(op.nn.softmax(op.exp(var("x", (4, 64))))), "gpu")
    assert model.transfers == (
        Transfer("x", "host", "gpu", 1024),
        Transfer("out0", "gpu", "host", 1024),
    )
    assert "arena" in repr(model)


def test_transfers_between_parts_are_counted():
    model = build(parts(), BOTH)
    assert [(t.source, t.target, t.bytes) for t in model.transfers] == [
        ("cpu", "gpu", 1024), ("gpu", "cpu", 1024),
    ]  # fmt: skip
    assert [step.device for step in model.steps] == ["cpu", "gpu", "gpu", "gpu", "cpu", "cpu"]
    assert [*model.values(X)] == ["before", "middle", "softmax_1", "after"]
    assert set(model.plans) == {"cpu", "gpu"}
    np.testing.assert_allclose(model(X), evaluate(parts(), X), rtol=1e-5)


def test_the_first_device_is_the_default():
    model = build(parts(), {"gpu": "gpu", "cpu": "cpu"})
    assert [(t.source, t.target) for t in model.transfers] == [
        ("host", "gpu"), ("gpu", "cpu"), ("cpu", "gpu"), ("gpu", "host"),
    ]  # fmt: skip
    np.testing.assert_allclose(model(X), evaluate(parts(), X), rtol=1e-5)


def test_annotations_change_nothing_with_one_target():
    for target in ("cpu", "gpu", {"gpu": "gpu"}):
        model = build(parts(), target)
        assert [step.values for step in model.steps][-1] == ("after",)
        assert not [name for name in model.kernel_names if "device" in name]
        np.testing.assert_allclose(model(X), evaluate(parts(), X), rtol=1e-5)


def test_times_say_what_they_are():
    model = build(parts(), BOTH)
    assert [str(t.times).split()[0] for t in model.profile(X)] == [
        "measured", "predicted", "predicted", "measured",
    ]  # fmt: skip
    assert all(0 < t.seconds < 1 for t in model.profile(X))


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_times_of_a_device_are_measured():
    times = build(parts(), {"cpu": "cpu", "gpu": "opencl"}).profile(X)
    assert {t.times.kind for t in times} == {"measured"}
    assert len({t.times.on for t in times}) == 2
    assert all(0 < t.seconds < 1 for t in times)


# -- awkward models -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["gpu", OPENCL])
def test_awkward_results(target):
    x = var("x", (4, 64))
    y = op.exp(x)
    for result in (x, Tuple((x, x)), Tuple((y, Tuple((y, x)))), Tuple(())):
        module = Module.from_expr(result)
        inputs = [X] if module.main.params else []
        found, expected = build(module, target)(*inputs), evaluate(module, *inputs)
        for a, b in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["gpu", OPENCL])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2049,)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "int64"])
def test_awkward_shapes(target, shape, dtype):
    x = var("x", shape, dtype)
    y = op.concatenate((op.reshape(x, newshape=(-1,)),) * 2, axis=0)
    module = Module.from_expr(Tuple((op.copy(x), y)))
    a = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    found, expected = build(module, target)(a), evaluate(module, a)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_index_outside_is_an_error():
    x, i = var("x", (1, 4)), var("i", (1, 2), "int64")
    module = Module.from_expr(op.nn.relu(op.gather(x, i, axis=1)))
    model = build(module, "gpu")
    a = np.arange(4, dtype="f")[None]
    with pytest.raises(ProgramError, match="index 9"):
        model(a, np.array([[1, 9]]))
    np.testing.assert_array_equal(model(a, np.array([[1, 3]])), [[1, 3]])


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("repeats", [0, -1, 1.5, "2", None])
def test_no_runs_have_no_times(repeats):
    for target in ("cpu", "gpu"):
        with pytest.raises(CallError, match="number of runs"):
            build(parts(), target).profile(X, repeats=repeats)


def test_arguments_that_do_not_fit():
    model = build(parts(), BOTH)
    with pytest.raises(CallError, match="wrong shape"):
        model(X.T.copy())
    with pytest.raises(CallError, match="wrong dtype"):
        model.run(X.astype("float64"), np.empty_like(X))
    with pytest.raises(CallError, match="overlap"):
        model.run(X, X)
    with pytest.raises(CallError):
        model.run(X)
    with pytest.raises(CallError, match="contiguous"):
        model.run(X[:, ::2].repeat(2, 1)[:, ::-1], np.empty_like(X))
    out = np.empty_like(X)
    model.run(X, out)
    np.testing.assert_array_equal(out, model(X))


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ({}, "not a target"),
        ({1: "cpu", "gpu": "gpu"}, "not a target"),
        ({"cpu": "cpu", "npu": "gpu"}, "no target for a device"),
        ({"cpu": "cpu", "gpu": "nothing"}, "nothing"),
    ],
)
def test_targets_that_do_not_fit(targets, problem):
    with pytest.raises((GraphError, TargetError), match=problem):
        build(parts(), targets)


def test_a_model_on_devices_is_not_saved(tmp_path):
    with pytest.raises(UserError, match="cannot be saved"):
        build(parts(), BOTH).save(tmp_path / "m")
    assert not [*tmp_path.iterdir()]


def test_what_a_gpu_cannot_do_is_refused_with_a_remedy():
    x = var("x", (3, 4))
    total = op.cumprod(op.exp(x), axis=1)
    with pytest.raises(TargetError, match="outside any thread") as error:
        build(Module.from_expr(total), "gpu")
    assert "on_device" in error.value.hint
    module = Module.from_expr(op.on_device(total, "cpu"))
    model = build(module, {"gpu": "gpu", "cpu": "cpu"})
    a = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    np.testing.assert_allclose(model(a), evaluate(module, a), rtol=1e-5)


@pytest.mark.skipif(
    device_of(resolve("cuda")).why_unavailable() is None, reason="a CUDA device is here"
)
def test_a_device_that_is_not_here():
    with pytest.raises(DeviceUnavailable):
        build(parts(), {"cpu": "cpu", "gpu": "cuda"})


@pytest.mark.parametrize("target", ["gpu", OPENCL])
def test_several_threads_call_one_model(target):
    model = build(parts(), {"cpu": "cpu", "gpu": target})
    expected = [model(X * n) for n in range(4)]
    wrong = []

    def call(n):
        for _ in range(5):
            if not np.array_equal(model(X * n), expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
