"""Readers of models of other libraries: `tests.file_readers` says what must hold of them."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

from dlcompiler import graph
from dlcompiler.errors import GraphError
from tests.file_samples import Reader, Sample
from tests.graph.frontends.coreml_models import a_program

COREML = Path(__file__).parent / "files" / "coreml"


def _onnx_model(folder: Path) -> Sample | None:
    del folder
    if importlib.util.find_spec("onnx") is None:
        return None
    models = importlib.import_module("tests.graph.frontends.onnx_models")

    def check(changed: bytes, path: Path) -> None:
        del path
        module = graph.from_onnx(changed)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

    return Sample(models.a_model().SerializeToString(), check, refuses_with=GraphError)


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

    def check(changed: bytes, path: Path) -> None:
        del path
        module = graph.from_tflite(changed)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

    data = models.network_of(cases, [[(2, 4, 4, 6)]] * len(cases))
    return Sample(data, check, refuses_with=GraphError)


def _coreml_model(make_data: Callable[[], bytes]) -> Callable[[Path], Sample]:
    def make(folder: Path) -> Sample:
        del folder

        def check(changed: bytes, path: Path) -> None:
            del path
            module = graph.from_coreml(changed)
            assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

        return Sample(make_data(), check, refuses_with=GraphError)

    return make


def _coreml_weights(folder: Path) -> Sample:
    """Return the blob file of a package, whose heads are damaged, and not only its numbers."""
    package = shutil.copytree(COREML / "mobile_16.mlpackage", folder / "good.mlpackage")
    file = package / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"

    def check(changed: bytes, path: Path) -> None:
        del path
        file.write_bytes(changed)
        graph.from_coreml(package)

    return Sample(file.read_bytes(), check, refuses_with=GraphError)


MODEL_READERS = (
    Reader("ONNX model", ("graph.frontends.onnx.reading",), _onnx_model),
    Reader("TFLite model", ("graph.frontends.tflite.reading",), _tflite_model),
    Reader(
        "CoreML network",
        ("graph.frontends.coreml.reading",),
        _coreml_model((COREML / "mobile_16.mlmodel").read_bytes),
    ),
    Reader("CoreML program", ("graph.frontends.coreml.reading",), _coreml_model(a_program)),
    Reader("CoreML weights", ("graph.frontends.coreml.reading",), _coreml_weights),
)
