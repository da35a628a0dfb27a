"""TFLite models as modules: `from_tflite`."""

from dlcompiler.graph.frontends.tflite.importer import from_tflite

__all__ = ["from_tflite"]
