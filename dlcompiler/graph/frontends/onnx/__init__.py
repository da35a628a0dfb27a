"""ONNX models as modules: `from_onnx`, and their inputs: `onnx_inputs`."""

from dlcompiler.graph.frontends.onnx.importer import from_onnx, onnx_inputs
from dlcompiler.graph.frontends.onnx.operators import DOMAINS, OPERATORS

__all__ = ["DOMAINS", "OPERATORS", "from_onnx", "onnx_inputs"]
