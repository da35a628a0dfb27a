"""The converters of operators: name of a TFLite operator -> what makes expressions of it."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.tflite.node import Converter
from dlcompiler.graph.frontends.tflite.operators import elementwise, images, layers, shapes

OPERATORS: Mapping[str, Converter] = {
    **elementwise.TABLE,
    **images.TABLE,
    **layers.TABLE,
    **shapes.TABLE,
}
"""Converters of the operators that are known."""
