"""Whole models beside ONNX Runtime: inputs, results that are compared, kernels and trials."""

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.bench import models
from dlcompiler.bench.array_files import read_array
from dlcompiler.bench.model_document import document_of, summary
from dlcompiler.bench.model_inputs import constants_of, inputs_of, known_shapes
from dlcompiler.bench.model_tuning import TaskTime, chosen, share_of_first, task_times
from dlcompiler.bench.model_worker import COMMAND, agreement
from dlcompiler.bench.models import ModelBench, Settings, built, imported
from dlcompiler.bench.peers import onnxruntime_model
from dlcompiler.bench.peers.job import ModelJob
from dlcompiler.errors import MeasurementError, UserError
from dlcompiler.graph import ANY, KernelTime, Module, Profile, TensorType, op, var
from dlcompiler.graph.execution.profiles import StepWork
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.runtime.timing import measured_here
from dlcompiler.runtime.workers import Outcome, Worker
from dlcompiler.space import Workload
from dlcompiler.target import CacheLevel
from dlcompiler.views.graphs.profile_picture import profile_table

onnx = pytest.importorskip("onnx")
from tests.graph.frontends.onnx_models import a_model  # noqa: E402  needs the package

QUICK = {"budget_s": 0.0, "sample_s": 1e-5, "rounds": (6, 6)}
OPEN = {"x": TensorType((ANY, 3, 8)), "n": TensorType((1,), "int64"), "any": None}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(a_model(), place)
    return place


@pytest.fixture(scope="module")
def model(path):
    given = imported(path)
    return given, built(given, 1)


@pytest.fixture(scope="module")
def worker():
    with Worker(COMMAND, memory_limit_bytes=None) as process:
        yield process


def test_a_model_is_compared_and_timed_beside_its_peer(model, worker):
    pytest.importorskip("onnxruntime")
    given, made = model
    settings = Settings(limits=QUICK)
    bench = ModelBench(settings, worker)
    result = bench.measure(given, made)
    data = json.loads(json.dumps(document_of(given, made, result, settings)))
    assert (data["verified"], data["compared_with"]) == (True, ["onnxruntime"])
    assert 0 <= data["error"] <= data["tolerance"] == 1e-4
    assert data["peers"].keys() == {"onnxruntime"}
    low, high = data["interval"]
    assert 0 < low <= data["ratio"] <= high
    assert [row["name"] for row in data["kernels"]] == ["conv1+relu1", "head"]
    assert data["kernels"][0]["operators"] == ["nn.conv2d", "nn.relu"]
    assert data["kernels"][0]["flops"] == 2 * 4 * 36 * (2 * 27 + 1)
    assert all(row["seconds"] > 0 for row in data["kernels"])
    text = "\n".join(summary(given, made, result, settings))
    assert "verified      yes, compared with onnxruntime" in text

    other = replace(given, inputs=(replace(given.inputs[0], name="y"),))
    result = bench.measure(other, made)  # the peer misses its input
    assert "KeyError" in result.absent["onnxruntime"]
    assert (result.verified, result.references) == (True, ("NumPy",))


def test_results_of_another_rank_than_declared_are_not_bound(monkeypatch, tmp_path):
    class Session:
        """Of a file that declares two extents, where results have three."""

        def get_inputs(self):
            return [SimpleNamespace(name="x")]

        def get_outputs(self):
            return [SimpleNamespace(name="y", shape=[1, "length"])]

        def run(self, names, feeds):
            assert names == ["y"]
            return [feeds["x"][None]]

    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnxruntime_model, "session_of", lambda *_: Session())
    x = np.ones((2, 3), np.float32)
    offer = onnxruntime_model.offer(ModelJob(str(tmp_path), {"x": x}, 1))
    assert offer.way == "session"
    assert offer.call()[0].shape == offer.result()[0].shape == (1, 2, 3)


