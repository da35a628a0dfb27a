"""ONNX models as modules: `from_onnx`."""

from dlcompiler.graph.frontends.onnx.importer import from_onnx
from dlcompiler.graph.frontends.onnx.operators import OPERATORS

__all__ = ["OPERATORS", "from_onnx"]
