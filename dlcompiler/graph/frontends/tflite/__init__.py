"""TFLite models as modules: `from_tflite`."""

from dlcompiler.graph.frontends.tflite.importer import from_tflite
from dlcompiler.graph.frontends.tflite.operators import OPERATORS

__all__ = ["OPERATORS", "from_tflite"]