def test_a_wrong_result_is_no_measurement(model, worker, monkeypatch):
    given, made = model
    right = graph.evaluate(given.module, given.inputs[0].array)
    bench = ModelBench(Settings(peers=(), limits=QUICK), worker)
    monkeypatch.setattr(models, "_evaluated", lambda *_: ([right + 1], ""))
    result = bench.measure(given, made)
    assert result.verified is False
    assert "compared with NumPy: result 0 differs at" in result.reason
    assert (result.ours, result.kernels, result.ratio) == (None, (), None)

    monkeypatch.setattr(models, "_evaluated", lambda *_: ([], "it takes long"))
    result = bench.measure(given, made)
    assert (result.verified, result.reason) == (None, "no peer ran it, and it takes long")
    assert result.ours.median_s > 0


def test_numpy_decides_if_a_peer_differs(model, worker):
    pytest.importorskip("onnxruntime")
    given, made = model
    other = replace(given, path=str(Path(given.path).with_name("other.onnx")))
    changed = onnx.load(given.path)
    changed.graph.node[1].op_type = "Sigmoid"
    onnx.save(changed, other.path)
    result = ModelBench(Settings(limits=QUICK), worker).measure(other, made)
    assert (result.verified, result.references) == (True, ("NumPy",))
    assert result.reason.startswith("compared with onnxruntime: result 0 differs")
    assert result.ratio.median > 0


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        ([np.zeros(3, "f")], [np.zeros(3, "f")] * 2, "1 results, 2 expected"),
        ([np.zeros(3, "f")], [np.zeros(2, "f")], "result 0 is float32[3], expected float32[2]"),
        ([np.zeros(3, "f")], [np.zeros(3, "d")], "result 0 is float32[3], expected float64[3]"),
        ([np.array([1, 2])], [np.array([1, 3])], "result 0 differs at [1]: 2, expected 3"),
        ([np.array(np.nan, "f")], [np.array(1, "f")], "result 0 differs at []: nan, expected 1.0"),
        ([np.array([5, 1e-9], "f")], [np.array([5, 0], "f")], ""),
        ([np.array([np.nan, np.inf], "f")], [np.array([np.nan, np.inf], "f")], ""),
    ],
)
def test_results_are_compared(ours, theirs, problem):
    found = agreement(ours, theirs, None)
    assert found["problem"].startswith(problem)
    assert bool(found["problem"]) == bool(problem)
    json.dumps(found, allow_nan=False)


def test_open_extents_are_given_or_the_batch_is_one():
    assert known_shapes(OPEN, {"any": (2, 2)}) == {"x": (1, 3, 8), "any": (2, 2)}
    assert known_shapes(OPEN, {"any": (), "x": (7, 3, 8)})["x"] == (7, 3, 8)
    for given, problem in (
        ({}, "--shape any=1x3"),
        ({"any": (), "x": (7, 4, 8)}, "the shape does not fit input x"),
        ({"any": (), "n": ()}, "the shape does not fit input n"),
        ({"y": (1,)}, "there is no such input"),
    ):
        with pytest.raises(UserError) as caught:
            known_shapes(OPEN, given)
        assert problem in str(caught.value)
    with pytest.raises(UserError, match="--shape x=1x1x8"):
        known_shapes({"x": TensorType((1, ANY, 8))}, {})


def test_inputs_are_random_or_given():
    kinds = (("x", "float32"), ("i", "int64"), ("b", "bool"))
    x, i, b = (var(name, (2, 3), dtype) for name, dtype in kinds)
    module = Module.from_expr(op.where(b, x, op.cast(i, dtype="float32")))
    found = {each.name: each for each in inputs_of(module, {"x": [1, 2, 3, 4, 5, 6]}, seed=1)}
    assert found["x"].array.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert set(found["i"].array.ravel().tolist()) <= {0, 1}
    assert [found[name].dtype for name, _ in kinds] == [dtype for _, dtype in kinds]
    assert [found[name].is_random for name, _ in kinds] == [False, True, True]
    again = {each.name: each for each in inputs_of(module, {}, seed=1)}
    assert abs(again["x"].array).max() <= 1
    for given, problem in (
        ({"y": 1}, "there is no such input"),
        ({"x": [1, 2]}, "the value does not fit input x"),
        ({"i": np.full((2, 3), 0.5)}, "a number of input i is none of its dtype"),
    ):
        with pytest.raises(UserError, match=problem):
            inputs_of(module, given)


