"""Good files of models of other libraries, for `tests.file_readers`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from dlcompiler import graph
from dlcompiler.errors import GraphError
from tests.file_samples import Inside, Sample

FOLDER = Path(__file__).parent / "graph" / "frontends" / "files"


def onnx_model(folder: Path) -> Sample | None:
    del folder
    if importlib.util.find_spec("onnx") is None:
        return None
    models = importlib.import_module("tests.graph.frontends.onnx_models")

    def check(changed: bytes, path: Path) -> None:
        del path
        module = graph.from_onnx(changed)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

    return Sample(models.a_model().SerializeToString(), check, refuses_with=GraphError)


def tflite_model(folder: Path) -> Sample | None:
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


def mxnet_model(place: int) -> Callable[[Path], Sample]:
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
