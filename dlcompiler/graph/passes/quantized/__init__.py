"""Compute with quantized numbers in integers."""

from dlcompiler.graph.passes.quantized.layouts import lay_out_integers
from dlcompiler.graph.passes.quantized.run import RULES, compute_in_integers

__all__ = ["RULES", "compute_in_integers", "lay_out_integers"]
