"""The converters of operators: name of an ONNX operator -> what makes expressions of its nodes."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.onnx.node import Converter
from dlcompiler.graph.frontends.onnx.operators import (
    elementwise,
    indexing,
    neural,
    pooling,
    quantized,
    recurrent,
    reductions,
    resizing,
    shapes,
)

OPERATORS: Mapping[str, Converter] = {
    **elementwise.TABLE,
    **indexing.TABLE,
    **neural.TABLE,
    **pooling.TABLE,
    **quantized.TABLE,
    **recurrent.TABLE,
    **reductions.TABLE,
    **resizing.TABLE,
    **shapes.TABLE,
}
"""Converters of the standard operators; versions are told apart inside."""
