"""Models in files: they compute the same in another process; damaged ones are refused."""

import subprocess
import sys

import numpy as np
import pytest

from dlcompiler.errors import CallError, TargetError, UserError
from dlcompiler.graph import build, builders, load_model, op, var
from dlcompiler.graph.ir import Module, Tuple
from tests.graph.execution.executed_graphs import CONTEXTS, case, list_of, poisoned
from tests.graph.random_graphs import flat
from tests.share import share_of

CASES = share_of(60, at_least=6)


@pytest.mark.parametrize("seed", range(CASES))
def test_a_loaded_model_computes_the_same(seed, tmp_path):
    module, inputs = case(11 * seed)
    model = build(module, context=CONTEXTS["fused" if seed % 3 else "unfused"])
    loaded = load_model(model.save(tmp_path / "model"))
    assert (loaded.params, loaded.steps) == (model.params, model.steps)
    assert (loaded.plan.bytes, loaded.plan.placements) == (model.plan.bytes, model.plan.placements)
    expected = flat(model(*inputs))
    for found in (flat(loaded(*inputs)), poisoned(loaded, inputs), flat(list_of(loaded, inputs))):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_another_process_runs_it(tmp_path):
    given = builders.mlp()
    model = build(given.module, params=given.params)
    x = np.random.default_rng(0).standard_normal(model.params[0].static_shape).astype("f")
    path = model.save(tmp_path / "mlp.dlc")
    np.save(tmp_path / "x.npy", x)
    code = f"""
import numpy
from dlcompiler.graph import load_model
model = load_model({str(path)!r})
numpy.save({str(tmp_path / "y.npy")!r}, model(numpy.load({str(tmp_path / "x.npy")!r})))
print(model)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "LoadedModel(" in done.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model(x))


def test_a_loaded_model_is_saved_again_in_the_same_bytes(tmp_path):
    x = var("x", (4, 8))
    model = build(Module.from_expr(Tuple((op.nn.softmax(x), Tuple((op.exp(x),))))))
    first = model.save(tmp_path / "first")
    again = load_model(first).save(tmp_path / "again")
    assert first.read_bytes() == again.read_bytes()


def test_a_loaded_model_has_values_times_and_errors(tmp_path):
    model = build(Module.from_expr(op.nn.softmax(op.exp(var("x", (4, 8))))))
    loaded = load_model(model.save(tmp_path / "m"))
    x = np.ones((4, 8), "f")
    assert loaded.values(x).keys() == model.values(x).keys()
    assert [t.kernel for t in loaded.profile(x, repeats=1)] == list(model.kernel_names)
    with pytest.raises(CallError, match="wrong shape"):
        loaded(np.ones((8, 4), "f"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: b"", "not a model"),
        (lambda data: b"#dlcompiler library 1 00\n", "not a model"),
        (lambda data: data[:-1], "damaged"),
        (lambda data: data + b"x", "damaged"),
        (lambda data: data[:500] + b"?" + data[501:], "damaged"),
        (lambda data: data.replace(b" 1 ", b" 9 ", 1), "another version"),
    ],
)
def test_a_changed_file_is_refused(change, problem, tmp_path):
    path = build(Module.from_expr(op.exp(var("x", (4,))))).save(tmp_path / "m")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=problem):
        load_model(path)


def test_a_file_that_others_may_write_is_refused(tmp_path):
    path = build(Module.from_expr(op.exp(var("x", (4,))))).save(tmp_path / "m")
    path.chmod(0o666)
    with pytest.raises(UserError, match="write"):
        load_model(path)
    with pytest.raises(UserError, match="cannot be read"):
        load_model(tmp_path / "missing")


def test_a_model_in_another_place_is_no_folder(tmp_path):
    model = build(Module.from_expr(op.exp(var("x", (4,)))))
    with pytest.raises(UserError):
        model.save(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        model.save(tmp_path / "a" / "b")


def test_a_model_for_another_processor_is_refused(tmp_path):
    path = build(Module.from_expr(op.exp(var("x", (4,))))).save(tmp_path / "m")
    import hashlib

    head, _, body = path.read_bytes().partition(b"\n")
    body = body.replace(b'"triple": "x86_64', b'"triple": "s390x_', 1)
    digest = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(head[:-64] + digest + b"\n" + body)
    with pytest.raises((TargetError, UserError)):
        load_model(path)
