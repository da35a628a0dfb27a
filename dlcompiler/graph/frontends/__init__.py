"""Models of other libraries as modules of graphs."""

from dlcompiler.graph.frontends.coreml import from_coreml
from dlcompiler.graph.frontends.darknet import from_darknet
from dlcompiler.graph.frontends.mxnet import from_mxnet
from dlcompiler.graph.frontends.onnx import from_onnx
from dlcompiler.graph.frontends.tflite import from_tflite
from dlcompiler.graph.frontends.torch import from_torch

__all__ = [
    "from_coreml",
    "from_darknet",
    "from_mxnet",
    "from_onnx",
    "from_tflite",
    "from_torch",
]
