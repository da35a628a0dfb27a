"""``dlcompiler model`` as a user calls it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.autotune import RecordStore
from dlcompiler.bench import models
from dlcompiler.cli import main
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.target import resolve

onnx = pytest.importorskip("onnx")
from tests.graph.frontends.darknet_reference import SMALL, weights_of  # noqa: E402
from tests.graph.frontends.onnx_models import a_model, model_of, tensor  # noqa: E402

QUICK = ["--seconds", "0.01"]
FILES = Path(__file__).parents[1] / "graph" / "frontends" / "files"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(a_model(), place)
    return str(place)


def test_json_has_what_was_measured(path, tmp_path, capsys):
    x = np.random.default_rng(1).random((2, 3, 6, 6), "float32")
    np.save(tmp_path / "x.npy", x)
    options = ["--input", f"x={tmp_path}/x.npy", "--peers", "", "--json", *QUICK]
    assert main(["model", path, *options]) == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert (data["verified"], data["compared_with"], data["threads"]) == (True, ["NumPy"], 1)
    assert data["ours_seconds"] > 0
    assert (data["peers"], data["ratio"], data["interval"]) == ({}, None, None)
    assert data["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": [2, 3, 6, 6], "random": False}
    ]
    assert data["machine"]["cpu"]
    assert printed.err.splitlines() == [f"import {path}", "build kernels", "compare and measure"]


@pytest.mark.parametrize(
    ("file", "options", "library"),
    [
        ("coreml/mobile_32.mlmodel", [], "CoreML"),
        ("coreml/mobile_16.mlpackage", [], "CoreML"),
        ("mxnet/squeezenet-symbol.json", ["--shape", "data=1x3x20x20"], "MXNet"),
    ],
)
def test_models_of_other_libraries(file, options, library, capsys):
    options = ["--peers", "onnxruntime", "--json", *options, *QUICK]
    assert main(["model", str(FILES / file), *options]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["verified"], data["compared_with"]) == (True, ["NumPy"])
    why = data["absent"]["onnxruntime"]
    assert why == f"it reads no {library} files" or "not installed" in why


def test_a_network_of_darknet_lies_beside_its_weights(tmp_path, capsys):
    path = tmp_path / "a.cfg"
    path.write_text(SMALL)
    assert main(["model", str(path), "--peers", "", "--json", *QUICK]) == 0
    unknown = json.loads(capsys.readouterr().out)
    path.with_suffix(".weights").write_bytes(weights_of(SMALL, (1, 3, 8, 8)))
    assert main(["model", str(path), "--peers", "", "--json", *QUICK]) == 0
    known = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in known["inputs"]] == ["input"]
    assert len(unknown["inputs"]) > 1
    assert main(["model", str(path), "--constant", "input=1"]) == 2
    assert "only inputs of ONNX models become constants" in capsys.readouterr().err


@pytest.mark.campaign
def test_kernels_are_tuned_and_the_model_is_measured_again(path, tmp_path, monkeypatch, capsys):
    reads = tuple((level.name, 100.0) for level in resolve("cpu").caches)
    ceilings = Ceilings(1, "float32", 100.0, (*reads, ("memory", 10.0)))
    monkeypatch.setattr(models, "ceilings_here", lambda threads, worker: ceilings)
    db = str(tmp_path / "records.db")
    options = ["--peers", "", "--db", db, "--profile", *QUICK]
    assert main(["model", path, *options, "--tune", "3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["trials"] for row in data["tuned"]] == [3]
    assert data["untuned"]["verified"] is data["verified"] is True
    assert data["kernels"][0]["of_roofline"] > 0
    with RecordStore(db) as store:
        assert len(store.records()) == 3
    assert main(["model", path, *options]) == 0
    assert "of roofline" in capsys.readouterr().out


@pytest.mark.campaign
def test_a_wrong_result_is_status_1(path, capsys):
    assert main(["model", path, "--peers", "", "--tolerance", "0", *QUICK]) == 1
    assert "verified      no: compared with NumPy: result 0 differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--peers", "tf"], "no such peer"),
        (["--threads", "none"], "not a number of threads"),
        (["--shape", "x=1x2"], "the shape does not fit input x"),
        (["--shape", "2x3"], "not a name and a shape"),
        (["--shape", "x=2xx"], "not a name and a shape"),
        (["--input", "x"], "not a name and a value"),
        (["--input", "x=a"], "not a name and a value"),
        (["--input", "x=1,2"], "the value does not fit input x"),
        (["--input", "x=/none.npy"], "the file cannot be read"),
        (["--constant", "y=1"], "there is no such input"),
        (["--tolerance", "nan"], "not a finite number"),
        (["--tune", "0"], "not a positive number of trials"),
        (["--seed", "-1"], "not a whole number"),
        (["--seconds", "inf"], "not a positive number of seconds"),
        (["--db", "/no/such/folder/x.db"], "there is no such file"),
    ],
)
def test_nonsense_is_refused(path, options, problem, capsys):
    assert main(["model", path, *options]) == 2
    printed = capsys.readouterr()
    assert problem in printed.err
    assert printed.out == ""


def test_bad_files_and_missing_packages_are_errors_of_one_text(tmp_path, monkeypatch, capsys):
    bad = tmp_path / "bad.onnx"
    for data in (b"", b"\0" * 99, b"text"):
        bad.write_bytes(data)
        assert main(["model", str(bad)]) == 2
        assert "import an ONNX model: not an ONNX file" in capsys.readouterr().err
    assert main(["model", str(tmp_path)]) == 2
    assert "the file cannot be read" in capsys.readouterr().err

    unknown = model_of([onnx.helper.make_node("Nope", ["x"], ["y"], "n")],
                       [tensor("x", "rows", "columns")], [tensor("y", None, None)])  # fmt: skip
    onnx.save(unknown, bad)
    assert main(["model", str(bad)]) == 2
    assert "--shape x=1x1" in capsys.readouterr().err
    assert main(["model", str(bad), "--shape", "x=2x2"]) == 2
    assert "there is no such operator here" in capsys.readouterr().err

    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["model", str(bad)]) == 2
    assert "the package onnx cannot be imported" in capsys.readouterr().err
