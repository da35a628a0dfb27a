"""Make a module of a CoreML model: of a program (MIL), or of a network of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml.messages import OPERATION
from dlcompiler.graph.frontends.coreml.network import NetworkImporter
from dlcompiler.graph.frontends.coreml.program import ProgramImporter
from dlcompiler.graph.frontends.coreml.reading import Package, read_model
from dlcompiler.graph.ir import Function, Module, Tuple

_NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


def from_coreml(
    model: str | Path | bytes, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> Module:
    """Return a CoreML model as a module.

    Parameters
    ----------
    model : path or bytes
        The path of a ``.mlmodel`` file or of a ``.mlpackage`` folder, or the bytes of a
        specification: of a program (``mlProgram``), or of a network of layers (``neuralNetwork``,
        also as a classifier or a regressor).
    shapes : mapping, optional
        Shapes of inputs, by their names, where others than the usual ones are wanted.

    Returns
    -------
    Module
        Calls have the names of the values that they make. Tensors have the dtypes of the file:
        programs are often in float16, networks always compute in float32. An image is an input
        (1, channels, height, width) of float32 from 0 to 255, with the channels in the order of
        the file. The result is a tensor, or a tuple of the outputs; of a classifier, the
        probabilities in the order of its labels.

    Raises
    ------
    GraphError
        The file is damaged, a file lies outside of the package, or an operator is not known.

    Notes
    -----
    Weights in fewer bits become constants of the dtype that the file computes in.

    **Source:** the specification of CoreML, version 9, and the operations of MIL for iOS 15 to 18.
    """
    package = read_model(model)
    importer = _importer(package, dict(shapes or {}))
    params, results = importer.run()
    names = [param.name for param in params]
    for name in importer.shapes:
        if name not in names:
            raise GraphError(OPERATION, "there is no such input", got=name,
                             expected=", ".join(names) or "none")  # fmt: skip
    if not results:
        raise GraphError(OPERATION, "the model has no outputs")
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Module({"main": Function(tuple(params), body)})


def _importer(
    package: Package, shapes: Mapping[str, Sequence[int]]
) -> ProgramImporter | NetworkImporter:
    model = package.model
    if model["mlProgram"] is not None:
        return ProgramImporter(package, shapes)
    for name in _NETWORKS:
        if model[name] is not None:
            return NetworkImporter(package, shapes, model[name])
    raise GraphError(
        OPERATION, "it is another kind of model",
        got=f"field {max(model.others, default=0)} of Model.proto",
        expected=f"mlProgram, {', '.join(_NETWORKS)}",
    )  # fmt: skip
