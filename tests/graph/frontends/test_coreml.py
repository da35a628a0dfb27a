"""CoreML models compute what PyTorch computed for them, or are refused with a reason."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml import LAYERS
from tests.graph.frontends.coreml_models import (
    blob,
    feature,
    layer,
    message,
    network,
    old_network,
    one,
    operation,
    program,
    value_type,
    weights,
)

FILES = Path(__file__).parent / "files" / "coreml"
MODELS = ("mobile", "encoder", "images", "recurrent")
TOLERANCE = {"32.mlpackage": 3e-6, "32.mlmodel": 3e-6, "16.mlpackage": 0.02, "16.mlmodel": 2e-3}
"""Kind of file -> largest difference from PyTorch, which has weights and sums of 32 bits."""


@pytest.mark.parametrize("ending", TOLERANCE)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_pytorch_computed(name, ending):
    module = graph.from_coreml(FILES / f"{name}_{ending}")
    arrays = np.load(FILES / f"{name}.npz")
    expected = [arrays[key] for key in sorted(arrays) if key != "x"]
    dtype = module["main"].params[0].type.dtype
    for run in (graph.evaluate, lambda module, x: graph.build(module)(x)):
        found = run(module, arrays["x"].astype(dtype))
        found = found if isinstance(found, tuple) else (found,)
        for got, want in zip(found, expected, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.astype("float64"), want, atol=TOLERANCE[ending], rtol=0)


def test_calls_have_the_names_of_the_file():
    body = graph.from_coreml(FILES / "mobile_32.mlpackage")["main"].body
    assert (body.name, body.args[0].span.node) == ("y0", "input")


def test_an_open_extent_is_given_or_described():
    made = [operation("relu", {"x": "%x"}, {"y": ("float32", (None, 4))})]
    data = program(made, {"x": ("float32", (None, 4))}, ["y"])
    with pytest.raises(GraphError, match="no known shape"):
        graph.from_coreml(data)
    module = graph.from_coreml(data, shapes={"x": (7, 4)})
    assert graph.type_of(module["main"].body).shape == (7, 4)
    data = program(made, {"x": ("float32", (None, 4))}, ["y"], [feature("x", (5, 4))])
    assert graph.type_of(graph.from_coreml(data)["main"].body).shape == (5, 4)
    with pytest.raises(GraphError, match="no such input"):
        graph.from_coreml(data, shapes={"z": (1,)})


# -- refusals --------------------------------------------------------------------------------------

DEEP = b""
for _ in range(200):
    DEEP = message("Values", values=[{"immediateValue": {"tuple": DEEP}}])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not a CoreML file"),
        (b"\xff\xff", "damaged"),
        (7, "not a model"),
        ("no such file", "cannot be read"),
        (message("Model", specificationVersion=1, description={}), "another kind of model"),
        (one("expand_dims", {"axes": np.zeros(5000, "int32")}, (3, 4)), "too many numbers"),
        (one("linear", {"weight": np.zeros((2, 3), "float32")}, (3, 2)), "linear y"),
        (one("split", {"axis": 0, "num_splits": 1 << 30}, (3, 4)), "number of results"),
        (one("range_1d", {"start": 0.0, "end": 2e9, "step": 1.0}, (3,)), "too large"),
        (one("while_loop", {}, (3, 4)), "there is no such operator"),
        (one("relu", {}, (4, 3)), "another type in the file"),
        (one("relu", {}, (3, 4), dtype="float16"), "another type in the file"),
        (one("conv", {"weight": np.zeros((2, 2))}, (3, 4)), "number of dimensions"),
        (one("add", {"y": "%z"}, (3, 4)), "nothing computes an operand"),
        (one("relu", {}, (3, 4), (1 << 40, 4)), "shape that no tensor has"),
        (one("tile", {"reps": np.array([1 << 20, 1 << 20])}, (3, 4)), "tile"),
        (one("transpose", {"perm": np.array([0, 0])}, (3, 4)), "no order of the dimensions"),
        (one("gelu", {"mode": "OTHER"}, (3, 4)), "no such mode"),
        (one("clip", {"alpha": "text", "beta": 1.0}, (3, 4)), "no tensor alpha"),
        (one("add", {"y": blob("@model_path/w.bin", 64, "float32", (3, 4))}, (3, 4)),
         "weights are in another file"),
        (one("add", {"y": {"type": value_type(99, ())}}, (3, 4)), "unknown dtype"),
        (one("add", {"y": {"type": {}, "immediateValue": {"tuple": DEEP}}}, (3, 4)), "deep"),
        (network([layer("branch", ["x"], ["y"])], [feature("x", (3,))], []), "no such operator"),
        (network([{"input": ["x"], "output": ["y"]}], [feature("x", (3,))], []),
         "no such operator"),
        (network([layer("copy", ["z"], ["y"])], [feature("x", (3,))], []), "nothing computes"),
        (network([layer("softmaxND", ["x"], ["y"], axis=3)], [feature("x", (3,))], []),
         "no such axis"),
        (network([], [{"name": "x"}], []), "no array of a known shape"),
        (network([], [feature("x", (3,))], []), "no outputs"),
        (old_network("innerProduct", (3,), (2,), inputChannels=3, outputChannels=2,
                     weights=weights([1])), "number of elements"),
    ],
)  # fmt: skip
def test_refusals(data, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_coreml(data)


def changed_package(folder, change):
    """Return a package whose weights are in a file that is named otherwise."""
    place = folder / "model.mlpackage"
    shutil.copytree(FILES / "mobile_32.mlpackage", place)
    change(place)
    return place


def in_specification(old, new):
    def change(place):
        path = place / "Data" / "com.apple.CoreML" / "model.mlmodel"
        assert len(old) == len(new)
        path.write_bytes(path.read_bytes().replace(old, new))

    return change


def in_manifest(path):
    def change(place):
        file = place / "Manifest.json"
        manifest = json.loads(file.read_text())
        manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"] = path
        file.write_text(json.dumps(manifest))

    return change


def link_outside(place):
    file = place / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    moved = place.parent / "weight.bin"
    file.rename(moved)
    file.symlink_to(moved)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (in_specification(b"weights/weight.bin", b"../../../../x/y.bin"[1:]), "outside"),
        (in_specification(b"@model_path/weights/weight.bin", b"/" * 12 + b"weights/weight.bin"),
         "outside"),
        (in_specification(b"weight.bin", b"weight.bit"), "cannot be read"),
        (in_manifest("../../../x"), "outside"),
        (in_manifest("/etc/passwd"), "outside"),
        (in_manifest("\0"), "outside|cannot be read"),
        (in_manifest(7), "manifest"),
        (lambda place: (place / "Manifest.json").write_text("{"), "manifest"),
        (link_outside, "outside"),
    ],
)  # fmt: skip
def test_a_package_reads_only_its_own_files(tmp_path, change, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_coreml(changed_package(tmp_path, change))


def test_blobs_are_checked(tmp_path):
    """Damaged heads of blobs are refused; so is a file that ends early."""
    place = changed_package(tmp_path, lambda place: None)
    file = place / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    good = file.read_bytes()
    for at in range(64, 88):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        with pytest.raises(GraphError, match=r"damaged|number of elements"):
            graph.from_coreml(place)
    for length in range(0, len(good), 97):
        file.write_bytes(good[:length])
        with pytest.raises(GraphError):
            graph.from_coreml(place)


@pytest.mark.parametrize("name", ["mobile_16.mlmodel", "recurrent_32.mlmodel"])
def test_a_file_that_ends_early_is_refused(name):
    good = (FILES / name).read_bytes()
    for length in range(0, len(good) - 1, 211):
        with pytest.raises(GraphError):
            graph.from_coreml(good[:length])


def test_every_layer_has_its_field():
    known = {"add", *LAYERS}
    data = network([layer(name, ["x"], ["y"]) for name in sorted(known)], [feature("x", (3,))], [])
    assert len(data) > len(known)
