"""The kinds of files that hold a model, by the endings of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from dlcompiler import graph
from dlcompiler.graph.ir import Module

Shapes: TypeAlias = Mapping[str, Sequence[int]]


class Format(NamedTuple):
    """A kind of file that is not ONNX; no peer reads it."""

    library: str
    read: Callable[[Path, Shapes], Module]
    """Takes a path, and shapes of inputs."""


def _darknet(path: Path, shapes: Shapes) -> Module:
    del shapes  # they stand in the text
    weights = path.with_suffix(".weights")
    return graph.from_darknet(path, weights if weights.exists() else None)


def _mxnet(path: Path, shapes: Shapes) -> Module:
    start = path.name.removesuffix("symbol.json")
    params = sorted(each for each in path.parent.glob("*.params") if each.name.startswith(start))
    return graph.from_mxnet(path, params[-1] if params else None, shapes=shapes)


def _coreml(path: Path, shapes: Shapes) -> Module:
    return graph.from_coreml(path, shapes=shapes)


FORMATS: Mapping[str, Format] = {
    ".tflite": Format("TFLite", lambda path, shapes: graph.from_tflite(path, shapes=shapes)),
    ".mlmodel": Format("CoreML", _coreml),
    ".mlpackage": Format("CoreML", _coreml),
    ".cfg": Format("Darknet", _darknet),
    "-symbol.json": Format("MXNet", _mxnet),
}
"""Ending -> kind of file. Weights lie beside it: ``NAME.weights``, and that ``NAME-0000.params``
which has the largest number."""


def format_of(path: str | Path) -> Format | None:
    """Return the kind of a file; None for ONNX."""
    name = Path(path).name
    return next((each for end, each in FORMATS.items() if name.endswith(end)), None)
