"""ONNX models as modules: `from_onnx`."""

from dlcompiler.graph.frontends.onnx.importer import from_onnx

__all__ = ["from_onnx"]
