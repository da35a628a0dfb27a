"""Good files of models of other libraries, for `tests.file_readers`."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

from dlcompiler import graph
from dlcompiler.errors import GraphError
from tests.file_samples import Inside, Reader, Sample
from tests.graph.frontends import coreml_models, darknet_reference

FRONTENDS = "graph.frontends"
FOLDER = Path(__file__).parent / "graph" / "frontends" / "files"


def read_by(data: bytes, read: Callable[[bytes], graph.Module]) -> Sample:
    """Return the sample of a reader whose module must come back from its text."""

    def check(changed: bytes, path: Path) -> None:
        del path
        module = read(changed)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

    return Sample(data, check, refuses_with=GraphError)


def _onnx_model(folder: Path) -> Sample | None:
    del folder
    if importlib.util.find_spec("onnx") is None:
        return None
    models = importlib.import_module("tests.graph.frontends.onnx_models")
    return read_by(models.a_model().SerializeToString(), graph.from_onnx)


def _tflite_model(folder: Path) -> Sample | None:
    del folder
    if any(importlib.util.find_spec(name) is None for name in ("tflite", "flatbuffers")):
        return None
    models = importlib.import_module("tests.graph.frontends.tflite_models")
    scales = [models.Scales(0.05, 3)]
    cases = [
        next(case for case in models.CASES if case.op == "CONV_2D"),
        models.Case("QUANTIZE", [], {}, ["int8"], scales=scales),
        models.Case("RELU", [], {}, ["int8"], scales=scales),
        models.Case("DEQUANTIZE", []),
    ]
    data = models.network_of(cases, [[(2, 4, 4, 6)]] * len(cases))
    return read_by(data, graph.from_tflite)


def _darknet_network(folder: Path) -> Sample:
    del folder
    return read_by(darknet_reference.SMALL.encode(), graph.from_darknet)


def _darknet_weights(folder: Path) -> Sample:
    del folder
    text = darknet_reference.SMALL
    data = darknet_reference.weights_of(text, (1, 3, 8, 8))
    return read_by(data, lambda changed: graph.from_darknet(text.encode(), changed))


def _mxnet_model(place: int) -> Callable[[Path], Sample]:
    """Make the two files of a model, of which the one at a place is damaged."""

    def make(folder: Path) -> Sample:
        del folder
        start = FOLDER / "mxnet" / "squeezenet"
        files = [Path(f"{start}{end}").read_bytes() for end in ("-symbol.json", "-0000.params")]

        def check(changed: bytes, path: Path) -> None:
            del changed
            given = [path if n == place else data for n, data in enumerate(files)]
            module = graph.from_mxnet(*given, shapes={"data": (1, 3, 20, 20)})
            assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

        inside = None if place else Inside(files[0], bytes)
        return Sample(files[place], check, inside, refuses_with=GraphError)

    return make


def _coreml_network(folder: Path) -> Sample:
    del folder
    return read_by((FOLDER / "coreml" / "mobile_16.mlmodel").read_bytes(), graph.from_coreml)


def _coreml_program(folder: Path) -> Sample:
    del folder
    return read_by(coreml_models.a_program(), graph.from_coreml)


def _coreml_weights(folder: Path) -> Sample:
    """Return the blob file of a package, whose heads are damaged, and not only its numbers."""
    good = FOLDER / "coreml" / "mobile_16.mlpackage"
    package = shutil.copytree(good, folder / "good.mlpackage")
    file = package / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"

    def check(changed: bytes, path: Path) -> None:
        del path
        file.write_bytes(changed)
        graph.from_coreml(package)

    return Sample(file.read_bytes(), check, refuses_with=GraphError)


READERS = tuple(
    Reader(name, (f"{FRONTENDS}.files", f"{FRONTENDS}.{module}.reading"), make)
    for name, module, make in (
        ("ONNX model", "onnx", _onnx_model),
        ("TFLite model", "tflite", _tflite_model),
        ("MXNet symbol", "mxnet", _mxnet_model(0)),
        ("MXNet arrays", "mxnet", _mxnet_model(1)),
        ("Darknet network", "darknet", _darknet_network),
        ("Darknet weights", "darknet", _darknet_weights),
        ("CoreML network", "coreml", _coreml_network),
        ("CoreML program", "coreml", _coreml_program),
        ("CoreML weights", "coreml", _coreml_weights),
    )
)
"""The readers of models."""
