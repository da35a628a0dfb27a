"""Models of other libraries as modules of graphs."""

from dlcompiler.graph.frontends.onnx import from_onnx

__all__ = ["from_onnx"]
