"""Good files of models of other libraries, for `tests.file_readers`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from dlcompiler import graph
from dlcompiler.errors import GraphError
from tests.file_samples import Inside, Sample
from tests.graph.frontends import darknet_reference

FOLDER = Path(__file__).parent / "graph" / "frontends" / "files"


def read_by(data: bytes, read: Callable[[bytes], graph.Module]) -> Sample:
    """Return the sample of a reader whose module must come back from its text."""

    def check(changed: bytes, path: Path) -> None:
        del path
        module = read(changed)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)

    return Sample(data, check, refuses_with=GraphError)


def onnx_model(folder: Path) -> Sample | None:
    del folder
    if importlib.util.find_spec("onnx") is None:
        return None
    models = importlib.import_module("tests.graph.frontends.onnx_models")
    return read_by(models.a_model().SerializeToString(), graph.from_onnx)


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
    data = models.network_of(cases, [[(2, 4, 4, 6)]] * len(cases))
    return read_by(data, graph.from_tflite)


def darknet_network(folder: Path) -> Sample:
    del folder
    return read_by(darknet_reference.SMALL.encode(), graph.from_darknet)


def darknet_weights(folder: Path) -> Sample:
    del folder
    text = darknet_reference.SMALL
    data = darknet_reference.weights_of(text, (1, 3, 8, 8))
    return read_by(data, lambda changed: graph.from_darknet(text.encode(), changed))


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
