"""Models in files: they compute the same in another process; damaged ones are refused."""

import hashlib
import json
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

CASES = share_of(40, at_least=4)


@pytest.mark.campaign
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the bytes of a model with two kernels."""
    made = Module.from_expr(op.exp(op.nn.softmax(var("x", (2, 8)))))
    model = build(made, context=CONTEXTS["unfused"])
    return model.save(tmp_path_factory.mktemp("saved") / "m").read_bytes()


def rewritten(data, change):
    """Change the text of a file, and give it the digest of what it holds then."""
    head, length, rest = data.split(b"\n", 2)
    text = json.loads(rest[: int(length)])
    change(text)
    made = json.dumps(text).encode()
    body = b"%d\n%b%b" % (len(made), made, rest[int(length) :])
    return head[:-64] + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text["plan"].update(bytes=2**64),
        lambda text: text["plan"].update(bound="a"),
        lambda text: text["plan"].update(live=[True]),
        lambda text: text["plan"]["placements"][0].update(offset=None),
        lambda text: text["result"].update(shape=[1, 16]),
        lambda text: text["result"].update(dtype="int32"),
        lambda text: text["params"].reverse(),
        lambda text: text["params"][0].update(name=1),
        lambda text: text["params"][1].update(is_output="yes"),
        lambda text: text["steps"][0].update(kernel=False),
        lambda text: text["steps"][0].update(values="a"),
        lambda text: text["steps"][0]["places"][0].update(number=False),
        lambda text: text["steps"][0]["places"][1].update(number=1),
        lambda text: text["steps"][0].update(places=text["steps"][0]["places"][::-1]),
        lambda text: text["kernels"][0]["code"]["params"][0].update(is_output=True),
        lambda text: text["kernels"][0]["code"]["params"][0].update(shape=["n", 2, 8]),
        lambda text: text["weights"].append(["float32", ["a", 10**12]]),
        lambda text: text["weights"].append(["float32", [0, 2**70]]),
        lambda text: text.update(version=2),
    ],
)
def test_a_text_that_does_not_fit_is_refused_whatever_its_digest(change, saved, tmp_path):
    path = tmp_path / "m"
    assert rewritten(saved, lambda text: None) == saved
    path.write_bytes(rewritten(saved, change))
    with pytest.raises(UserError, match="damaged"):
        load_model(path)


def test_a_model_for_another_processor_is_refused(tmp_path):
    path = build(Module.from_expr(op.exp(var("x", (4,))))).save(tmp_path / "m")
    head, _, body = path.read_bytes().partition(b"\n")
    body = body.replace(b'"triple": "x86_64', b'"triple": "s390x_', 1)
    digest = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(head[:-64] + digest + b"\n" + body)
    with pytest.raises((TargetError, UserError)):
        load_model(path)