def test_constants_have_the_declared_types():
    assert constants_of(OPEN, {"n": 3})["n"].tolist() == [3]
    assert constants_of(OPEN, {"n": 3})["n"].dtype == "int64"
    with pytest.raises(UserError, match="there is no such input"):
        constants_of(OPEN, {"m": 3})


def test_files_of_arrays_are_read_or_refused(tmp_path):
    place = tmp_path / "x.npy"
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3, 2)), np.int8(3),
                  np.empty((0, 3)), np.array([True])):  # fmt: skip
        np.save(place, array)
        np.testing.assert_array_equal(read_array(place), array, strict=True)
    for array in (np.array([None]), np.array(["a"]), np.zeros(2, ">f4"), np.zeros(2, "c8")):
        np.save(place, array, allow_pickle=True)
        with pytest.raises(UserError, match="read "):
            read_array(place)
    with pytest.raises(UserError, match="cannot be read"):
        read_array(tmp_path / "none.npy")
    stream = io.BytesIO()
    np.save(stream, np.arange(9))
    place.write_bytes(stream.getvalue()[:-1])
    with pytest.raises(UserError, match="its size does not fit its shape"):
        read_array(place)


def step(name, seconds, flops=0, weights=0, others=0, *, is_float32=True):
    work = StepWork(("add",), "", flops, weights, others, is_float32)
    return KernelTime(name, name, seconds, measured_here(), work)


def test_least_times_follow_from_operations_and_bytes():
    ceilings = Ceilings(1, "float32", 1.0, (("L1", 100.0), ("memory", 1.0)))
    caches = [CacheLevel("L1", 1000, 64, 1)]
    times = [
        step("computes", 4.0, flops=2_000_000_000, others=8),
        step("reads weights", 4.0, flops=8, weights=3_000_000_000, others=100),
        step("is int8", 4.0, is_float32=False),
        step("is unknown", 4.0, flops=None),
    ]
    found = Profile(times).under_roofline(ceilings, caches, model_bytes=10_000)
    assert [each.bound for each in found] == ["FMA peak", "memory", "", ""]
    assert [each.of_roofline for each in found] == [0.5, pytest.approx(0.75), None, None]
    table = profile_table(found, most=2)
    assert table.splitlines()[-1].startswith("2 others")
    assert "50% (FMA peak)" in table
    json.dumps([each.to_json() for each in found], allow_nan=False)


def test_trials_are_shared_out_by_time(model):
    given, _ = model
    tasks = task_times(given, 1, [step("head", 2.0), step("conv1+relu1", 3.0)])
    assert [(task.calls, task.seconds) for task in tasks] == [
        (("conv1+relu1",), 3.0), (("head",), 2.0),
    ]  # fmt: skip
    tasks = [TaskTime(Workload.of("dense", n=n), (), n) for n in (90, 9, 1, 0)]
    assert len(chosen(tasks, 50)) == 3
    assert len(chosen(tasks, 5)) == 1
    assert chosen([], 50) == []
    assert share_of_first(tasks[:3], 50) == 18  # 16 stay for each of the others
    assert share_of_first(tasks[:1], 5) == 5
    assert share_of_first(tasks[3:], 40) == 40


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_crash_of_a_peer_is_told_from_one_of_ours(is_ours, model, worker, monkeypatch):
    call = worker.call

    def crashing(entry, params=None, **rest):
        if entry == "contest" and (is_ours or params["peers"]):
            return Outcome("crashed", 0.0, message="ended by SIGSEGV")
        return call(entry, params, **rest)

    monkeypatch.setattr(worker, "call", crashing)
    bench = ModelBench(Settings(limits=QUICK), worker)
    bench._present, bench._absent = ("onnxruntime",), {}
    if is_ours:
        with pytest.raises(MeasurementError, match="crashed"):
            bench.measure(*model)
    else:
        result = bench.measure(*model)
        assert result.verified
        assert "in a process that was lost" in result.absent["onnxruntime"]
