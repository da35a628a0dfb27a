"""The suite of whole models: ONNX files of builders' models, and each library on them."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dlcompiler.bench import model_suite
from dlcompiler.bench.models import Settings
from dlcompiler.errors import GraphError, UserError
from dlcompiler.graph import Module, Var, builders, evaluate, op, var

onnx = pytest.importorskip("onnx")
from dlcompiler.bench.onnx_export import onnx_of  # noqa: E402  needs the package
from dlcompiler.bench.peers import Absent, ModelJob, torch_model  # noqa: E402
from dlcompiler.graph import from_onnx  # noqa: E402
from tests.graph.frontends.onnx_models import model_of, tensor  # noqa: E402

QUICK = {"budget_s": 0.0, "sample_s": 1e-5, "rounds": (6, 6)}
SMALL = {
    "resnet": partial(builders.resnet, 18, image=32, classes=10),
    "mobilenet": partial(builders.mobilenet, 2, image=32, classes=10),
    "lstm": partial(builders.lstm, 2, vocabulary=20, width=8),
    "dqn": builders.dqn,
    "dcgan": builders.dcgan,
    "transformer": partial(builders.transformer, 1, steps=4, width=16, vocabulary=20),
    "inception": builders.inception,
    "vit": partial(builders.vit, 1, image=32, width=12, classes=10),
}


def inputs_of(module):
    (param,) = module.main.params
    shape, dtype = param.type.shape, param.type.dtype
    numbers = np.random.default_rng(0)
    whole = numbers.integers(0, 2, shape)
    return param.name, whole.astype(dtype) if "int" in dtype else numbers.random(shape, dtype)


@pytest.fixture
def torch():
    """PyTorch; its gradients, which a peer turns off, are on again for other tests."""
    package = pytest.importorskip("torch")
    yield package
    package.set_grad_enabled(True)


@pytest.mark.campaign
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.usefixtures("torch")
def test_a_model_means_the_same_as_onnx_and_in_torch(name, tmp_path):
    module = SMALL[name]().bound
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_of(module))
    onnx.checker.check_model(onnx.load(path), full_check=True)
    parameter, x = inputs_of(module)
    expected = evaluate(module, x)
    largest = np.abs(expected).max()
    run = torch_model.offer(ModelJob(str(path), {parameter: x}, 1))
    run.call()
    for found in (evaluate(from_onnx(path), x), run.result()[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * largest)


def test_what_torch_compiles_means_the_same(tmp_path, monkeypatch, torch):
    # It takes some ten seconds, in vain.
    monkeypatch.setattr(torch, "compile", lambda network: network)
    module = builders.mlp().bound
    (tmp_path / "model.onnx").write_bytes(onnx_of(module))
    parameter, x = inputs_of(module)
    run = torch_model.compiled_offer(ModelJob(str(tmp_path / "model.onnx"), {parameter: x}, 1))
    run.call()
    np.testing.assert_allclose(run.result()[0], evaluate(module, x), rtol=1e-4, atol=1e-5)


def test_a_classifier_gives_scores():
    module = builders.mlp().bound
    scores = model_suite.without_softmax(module)
    x = np.ones((1, 1, 28, 28), "f")
    found = np.exp(evaluate(scores, x))
    np.testing.assert_allclose(found / found.sum(), evaluate(module, x), rtol=1e-5)
    assert model_suite.without_softmax(scores) is scores


def test_what_is_not_known_is_refused(tmp_path, monkeypatch):
    with pytest.raises(GraphError, match=r"an operator is not known here\n  got       sin"):
        onnx_of(Module.from_expr(op.sin(var("x", (3,)))))
    with pytest.raises(GraphError, match="a bias follows no convolution"):
        onnx_of(Module.from_expr(op.nn.bias_add(var("x", (3, 2)), np.zeros(2, "f"))))
    package = SimpleNamespace(from_numpy=lambda array: array)
    monkeypatch.setattr(torch_model, "torch_with", lambda threads: package)
    path = tmp_path / "model.onnx"
    for kind, problem in (
        ("Sin", "no function of PyTorch is chosen here for Sin"),
        ("Reshape", "an operand is no weight"),
    ):
        node = onnx.helper.make_node(kind, ["x", "x"], ["y"])
        onnx.save(model_of([node], [tensor("x", 3)], [tensor("y", 3)]), path)
        with pytest.raises(Absent, match=problem):
            torch_model.offer(ModelJob(str(path), {}, 1))


def test_the_suite_goes_on_after_a_failure(monkeypatch):
    pytest.importorskip("onnxruntime")

    def layer():
        x = var("x", (1, 8))
        return builders.model_of(op.nn.dense(x, Var("w_weight"), units=4), (x,), 0)

    def broken():
        raise ValueError("no model")

    works = {"layer": layer, "broken": broken}
    monkeypatch.setattr(model_suite, "MODELS", works)
    monkeypatch.setattr(model_suite, "PAPER", works)
    monkeypatch.setattr(model_suite, "STYLE_OF_PAPER", "onnxruntime")
    said = []
    document = model_suite.run_suite(said.append, Settings(limits=QUICK), list(works))
    json.dumps(document, allow_nan=False)
    assert document["failed"] == {"broken": "ValueError: no model"}
    (row,) = document["models"]
    assert (row["model"], row["verified"], row["peers"].keys()) == ("layer", True, {"onnxruntime"})
    assert document["means"] == {
        "the best peer of each model": pytest.approx(row["ratio"]),
        "the paper's models beside onnxruntime": pytest.approx(row["ratio"]),
    }
    assert said[0].startswith("layer: 1 kernel, built in ")
    with pytest.raises(UserError, match="neither a model nor a file"):
        model_suite.run_suite(said.append, Settings(), ["vgg"])
