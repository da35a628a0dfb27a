"""Quantization of trained models: calibrate, rewrite, and report what it costs in accuracy."""

from dlcompiler.graph.quantization.report import LayerError, Top1, compare_top1
from dlcompiler.graph.quantization.run import Quantized, quantize

__all__ = ["LayerError", "Quantized", "Top1", "compare_top1", "quantize"]
