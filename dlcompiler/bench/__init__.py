"""The figures of this project, measured: each is a function that a command runs, none is a test."""

from dlcompiler.bench.figures import FIGURES, Figure, measure_figures
from dlcompiler.bench.machine import describe_machine, fma_peak_gflops

__all__ = ["FIGURES", "Figure", "describe_machine", "fma_peak_gflops", "measure_figures"]
